"""Objects of ``cuda.core``: its streams are taken as ``stream=``, its object code as device code.

They are known by what they have, and trunnion imports nothing of theirs. Twins with the same attributes stand in for
them; where ``cuda.core`` is installed too, its own objects are tried as well.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import DeviceCode, ProgramBuilder
from trunnion.errors import ArgumentTypeError, ProgramError
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Signature
from trunnion.model.program import KernelProgram
from trunnion.sim.trace import Launched

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = 'extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 3; }'
KINDS = ("cubin", "ptx")
INSTALLED = find_spec("cuda") is not None and find_spec("cuda.core") is not None


@dataclass
class Twin:
    """What ``cuda.core.ObjectCode`` has."""

    code_type: Any = "cubin"
    code: Any = b"\x7fELF"
    name: Any = "made"


class StreamTwin:
    """What ``cuda.core.Stream`` has."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def real_object(kind: str, data: bytes, name: str) -> Any:
    from cuda.core import ObjectCode

    return getattr(ObjectCode, f"from_{kind}")(data, name=name)


def real_stream(handle: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)


OBJECTS: list[Callable[[str, bytes, str], Any]] = [Twin, *([real_object] if INSTALLED else [])]
STREAMS: list[Callable[[int], Any]] = [StreamTwin, *([real_stream] if INSTALLED else [])]


def program(given: Any, **launch: Any) -> KernelProgram:
    p = ProgramBuilder("fill", given)
    x = p.output("x", "float32", (8,))
    p.launch("fill", (x,), grid=1, block=8, **launch)
    return p.build()


def made(kind: str) -> bytes:
    """Return an image as other tools make it; PTX with the NUL at its end that compilers write."""
    target = "compute_90" if kind == "ptx" else "sm_90"
    built = trunnion.compile(program(DeviceCode("cuda", SOURCE)), "nvrtc", target=target)
    return built.image(kind).rstrip(b"\0") + b"\0" if kind == "ptx" else built.image(kind)


@pytest.mark.parametrize("make", OBJECTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_object_code_is_device_code_and_launches(kind: str, make: Any, simulator: Any) -> None:
    code = make(kind, made(kind), "made")
    described = program(code)
    assert described == program([code])
    (part,) = described.code
    assert program(code, code=code).launches[0].code == part
    assert (part.language, part.name) == (kind, "made")
    assert KernelProgram.from_json(described.to_json()) == described
    built = trunnion.compile(described, "nvrtc", target="sm_90")
    simulator.register_body(
        "fill", lambda call: call.memory.view(call.pointer(0), "float32", (8,)).__setitem__(slice(None), 3)
    )
    with simulator.torch_mode():
        assert built(device=0).tolist() == [3] * 8


def test_it_may_stand_beside_other_code() -> None:
    parts = KernelProgram(
        "fill",
        Signature(),
        (Twin("ptx", b".version 9.0\n"), DeviceCode("cuda", SOURCE)),  # type: ignore[arg-type]  # what is tried
        (KernelLaunch("fill", (), grid=1, block=1),),
    ).code
    assert [part.language for part in parts] == ["ptx", "cuda"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            Twin("object"),
            "got object code of the type 'object', expected one of 'cubin', 'fatbin', 'ltoir', 'ptx'",
        ),
        (Twin("\x1b[31m" * 99), "expected one of 'cubin', "),
        (
            Twin(code="image.cubin"),
            "got str 'image.cubin', expected the bytes of a cubin; DeviceCode.from_file",
        ),
        (Twin("ptx", ".version 9.0"), "expected the bytes of a ptx"),
        (Twin(code=bytearray(b"x")), "got bytearray, expected the bytes"),
        (Twin(code=None), "got NoneType, expected the bytes"),
        (Twin("ptx", b"\xff\xfe"), "is no UTF-8"),
        (Twin("ptx", b"a\0b"), "which no source"),
    ],
)
@pytest.mark.parametrize("place", ["alone", "among others", "at a launch"])
def test_what_cannot_be_taken_is_refused_by_what_it_is(given: Any, said: str, place: str) -> None:
    ways: dict[str, Callable[[], object]] = {
        "alone": lambda: program(given),
        "among others": lambda: program([DeviceCode("cuda", SOURCE), given]),
        "at a launch": lambda: program(DeviceCode("cuda", SOURCE), code=given),
    }
    with pytest.raises(ProgramError) as caught:
        ways[place]()
    assert said in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert ".code" in f".{caught.value.field}"


@pytest.mark.parametrize("place", ["alone", "among others", "at a launch"])
@pytest.mark.parametrize("library", ["cuda.core", "cuda.core.experimental"])
def test_of_a_kernel_its_object_code_is_asked_for(
    library: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kernel:
        """What is loaded, of which there is no image."""

    monkeypatch.setitem(sys.modules, library, SimpleNamespace(Kernel=Kernel))  # type: ignore[arg-type]  # no module
    ways: dict[str, Callable[[], object]] = {
        "alone": lambda: program(Kernel()),
        "among others": lambda: program([DeviceCode("cuda", SOURCE), Kernel()]),
        "at a launch": lambda: program(DeviceCode("cuda", SOURCE), code=Kernel()),
    }
    with pytest.raises(ProgramError, match=r"got a cuda\.core Kernel, .*expected the ObjectCode"):
        ways[place]()


class Hostile:
    """Of which every attribute that a test names raises, or ends the process."""

    def __init__(self, **kept: Any) -> None:
        self.__dict__ |= kept

    def __getattr__(self, name: str) -> Any:
        raise SystemExit(name)


class Answering:
    def __getattr__(self, name: str) -> Any:
        return Answering()


class Text(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise SystemExit

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "given", [Hostile(), Hostile(code_type="cubin"), Answering(), Twin, Twin(code_type=5), object()], ids=type
)
def test_hostile_objects_are_refused_as_what_they_are(given: Any) -> None:
    for ask in (lambda: program(given), lambda: program([given])):
        with pytest.raises(ProgramError):
            ask()


def test_of_a_hostile_name_nothing_is_asked() -> None:
    for name in (None, "", 5, Answering()):
        (part,) = program(Twin("cubin", b"x", name)).code
        assert part.name == "object.cubin"
    (part,) = program(Hostile(code_type=Text("cubin"), code=b"x")).code
    assert (part.language, part.name, type(part.language)) == ("cubin", "object.cubin", str)


def test_a_user_interrupts_all_the_same() -> None:
    class Slow:
        @property
        def code_type(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        program(Slow())


@pytest.mark.parametrize("make", STREAMS, ids=lambda make: make.__name__)
def test_a_stream_is_taken_for_what_it_is(make: Any, simulator: Any) -> None:
    built = trunnion.compile(program(DeviceCode("cuda", SOURCE)), "nvrtc", target="sm_90")
    handle = simulator.new_stream(0)
    stream = make(handle)
    with simulator.torch_mode():
        built(stream=stream, device=0)
        (launched,) = (event for event in simulator.trace if isinstance(event, Launched))
        assert launched.stream == handle
        bound = built.bind(stream=stream, device=0)
        assert bound.stream == handle
        with pytest.raises(ArgumentTypeError, match="__cuda_stream__"):
            built(stream=type(stream), device=0)


def test_nothing_of_cuda_core_is_imported() -> None:
    asked = (
        "import sys; from trunnion import DeviceCode, ProgramBuilder\n"
        "class Twin:\n    code_type, code, name = 'cubin', b'x', 'n'\n"
        "ProgramBuilder('p', Twin())\n"
        "assert not [name for name in sys.modules if name == 'cuda' or name.startswith('cuda.')]"
    )
    subprocess.run([sys.executable, "-c", asked], check=True)


class KernelTwin:
    """What ``cuda.core.Kernel`` has: a handle of what is loaded, and no image."""

    handle = 1
    num_arguments = 3


def test_a_kernel_which_holds_no_image_is_refused_by_its_name() -> None:
    with pytest.raises(ProgramError, match="got KernelTwin, expected a DeviceCode"):
        program(KernelTwin())
