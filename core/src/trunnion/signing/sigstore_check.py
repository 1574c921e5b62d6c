"""What ``sigstore`` does for identities: it verifies one of its bundles against a stored trust root, with no network.

The one file that imports it, which is the extra ``sigstore``: nobody imports this one before an identity is asked for.
"""

from __future__ import annotations

from sigstore.hashes import Hashed
from sigstore.models import Bundle, TrustedRoot
from sigstore.verify import Verifier
from sigstore.verify.policy import Identity
from sigstore_models.common.v1 import HashAlgorithm

from trunnion.storage.scratch import scratch_folder

__all__ = ["check"]


def check(bundle: bytes, digest: str, trust_root: bytes, *, identity: str, issuer: str) -> None:
    """Verify that an identity signed a digest; whatever is raised says that it did not, or that nobody can tell.

    Parameters
    ----------
    bundle
        A sigstore bundle, as JSON: certificate, signature, and the log's proof.
    digest
        The SHA-256, in hex, of what is to be signed.
    trust_root
        Whose certificates and logs are believed: sigstore's ``trusted_root.json``.
    identity, issuer
        Who must have signed it, and the provider that knows them.
    """
    with scratch_folder() as folder:  # the library reads a root from a path alone: these bytes, and no others
        (folder / "trusted_root.json").write_bytes(trust_root)
        root = TrustedRoot.from_file(str(folder / "trusted_root.json"))
    Verifier(trusted_root=root).verify_artifact(
        Hashed(algorithm=HashAlgorithm.SHA2_256, digest=bytes.fromhex(digest)),
        Bundle.from_json(bundle),
        Identity(identity=identity, issuer=issuer),
    )
