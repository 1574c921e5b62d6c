"""`Bench`: one program's arguments, and every way to launch with them, each checked before it is timed."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import torch

import trunnion
from launching.trial import NativeLoop, PythonCall
from trunnion.call_helper import installed_choice, installed_helper, no_helper
from trunnion.torch_runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from launching.trial import Trial
    from real_hosts.building import Built, Library
    from real_hosts.project import Project, Way
    from trunnion.model.program import KernelProgram

__all__ = ["BACKENDS", "WAYS", "Bench", "native_loop"]

BACKENDS = ("nvrtc", "tvm_ffi", "cutedsl")
"""Those that take CUDA C++."""

WAYS = {
    "__call__": "checks every argument",
    "entry": "checks every argument",
    "bind": "checked its arguments when they were bound",
}
"""The ways into a program of ours, and what each does."""


class Bench:
    """What is measured of one program.

    Parameters
    ----------
    project
        The project.
    place
        The device, as torch names it.
    """

    def __init__(self, project: Project, place: str = "cuda") -> None:
        torch.manual_seed(0)
        subject = project.subject
        self.project = project
        self.given: tuple[Any, ...] = subject.arguments(project.shape, place)
        self.expected: torch.Tensor = subject.reference(*self.given)
        self.trials: dict[str, Trial] = {}
        self.problems: dict[str, str] = {}
        self.does = {self.named(way): way.does for way in project.ways}

    def named(self, way: Way) -> str:
        """Return what the row of a way to call the project's host code is called."""
        return " ".join((self.project.copied, way.function, *way.defines))

    @property
    def first(self) -> str:
        """The row that differences are taken to."""
        return next(iter(self.does))

    def add(self, name: str, does: str, make: Callable[[], Trial]) -> None:
        """Add a way to launch, once it is made and its result is the reference's within the program's tolerance.

        Parameters
        ----------
        name
            The row's.
        does
            What each call does.
        make
            Returns the way.
        """
        self.does[name] = does
        try:
            trial = make()
            self.out.fill_(float("nan"))
            trial.once(0)
            torch.cuda.synchronize()
            found = self.out.to(self.expected.dtype)
            torch.testing.assert_close(found, self.expected, **self.project.subject.TOLERANCE)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is a row, and ends no other
            said = " ".join(str(error).split())[:300]
            self.problems[name] = f"{type(error).__name__}: {said}"
        else:
            self.trials[name] = trial

    @functools.cached_property
    def program(self) -> KernelProgram:
        """The program; to measure structs, its source is compiled once."""
        described: KernelProgram = self.project.subject.program()
        return described

    @functools.cached_property
    def out(self) -> torch.Tensor:
        """What every way writes."""
        (output,) = self.program.signature.outputs
        return torch.empty_like(self.expected, dtype=getattr(torch, output.dtype.name))

    def add_ours(self, backend: str) -> None:
        """Add every way into the program as a backend builds it; what fails to build is a row for each."""
        build = functools.cache(lambda: trunnion.compile(self.program, backend))
        helper = installed_choice()
        labels = {backend: False}
        if backend == "nvrtc" and helper.helper is not None:  # the one whose launcher is Python
            labels[f"{backend} + {helper.name}"] = True
        for label, helped in labels.items():
            for way, does in WAYS.items():
                self.add(f"{label} {way}", does, functools.partial(self._ours, build, way, helped=helped))

    def _ours(self, build: Callable[[], Any], way: str, *, helped: bool) -> Trial:
        runtime = default_runtime(find_helper=installed_helper if helped else no_helper)
        program = trunnion.CompiledProgram.from_artifact(build().artifact, runtime=runtime)
        if way == "bind":
            return PythonCall("bound()", {"bound": program.bind(*self.given, out=self.out)})
        names = {f"given_{index}": value for index, value in enumerate(self.given)}
        call = program.entry if way == "entry" else program
        return PythonCall(f"call({', '.join(names)}, out=out)", {"call": call, "out": self.out, **names})

    def add_theirs(self, built: Mapping[Library, Future[Built]]) -> None:
        """Add every way to call the project's own host code; waits until it is compiled."""
        for library, future in built.items():
            if library.project is self.project:
                for way in self.project.ways:
                    if way.defines == library.defines:
                        self.add(self.named(way), way.does, functools.partial(self._theirs, way, future))

    def _theirs(self, way: Way, future: Future[Built]) -> Trial:
        built = future.result()
        if built.problem:
            raise RuntimeError(f"nvcc failed: {built.problem}")
        # The driver's functions that a project calls itself are looked for in what the process has loaded.
        ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
        function = getattr(ctypes.CDLL(str(built.path)), way.function)
        return native_loop(
            function, self.project.tensors(self.given, self.out), self.project.numbers(self.given)
        )


def native_loop(function: Any, tensors: tuple[torch.Tensor, ...], numbers: tuple[int, ...]) -> NativeLoop:
    """Return a way to launch by a function that `timed.h` describes.

    Parameters
    ----------
    function
        The function, from ctypes.
    tensors
        Kept as long as the way.
    numbers
        Its numbers.
    """
    function.restype = ctypes.c_double
    addresses = (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
    values = (ctypes.c_longlong * len(numbers))(*numbers)

    def loop(_: int, calls: int, _kept: object = tensors) -> float:
        seconds = float(function(ctypes.c_longlong(calls), addresses, values))
        if seconds < 0:
            raise RuntimeError("the project's host code, or CUDA's runtime, reported an error")
        return seconds

    return NativeLoop(loop)
