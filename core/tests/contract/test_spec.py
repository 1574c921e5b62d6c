from __future__ import annotations

import pytest

from trunnion.contract.spec import Target, target_words
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


@pytest.mark.parametrize("arch", ["sm_90a", "compute_90"])
def test_an_architecture_alone_is_no_kind_of_device(arch: str) -> None:
    with pytest.raises(ProgramError, match=rf"got the architecture '{arch}' .*Target\('cuda', '{arch}'\)"):
        Target(arch)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("SM_90a", "sm_90a"),
        ("90a", "sm_90a"),
        ("sm90", "sm_90"),
        ("cuda:sm-80", "sm_80"),
        ("Compute 90", "compute_90"),
        ("host", "cpu"),
        ("gpu", "cuda:sm_90a"),
    ],
)
def test_a_mistyped_target_is_answered_with_what_was_meant(text: str, meant: str) -> None:
    assert target_words(text).endswith(f"; did you mean {meant!r}?")


def test_a_word_that_may_be_anybodys_is_answered_with_the_forms_alone() -> None:
    assert target_words("hopper").endswith("or 'cpu'")
