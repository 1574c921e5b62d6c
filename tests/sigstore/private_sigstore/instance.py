"""A sigstore of one's own, with no network: an authority, a log of certificates, a log of signatures, and their root.

What it issues is what the public one issues: a certificate for a few minutes with identity and issuer in it (Fulcio's
profile), with a timestamp of a log of certificates (RFC 6962), and an entry of a log of signatures with a proof of
inclusion, a signed checkpoint and a signed promise (Rekor, version 1). The library alone decides whether it is good.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

__all__ = ["IDENTITY", "ISSUER", "PrivateSigstore"]

IDENTITY = "https://example.org/kernels/.github/workflows/release.yml@refs/heads/main"
ISSUER = "https://token.example.org"

_SIGNED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_ISSUER_OID = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_SCT_OID = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_ORIGIN = "log.example.org - 1"


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _key_id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(_spki(key)).digest()


def _signed(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    return key.sign(data, ec.ECDSA(SHA256()))


def _octets(data: bytes) -> bytes:
    """Return an OCTET STRING in DER."""
    assert len(data) < 128, "the length of a longer one is spelled otherwise"
    return bytes([4, len(data)]) + data


@dataclass
class PrivateSigstore:
    """Keys and the authority's certificate; `trusted_root` is what others must believe to believe it."""

    authority: ec.EllipticCurvePrivateKey = field(default_factory=_key)
    certificates: ec.EllipticCurvePrivateKey = field(default_factory=_key)
    log: ec.EllipticCurvePrivateKey = field(default_factory=_key)

    def __post_init__(self) -> None:
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a sigstore of one's own")])
        key = self.authority.public_key()
        usage = dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "crl_sign": True}
        self.root = (
            x509.CertificateBuilder(name, name, key, x509.random_serial_number())
            .not_valid_before(_SIGNED_AT - timedelta(days=365))
            .not_valid_after(_SIGNED_AT + timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .sign(self.authority, SHA256())
        )

    def trusted_root(self) -> bytes:
        """Return the root of trust, as sigstore stores it."""
        start = {"start": (_SIGNED_AT - timedelta(days=365)).isoformat().replace("+00:00", "Z")}
        return json.dumps(
            {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [_log("https://log.example.org", self.log, start)],
                "certificateAuthorities": [
                    {
                        "subject": {"organization": "example.org", "commonName": "a sigstore of one's own"},
                        "uri": "https://authority.example.org",
                        "certChain": {
                            "certificates": [{"rawBytes": _b64(self.root.public_bytes(Encoding.DER))}]
                        },
                        "validFor": start,
                    }
                ],
                "ctlogs": [_log("https://certificates.example.org", self.certificates, start)],
                "timestampAuthorities": [],
            }
        ).encode()

    def sign(
        self, digest: str, identity: str = IDENTITY, issuer: str = ISSUER, late: timedelta = timedelta()
    ) -> dict[str, Any]:
        """Return the bundle of a signature of a SHA-256, as JSON's objects.

        Parameters
        ----------
        digest
            What is signed, in hex.
        identity, issuer
            What the certificate says.
        late
            How much later than the certificate begins it was signed.
        """
        key = _key()
        leaf = self._leaf(key, identity, issuer)
        signature = key.sign(bytes.fromhex(digest), ec.ECDSA(Prehashed(SHA256())))
        message = {"messageDigest": {"algorithm": "SHA2_256", "digest": _b64(bytes.fromhex(digest))}}
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": _b64(leaf.public_bytes(Encoding.DER))},
                "tlogEntries": [self._entry(digest, signature, leaf, _SIGNED_AT + late)],
            },
            "messageSignature": message | {"signature": _b64(signature)},
        }

    def _leaf(self, key: ec.EllipticCurvePrivateKey, identity: str, issuer: str) -> x509.Certificate:
        usage = dict.fromkeys(_USAGES, False) | {"digital_signature": True}
        named = (
            x509.RFC822Name if "@" in identity and "://" not in identity else x509.UniformResourceIdentifier
        )
        authority = self.authority.public_key()
        builder = (
            x509.CertificateBuilder(
                self.root.subject, x509.Name([]), key.public_key(), x509.random_serial_number()
            )
            .not_valid_before(_SIGNED_AT - timedelta(minutes=1))
            .not_valid_after(_SIGNED_AT + timedelta(minutes=9))
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), critical=False)
            .add_extension(x509.SubjectAlternativeName([named(identity)]), critical=True)
            .add_extension(x509.UnrecognizedExtension(_ISSUER_OID, issuer.encode()), critical=False)
        )
        stamp = self._timestamp(builder.sign(self.authority, SHA256()).tbs_certificate_bytes)
        return builder.add_extension(
            x509.UnrecognizedExtension(_SCT_OID, _octets(stamp)), critical=False
        ).sign(self.authority, SHA256())

    def _timestamp(self, certificate: bytes) -> bytes:
        """Return the list of one timestamp of the log of certificates (RFC 6962, 3.2 and 3.3)."""
        when = struct.pack("!Q", int(_SIGNED_AT.timestamp() * 1000))
        entry = _key_id(self.authority) + struct.pack("!I", len(certificate))[1:] + certificate
        signature = _signed(self.certificates, b"\0\0" + when + b"\0\1" + entry + b"\0\0")
        signed = b"\x04\x03" + struct.pack("!H", len(signature)) + signature  # SHA-256, ECDSA
        stamp = b"\0" + _key_id(self.certificates) + when + b"\0\0" + signed
        one = struct.pack("!H", len(stamp)) + stamp
        return struct.pack("!H", len(one)) + one

    def _entry(self, digest: str, signature: bytes, leaf: x509.Certificate, when: datetime) -> dict[str, Any]:
        """Return the entry of the log of signatures: the second of two."""
        body = {
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": digest}},
                "signature": {
                    "content": _b64(signature),
                    "publicKey": {"content": _b64(leaf.public_bytes(Encoding.PEM))},
                },
            },
        }
        canonical, first = _canonical(body), hashlib.sha256(b"\0the first entry").digest()
        root = hashlib.sha256(b"\1" + first + hashlib.sha256(b"\0" + canonical).digest()).digest()
        note = f"{_ORIGIN}\n2\n{_b64(root)}\n"
        sealed = _b64(_key_id(self.log)[:4] + _signed(self.log, note.encode()))
        seconds = int(when.timestamp())
        promise = {
            "body": _b64(canonical),
            "integratedTime": seconds,
            "logID": _key_id(self.log).hex(),
            "logIndex": 1,
        }
        return {
            "logIndex": "1",
            "logId": {"keyId": _b64(_key_id(self.log))},
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.1"},
            "integratedTime": str(seconds),
            "inclusionPromise": {"signedEntryTimestamp": _b64(_signed(self.log, _canonical(promise)))},
            "inclusionProof": {
                "logIndex": "1",
                "rootHash": _b64(root),
                "treeSize": "2",
                "hashes": [_b64(first)],
                "checkpoint": {"envelope": f"{note}\n\u2014 {_ORIGIN.partition(' ')[0]} {sealed}\n"},
            },
            "canonicalizedBody": _b64(canonical),
        }


_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _log(url: str, key: ec.EllipticCurvePrivateKey, valid: dict[str, str]) -> dict[str, Any]:
    return {
        "baseUrl": url,
        "hashAlgorithm": "SHA2_256",
        "publicKey": {
            "rawBytes": _b64(_spki(key)),
            "keyDetails": "PKIX_ECDSA_P256_SHA_256",
            "validFor": valid,
        },
        "logId": {"keyId": _b64(_key_id(key))},
    }


def _canonical(members: dict[str, Any]) -> bytes:
    """Return JSON as RFC 8785 has it, of what holds ASCII and small integers alone."""
    return json.dumps(members, sort_keys=True, separators=(",", ":")).encode()
