"""One kernel is meant, or all that could be are named."""

from __future__ import annotations

import contextlib
import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.errors import ProgramError
from trunnion.image.lookup import KernelLookupError, find_kernel

CUTE = "kernel_cutlass_main_kernel_tensorptrf32gmemo1_Tensor_0"


@pytest.mark.parametrize(
    ("pattern", "kernels", "found"),
    [
        ("main_kernel", [CUTE], CUTE),
        ("main_kernel", ["main_kernel", "main_kernel_1"], "main_kernel"),
        ("main_kernel", ["main_kernel_1"], "main_kernel_1"),
        ("main_kernel_1", ["main_kernel", "main_kernel_1", "main_kernel_10"], "main_kernel_1"),
        ("main_kernel", [CUTE, CUTE.replace("main_kernel", "main_kernel_1")], CUTE),
        ("main_kernel", [CUTE, CUTE.replace("main_kernel", "domain_kernel")], CUTE),
        ("main_kernel", [CUTE, CUTE.replace("main_kernel", "main_kernels")], CUTE),
        ("main_kernel_1", [CUTE, CUTE.replace("main_kernel", "main_kernel_1")],
         CUTE.replace("main_kernel", "main_kernel_1")),
        ("gemm", ["gemm", "gemm_tma", "my_gemm"], "gemm"),
        ("scale", ["_Z5scalePfi", "_Z9scale_allPfi", "_Z6rescalePfi"], "_Z5scalePfi"),
        ("scale", ["_ZN3foo5scaleILi3EEEvPf", "_ZN3foo15scale_somethingEv"], "_ZN3foo5scaleILi3EEEvPf"),
        ("a", ["b", "a"], "a"),
        ("main_kernel", ["main_kernel_2x", "main_kernel_3"], "main_kernel_2x"),
    ],
)  # fmt: skip
def test_the_nearest_one_is_found(pattern, kernels, found):
    assert find_kernel(pattern, kernels) == found
    assert find_kernel(pattern, reversed(kernels)) == found


@pytest.mark.parametrize(
    ("pattern", "kernels", "matches"),
    [
        ("gemm", ["a_gemm", "gemm_b", "other"], ["a_gemm", "gemm_b"]),
        ("gemm", ["gemm_1", "gemm_2", "other"], ["gemm_1", "gemm_2"]),
        ("gemm", ["x_gemm_y", "z_gemm_y", "gemm_1"], ["x_gemm_y", "z_gemm_y"]),
        ("kernel_cutlass", [CUTE, f"{CUTE}_1"], [CUTE, f"{CUTE}_1"]),
    ],
)
def test_several_that_are_equally_near_are_all_named(pattern, kernels, matches):
    with pytest.raises(KernelLookupError) as caught:
        find_kernel(pattern, kernels)
    error = caught.value
    assert (error.pattern, error.matches, error.kernels) == (pattern, tuple(matches), tuple(kernels))
    assert all(repr(name) in str(error) for name in matches)
    assert "other" not in str(error)
    assert f"could be {len(matches)} kernels" in str(error)


@pytest.mark.parametrize("pattern", ["", "nobody", "main", "kerne", "ain_kernel", "_", "cale"])
def test_what_matches_none_is_told_what_there_is(pattern):
    kernels = ["mainkernel", "_Z5scalePf", "two\nlines"]
    with pytest.raises(KernelLookupError) as caught:
        find_kernel(pattern, kernels)
    assert caught.value.matches == ()
    assert r"'two\nlines'" in str(caught.value)
    assert "'_Z5scalePf'" in str(caught.value)


def test_the_error_crosses_processes():
    error = KernelLookupError("gemm", ["gemm_1", "gemm_2"], ["gemm_1", "gemm_2", "other"])
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    assert (type(back), str(back), back.matches, back.kernels) == (
        KernelLookupError,
        str(error),
        error.matches,
        error.kernels,
    )
    assert isinstance(back, ProgramError)


def test_an_image_without_kernels():
    with pytest.raises(KernelLookupError, match="none at all"):
        find_kernel("k", [])


NAMES = st.lists(st.text("ab_12", min_size=1, max_size=6), max_size=5, unique=True)


@given(pattern=st.text("ab_12", max_size=4), kernels=NAMES)
def test_what_is_found_holds_the_pattern_and_nothing_was_as_near(pattern, kernels):
    """A reading of the rule that shares no line with it: words are what is between underscores."""

    def places(name):
        words, wanted = name.split("_"), pattern.split("_")
        return [
            words[start + len(wanted) :]
            for start in range(len(words) - len(wanted) + 1)
            if words[start : start + len(wanted)] == wanted
        ]

    near = {name: places(name) for name in kernels if pattern and places(name)}
    base = [name for name, rests in near.items() if not all(rest and rest[0].isdigit() for rest in rests)]
    expected = [pattern] if pattern in kernels else base or list(near)
    if len(expected) == 1:
        assert find_kernel(pattern, kernels) == expected[0]
        return
    with pytest.raises(KernelLookupError) as caught:
        find_kernel(pattern, kernels)
    assert list(caught.value.matches) == expected


def test_variants_of_mangled_names_come_after_the_base_name() -> None:
    assert find_kernel("gemm", ["_Z6gemm_1Pf"]) == "_Z6gemm_1Pf"
    assert find_kernel("gemm", ["_Z6gemm_1Pf", "_Z4gemmPf"]) == "_Z4gemmPf"
    assert find_kernel("gemm_1", ["_Z6gemm_1Pf", "_Z4gemmPf"]) == "_Z6gemm_1Pf"
    with pytest.raises(KernelLookupError):
        find_kernel("gemm", ["_Z6gemm_1Pf", "_Z6gemm_2Pf"])
    with pytest.raises(KernelLookupError):
        find_kernel("gemm", ["_Z7gemm_1aPf", "_Z5gemmaPf"])


@pytest.mark.parametrize("pattern", [5, None, b"gemm"])
def test_a_pattern_is_text(pattern: object) -> None:
    with pytest.raises(ProgramError, match="expected a part of a kernel's name"):
        find_kernel(pattern, ["gemm"])


@pytest.mark.parametrize("outer", ["4sm90", "2v22v35sm100", "12kernels_0123"])
def test_a_word_behind_one_that_ends_in_digits_is_counted_too(outer: str) -> None:
    nested = f"_ZN{outer}4gemmEPf"
    assert find_kernel("gemm", [nested, "_Z6rescalePf"]) == nested
    assert find_kernel("gemm", [nested, f"_ZN{outer}6gemm_1EPf"]) == nested
    with pytest.raises(KernelLookupError) as caught:
        find_kernel("gemm", [nested, "_Z4gemmPf"])
    assert caught.value.matches == (nested, "_Z4gemmPf")


@pytest.mark.parametrize("name", ["_Z14gemm_somethingPf", "_ZN4sm9014gemm_somethingEPf", "_ZN4sm904gemsEPf"])
def test_the_end_of_a_length_is_none(name: str) -> None:
    with pytest.raises(KernelLookupError):
        find_kernel("gemm", [name])


@pytest.mark.parametrize(
    "name", ["_Z" + "9" * 200_000 + "gemm", "_Z" + "1a" * 100_000 + "4gemm", "_Z" + "9gemm" * 40_000]
)
def test_a_long_name_costs_as_much_as_it_is_long(name: str) -> None:
    started = time.process_time()
    with contextlib.suppress(KernelLookupError):
        find_kernel("gemm", [name])
    assert time.process_time() - started < 2
