"""What somebody's library was made from, and for: said beside it, because it does not say so itself."""

from __future__ import annotations

import pytest
from foreign_signatures import AXPY, ramp

from trunnion import errors
from trunnion.contract.spec import Target
from trunnion_tvm_ffi import from_module

pytestmark = pytest.mark.tvm_ffi_abi

HOST, DEVICE = "int main(void);\n", "__global__ void axpy(float*);\n"


def test_sources_and_target_are_kept_beside_the_library(function):
    axpy = function("axpy", AXPY, host_source=HOST, device_source=DEVICE, target="sm_90a")
    assert (axpy.host_source, axpy.device_source) == (HOST, DEVICE)
    assert axpy.target == Target("cuda", "sm_90a")
    assert axpy.source == DEVICE
    assert axpy(2.0, ramp(), ramp()).tolist() == (3 * ramp()).tolist()  # where its tensors lie


def test_without_them_nothing_is_known(function):
    axpy = function("axpy", AXPY)
    assert (axpy.host_source, axpy.device_source, axpy.target, axpy.source) == ("", "", None, "")
    assert function("axpy", host_source=HOST).source == ""


def test_a_target_may_be_an_object(function):
    assert function("axpy", target=Target("cpu")).target == Target("cpu")


@pytest.mark.parametrize("name", ["host_source", "device_source"])
@pytest.mark.parametrize("source", [b"text", 3, ["text"]])
def test_what_is_no_source_is_refused_before_anything_is_loaded(name, source):
    with pytest.raises(errors.ArgumentTypeError, match="the text of a source, or None") as caught:
        from_module("nowhere.so", "axpy", **{name: source})
    assert caught.value.argument == name


@pytest.mark.parametrize("target", ["sm_90a", "sm_100f", "compute_90", "cuda:sm_120", "cpu"])
def test_every_target_of_a_program_is_one(function, target):
    assert function("axpy", target=target).target == Target.parse(target)


@pytest.mark.parametrize(
    "target", ["foo", "cuda", "cuda:foo", "sm_90z", "sm_9", "cpu:foo", "rocm:gfx90a", "host"]
)
@pytest.mark.parametrize("made", [str, Target.parse])
def test_an_unknown_target_is_refused_by_name(target, made):
    with pytest.raises(errors.ProgramError, match="a target such as 'sm_90a', 'compute_90'") as caught:
        from_module("nowhere.so", "axpy", target=made(target))
    assert caught.value.field == "target"
    assert repr(str(Target.parse(target))) in str(caught.value)


@pytest.mark.parametrize("target", ["", "SM 90", 90, object()])
def test_what_is_no_target_is_refused_before_anything_is_loaded(target):
    with pytest.raises(errors.ProgramError) as caught:
        from_module("nowhere.so", "axpy", target=target)
    assert caught.value.field == "target"
