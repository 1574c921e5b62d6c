"""Laws of the host's memory: what calls leave there does not grow with their number."""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
import tempfile
import threading
import warnings
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import ArgumentError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.module_variable import ModuleVariable
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.workspace import Workspace
from trunnion.testing.history import in_a_thread
from trunnion.testing.laws import law, passing_over_what_is_there
from trunnion.testing.strategies import TensorSpec
from trunnion.testing.strategies.programs import CODE
from trunnion.testing.ways import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.launch import Argument
    from trunnion.model.window import AccessPolicyWindow
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_EXTENT: Final = 1000
"""Elements of most tensors: a number that Python makes anew each time."""

_NUMBER: Final = 1000
"""The number of most calls; those after it Python makes anew each time, too."""

_ADDRESSES: Final = 1024 + 64
"""Calls that are counted, at new addresses: more than those of which a launcher may keep something."""

_LAYOUTS: Final = 512 + 64
"""The same of new extents."""

_TIMES: Final = 128
"""The same of those that are alike: many enough for what each of them would leave."""

_LOADS: Final = 32
"""Programs that are loaded, called and closed."""

_IN_ALL: Final = 3.5
"""How many times as many calls are made in all: two times are counted, which end alike.

The others fill what is kept, and go on until its table has the size that it keeps where keys come and go.
"""

_BETWEEN: Final = 32
"""Calls between two looks."""

_LEAST_OBJECTS: Final = 0.5
"""Objects more for each call that are too many: what keeps something keeps one at least."""

_LEAST_BYTES: Final = 8
"""The same of the bytes that ``malloc`` gave, which are 32 at least."""

_LEAST_OF_LOADS: Final = 2 << 10
"""The same of loads, which take and give back far more: what is kept of a program has its image or its text."""

_SLACK: Final = 16 << 10
"""Bytes that tables which grow by steps may take, and what is too small to be given again."""


class _Mallinfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks"),
            "keepcost",
        )
    )


@functools.cache
def _mallinfo() -> Callable[[], Any] | None:
    """Return glibc's ``mallinfo2``; None where the C library has none."""
    found = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if found is not None:
        found.argtypes, found.restype = (), _Mallinfo
    return found


def _in_use() -> tuple[int, int]:
    """Return how many blocks Python has given, and how many bytes ``malloc``: none, where it does not say."""
    gc.collect()  # which empties the lists of free objects too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.13 on, of the name
        sys._clear_type_cache()  # noqa: SLF001 - documented; names of attributes are kept there
    told = _mallinfo()
    info = None if told is None else told()
    return sys.getallocatedblocks(), 0 if info is None else info.uordblks + info.hblkhd


@law("C9", given=lambda _: st.none(), cost="process", ways=("call",))
def host_memory_of_calls(harness: Harness, _: None) -> None:
    """Calls take no more of the host's memory the more there are, at new addresses, of new extents or refused.

    So it is with new numbers, on new streams, into new destinations and from new threads. Of what a launcher keeps
    there is a most, which the first calls of each kind reach. A program that is closed leaves nothing, neither a
    temporary file nor an open one, nor a thread.
    """
    program = _program(harness)
    with harness.loaded(program) as loaded, passing_over_what_is_there():
        for kind, calls in _series(harness, loaded):
            _check_grown(harness, kind, calls, _LEAST_BYTES)
        for made in (program, _prepared_for(harness)):
            _check_loads(harness, made)


def _check_loads(harness: Harness, program: KernelProgram) -> None:
    """Require that programs that are loaded and closed leave nothing, neither in memory nor of files and threads."""
    loads = _loads(harness, program)
    with _own_temporary_files() as folder:
        loads[0]()  # a process may keep one thing for all its programs
        before = _left(folder)
        _check_grown(harness, "of a program that is loaded and closed", loads, _LEAST_OF_LOADS)
        left = [now - then for now, then in zip(_left(folder), before, strict=True)]
    files = f"{left[0]} temporary files, {left[1]} open ones"
    told = f"{len(loads)} programs that were loaded and closed left {files}, {left[2]} threads"
    harness.require(max(left) < len(loads) * _LEAST_OBJECTS, told)


@contextmanager
def _own_temporary_files() -> Iterator[Path]:
    """Have the block's temporary files made in a folder of their own."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder:
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


def _left(folder: Path) -> tuple[int, int, int]:
    """Return how many files lie in a folder, how many are open, and how many threads there are, as far as known."""
    told = (Path("/proc/self") / what for what in ("fd", "task"))
    opened, threads = (len(list(one.iterdir())) if one.exists() else 0 for one in told)
    return len(list(folder.iterdir())), opened, max(threads, threading.active_count())


def _check_grown(harness: Harness, kind: str, calls: Sequence[Callable[[], object]], bytes_each: int) -> None:
    """Require that less is in use behind the last calls than behind as many before, and so many bytes for each.

    Calls that are all the same are made once more before they are blamed: a table that grew does not grow again.
    """
    each = int(len(calls) / _IN_ALL)
    _make(harness, calls[: -2 * each])
    least = [_least(harness, some) for some in (calls[-2 * each : -each], calls[-each:])]
    limits = each * _LEAST_OBJECTS, each * bytes_each + _SLACK
    if calls[0] is calls[-1] and not _are_few(least, limits):
        least = [least[-1], _least(harness, calls[-each:])]
    grown = [after - before for before, after in zip(*least, strict=True)]
    told = f"{each} calls {kind}, after as many: {grown[0]} objects more, {grown[1]} bytes"
    harness.require(_are_few(least, limits), told)


def _are_few(least: Sequence[tuple[int, int]], limits: tuple[float, float]) -> bool:
    """Whether what came between two looks is less than its limits: objects, and bytes."""
    before, after = least
    return all(now - then < most for then, now, most in zip(before, after, limits, strict=True))


def _least(harness: Harness, calls: Sequence[Callable[[], object]]) -> tuple[int, int]:
    """Make calls, and return the least that was in use between them: what is made and let go of does not count."""
    looks = []
    for start in range(0, len(calls), _BETWEEN):
        _make(harness, calls[start : start + _BETWEEN])
        looks.append(_in_use())
    objects, nbytes = zip(*looks, strict=True)
    return min(objects), min(nbytes)


def _make(harness: Harness, calls: Sequence[Callable[[], object]]) -> None:
    def make() -> None:
        for one in calls:
            one()

    harness.machine.call(make)
    harness.machine.clear_trace()


def _program(harness: Harness) -> KernelProgram:
    """Return a program whose calls need all that a launcher may keep or make: maps, an output, a workspace."""
    one = Const(1)
    n: Expr = Symbol("n") if Capability.DYNAMIC_SHAPES in harness.capabilities else Const(_EXTENT)
    tensors = tuple(TensorParam(name, dtype("float32"), (n,), alignment=16) for name in "ab")
    output = TensorParam("c", dtype("float32"), (n,), access="write")
    number = ScalarParam("s", dtype("int32"))
    args: list[Argument] = [*tensors, output, number]
    if Capability.TMA_TILED in harness.capabilities:
        args.append(tensors[0].tiled((16,)))
    if Capability.WORKSPACE in harness.capabilities:
        args.append(Workspace("w", dtype("uint8"), (n,)))
    launch = KernelLaunch("k", tuple(args), (one, one, one), (one, one, one))
    return KernelProgram("p", Signature((*tensors, number), (output,)), (CODE,), (launch,))


def _prepared_for(harness: Harness) -> KernelProgram:
    """Return a program whose loading and first call take what closing gives back: variables, and cache for a window."""
    one = Const(1)
    tensors = tuple(TensorParam(name, dtype("float32"), (Const(_EXTENT),)) for name in "ab")
    number = ScalarParam("s", dtype("int32"))
    window: AccessPolicyWindow | None = None
    variables: tuple[ModuleVariable, ...] = ()
    if Capability.ACCESS_POLICY_WINDOW in harness.capabilities:
        window = tensors[0].window()
    if Capability.MODULE_VARIABLES in harness.capabilities:
        variables = (ModuleVariable("v", dtype("int32"), (2,), bytes(8)),)
    launch = KernelLaunch("k", (*tensors, number), (one,) * 3, (one,) * 3, window=window)
    return KernelProgram("p", Signature((*tensors, number)), (CODE,), (launch,), variables=variables)


def _series(harness: Harness, loaded: LoadedProgram) -> Iterator[tuple[str, Sequence[Callable[[], object]]]]:
    """Yield calls of each kind, more than are counted; all that they are given is there before the first."""
    entry, step = loaded.entry, 4  # elements, so that each address is good for a map
    times, addresses, layouts = (int(_IN_ALL * most) for most in (_TIMES, _ADDRESSES, _LAYOUTS))
    extent = 2 * _EXTENT + step * addresses
    (whole,) = harness.arguments((TensorSpec(dtype="float32", shape=(extent,), strides=(1,)),))
    first, other = whole[:_EXTENT], whole[_EXTENT : 2 * _EXTENT]
    for word, make in _MAKING.items():
        alike = functools.partial(make, Arguments(args=[first, other, _NUMBER]), loaded)
        yield f"alike, by {word}", [alike] * times
    starts = range(0, step * addresses, step)
    elsewhere = [whole[start : start + _EXTENT] for start in starts]
    # A number decides no more than what is passed: the same calls have new ones.
    yield (
        "at new addresses, with new numbers",
        [functools.partial(entry, one, other, _NUMBER + place) for place, one in enumerate(elsewhere)],
    )
    (room,) = harness.arguments((TensorSpec(dtype="float32", shape=(extent,), strides=(1,)),))
    call = functools.partial(entry, first, other, _NUMBER)
    places = ((harness.simulator.new_stream(0), room[start : start + _EXTENT]) for start in starts)
    into = [functools.partial(call, stream=stream, out=out) for stream, out in places]
    yield "on new streams, into new destinations", into
    for one in into:  # or the driver's table of them grows at any time
        harness.simulator.state.remove(harness.simulator.state.handled[one.keywords["stream"]])
    threaded = functools.partial(_in_a_new_thread, harness, call)
    yield "from new threads", [threaded] * times
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        extents = range(_EXTENT + 1, _EXTENT + 1 + layouts)
        longer = [(whole[:extent], whole[_EXTENT : _EXTENT + extent]) for extent in extents]
        yield "of new extents", [functools.partial(entry, *pair, _NUMBER) for pair in longer]
    for word, wrong in _wrong(first, whole).items():
        refused = functools.partial(_refused, harness, entry, *wrong)
        yield f"refused for {word}", [refused] * times


def _in_a_new_thread(harness: Harness, call: Callable[[], object]) -> None:
    """Make a call in a thread that ends with it; what the simulated driver keeps of that thread goes, too."""

    def make() -> None:
        try:
            harness.machine.call(call)
        finally:
            harness.simulator.state.end_thread()

    in_a_thread(make)


def _loads(harness: Harness, program: KernelProgram) -> Sequence[Callable[[], object]]:
    """Return calls that load a program each, and close it."""
    artifact = harness.built(program)
    given = harness.arguments((TensorSpec(dtype="float32", shape=(_EXTENT,), strides=(1,)),) * 2)

    def load() -> None:
        with closing(harness.reopen(program, artifact)) as loaded:
            loaded.entry(*given, _NUMBER)

    return [load] * int(_IN_ALL * _LOADS)


def _launch_bound(given: Arguments, loaded: LoadedProgram) -> object:
    return given.bind(loaded)()


_MAKING: Final[Mapping[str, Callable[[Arguments, LoadedProgram], object]]] = {
    "call": Arguments.launch,
    "entry": Arguments.enter,
    "bind": _launch_bound,
}
"""How calls are made, by the words for it."""


def _wrong(first: Any, whole: Any) -> Mapping[str, tuple[Any, ...]]:
    """Return arguments of calls that are refused, by what is wrong."""
    shorter, moved = whole[: _EXTENT - 1], whole[1 : 1 + _EXTENT]
    return {
        "an element type": (first, first.view(TensorSpec(dtype="int32", shape=(), strides=()).kind), _NUMBER),
        "an extent": (first, shorter, _NUMBER),
        "an address": (first, moved, _NUMBER),
        "no tensor": (first, None, _NUMBER),
    }


def _refused(harness: Harness, call: Callable[..., object], *args: Any) -> None:
    try:
        call(*args)
    except ArgumentError:
        return
    harness.violation("a wrong call went through")
