"""An emitter's version moves with its text: it stands for that in the keys of what is kept."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from trunnion import examples
from trunnion.codegen.cpp.wrapper import CppWrapper
from trunnion.contract.spec import BackendSpec, Capability
from trunnion.registry import default_registry
from trunnion.selection import load_part

GOLDEN = Path(__file__).parent / "golden" / "launchers.json"
EVERY = {"cuda": examples.EXAMPLES, "cpu": examples.CPU_EXAMPLES}


def said(spec: BackendSpec) -> dict[str, object]:
    """Return a wrapper's version, and the digest of what it writes for each example."""
    wrapper = load_part(spec, spec.load_wrapper)(spec)
    texts = {
        name: hashlib.sha256(wrapper.wrap(examples.load(name).program.plan(), kind).text.encode()).hexdigest()
        for kind in spec.targets
        for name in EVERY[kind]
    }
    return {"version": wrapper.version, "texts": texts}


def test_launchers_of_one_version_say_the_same() -> None:
    """Raise `VERSION` of the emitter if launchers change, and set TRUNNION_REFRESH_GOLDEN=1 to write the file anew."""
    both = dict.fromkeys(EVERY, frozenset(Capability))
    cpp = BackendSpec(
        name="cpp",
        contract_version=3,
        targets=both,
        accepts=("cubin",),
        load_wrapper=lambda: CppWrapper,
        load_adapter=lambda: None,
    )
    here = {"python": said(default_registry().backend("nvrtc")), "c++": said(cpp)}
    if os.environ.get("TRUNNION_REFRESH_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(here, indent=1) + "\n", encoding="ascii")
    assert here == json.loads(GOLDEN.read_text(encoding="ascii"))
