from __future__ import annotations

import pytest

from trunnion.contract.spec import Target
from trunnion.errors import ProgramError


@pytest.mark.parametrize(
    ("text", "kind", "arch", "shown"),
    [
        ("cuda:sm_90a", "cuda", "sm_90a", "cuda:sm_90a"),
        ("sm_90a", "cuda", "sm_90a", "cuda:sm_90a"),
        ("compute_90", "cuda", "compute_90", "cuda:compute_90"),
        ("cpu", "cpu", "", "cpu"),
        ("cuda:", "cuda", "", "cuda"),
    ],
)
def test_targets_read_and_print(text: str, kind: str, arch: str, shown: str) -> None:
    target = Target.parse(text)
    assert (target.kind, target.arch, str(target)) == (kind, arch, shown)
    assert Target.parse(str(target)) == target
    assert Target.parse(target) is target


@pytest.mark.parametrize(
    "text",
    ["", ":", "CUDA", "cuda:sm 90", "cuda:sm\n", "cpu\n", "a:b:c", "9", "x" * 65, "cuda:" + "x" * 65, "é"],
)
def test_other_texts_are_no_targets(text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        Target.parse(text)
    assert caught.value.field.startswith("target")
