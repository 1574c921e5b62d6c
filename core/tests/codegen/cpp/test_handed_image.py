"""A launcher without an image is handed one when it is loaded: that one, once, with a name for each kernel."""

from __future__ import annotations

import pytest
import torch
import tvm_ffi

from trunnion.codegen.cpp.build import build_launcher
from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.codegen.cpp.program import CppProgram, HandedImage
from trunnion.errors import DriverError, LifecycleError, ProgramError
from trunnion.image.synthetic import SyntheticKernel, synthetic_cubin
from trunnion.model.builder import ProgramBuilder
from trunnion.model.program import DeviceCode
from trunnion.sim.trace import Launched
from trunnion.testing.machine import synthetic_image

pytestmark = pytest.mark.tvm_ffi_abi


def two_kernels():
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (8,), access="read_write")
    p.launch("first", (x,), 1, 32)
    p.launch("second", (x, 3), 2, 32)
    return p.build()


PROGRAM = two_kernels()
IMAGE = synthetic_image(PROGRAM)
HANDED = HandedImage(IMAGE.data, tuple(kernel.symbol for kernel in IMAGE.kernels))


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Return the bytes of a launcher without an image."""
    text = emit_launcher(PROGRAM.plan())
    return build_launcher(text, None, (), tmp_path_factory.mktemp("bare"), plugin="test")


@pytest.fixture
def module(simulator, bare, tmp_path):
    """Return it as anybody's module."""
    (tmp_path / "launcher.so").write_bytes(bare)
    return tvm_ffi.load_module(tmp_path / "launcher.so")


@pytest.fixture
def load(simulator, bare):
    """Hand it an image."""
    made = []

    def load_with(image):
        made.append(CppProgram(bare, CallSignature.of(PROGRAM.plan()), simulator.runtime, "test", image))
        return made[-1]

    with simulator.torch_mode():
        yield load_with
    for program in made:
        program.close()


def test_it_launches_the_kernels_of_that_image(simulator, load):
    program = load(HANDED)
    program.entry(torch.zeros(8, device="cuda"))
    launched = [one for one in simulator.trace if isinstance(one, Launched)]
    assert [one.kernel for one in launched] == list(HANDED.symbols)


def test_two_of_one_library_have_an_image_each(simulator, load):
    renamed = [
        SyntheticKernel(name=f"other_{kernel.symbol}", parameters=kernel.parameters)
        for kernel in IMAGE.kernels
    ]
    other = HandedImage(synthetic_cubin(renamed, "sm_90a"), tuple(kernel.name for kernel in renamed))
    one, two = load(HANDED), load(other)
    x = torch.zeros(8, device="cuda")
    two.entry(x)
    one.entry(x)
    launched = [one.kernel for one in simulator.trace if isinstance(one, Launched)]
    assert launched == [*other.symbols, *HANDED.symbols]


def test_the_bytes_may_go_once_they_are_handed_over(simulator, module):
    image, names = bytearray(HANDED.data), bytearray(HANDED.names)
    module.load(bytes(image), bytes(names))
    del image, names
    module.preload(0)
    module.close()


@pytest.mark.parametrize("call", ["load", "preload", "main"])
def test_without_an_image_it_says_so(simulator, module, call):
    with simulator.torch_mode():
        arguments = {"load": (), "preload": (0,), "main": (torch.zeros(8, device="cuda"),)}[call]
        with pytest.raises(RuntimeError, match="has no image of its own; hand it one"):
            getattr(module, call)(*arguments)


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ((b"image",), TypeError, "got 1 arguments, expected 2 ('image', 'names')"),
        (("image", b"a\0b\0"), TypeError, "argument 'image': got str, expected bytes"),
        ((b"image", 7), TypeError, "argument 'names': got int, expected bytes"),
        ((b"", b"a\0b\0"), ValueError, "argument 'image': got 0 bytes, expected a cubin, or PTX"),
        *(
            ((b"image", names), ValueError, f"argument 'names': got {len(names)} bytes, expected 2 kernels'")
            for names in (b"", b"\0\0", b"a\0", b"a\0b", b"a\0b\0\0", b"a\0\0b\0", b"a\0b\0c\0", b"\0a\0b")
        ),
    ],
)
def test_what_is_no_image_with_its_names_is_refused(module, arguments, kind, said):
    with pytest.raises(kind) as caught:
        module.load(*arguments)
    assert said in str(caught.value)
    module.load(HANDED.data, HANDED.names)
    module.close()


def test_the_names_of_variables_follow_those_of_kernels(simulator, tmp_path):
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("first", (p.variable("v", "int32", (2,)),), 1, 32)
    text = emit_launcher(p.build().plan())
    (tmp_path / "launcher.so").write_bytes(build_launcher(text, None, (), tmp_path, plugin="test"))
    module = tvm_ffi.load_module(tmp_path / "launcher.so")
    said = "got 2 bytes, expected 1 kernels' exact names, then 1 variables', each with a zero byte behind it"
    with pytest.raises(ValueError, match=said):
        module.load(b"image", b"k\0")
    module.close()


def test_it_takes_one_image_only(module):
    module.load(HANDED.data, HANDED.names)
    module.load()
    with pytest.raises(RuntimeError, match="has its image already"):
        module.load(HANDED.data, HANDED.names)
    module.close()


def test_one_with_its_own_image_takes_none(simulator, built, tmp_path):
    (tmp_path / "launcher.so").write_bytes(built(PROGRAM))
    module = tvm_ffi.load_module(tmp_path / "launcher.so")
    with pytest.raises(RuntimeError, match="has its image already"):
        module.load(HANDED.data, HANDED.names)
    module.load()
    module.close()


def test_a_kernel_that_is_not_in_the_image_is_the_driver_s_to_refuse(load):
    with pytest.raises(DriverError) as caught:
        load(HandedImage(HANDED.data, ("kernel_0", "nobody")))
    assert caught.value.call == "cuLibraryGetKernel"


def test_a_name_that_cannot_be_handed_over(load):
    with pytest.raises(ProgramError, match="holds no zero byte"):
        load(HandedImage(HANDED.data, ("kernel_0", "kernel\0_1")))


def test_a_closed_one_takes_no_image(module):
    module.close()
    with pytest.raises(RuntimeError, match="the program was closed"):
        module.load(HANDED.data, HANDED.names)
    assert issubclass(LifecycleError, RuntimeError)
