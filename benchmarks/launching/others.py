"""What else launches kernels from Python: each as its own users would call it."""

from __future__ import annotations

import functools
import importlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from launching.case import KERNEL, MEBIBYTE_SHIFT, SHAPE, THREADS, Case
from launching.subject import NotHereError, Subject, one_plain_launch
from launching.tilelang_style import TILELANG_STYLE
from launching.trial import PythonCall
from launching.written import import_text

if TYPE_CHECKING:
    from launching.stage import Stage
    from launching.trial import Trial

__all__ = ["OTHERS", "UNCHECKED", "numpy_numbers", "triton_text"]

_ADD_TENSORS = 3


def _no_maps(case: Case) -> None:
    if case.maps:
        raise NotHereError("takes no tensor maps")


def _one_launch(case: Case) -> None:
    if case.launches > 1 or case.packed:
        raise NotHereError("builds no struct" if case.packed else "is one launch")


def numpy_numbers(stage: Stage) -> dict[str, Any]:
    """Return what is passed between the tensors and the scalar as NumPy's; an address or a struct as an int64."""
    numpy: Any = importlib.import_module("numpy")
    types = {number.name: number.kind.replace("bool", "bool_") for number in stage.case.numbers}
    types |= {number.name: "int64" for number in stage.case.numbers if number.kind in ("pointer", "struct")}
    bits = dict(zip(types, stage.number_bits, strict=True))
    return {
        name: getattr(numpy, kind)(bits[name] if kind == "int64" else stage.numbers[name])
        for name, kind in types.items()
    }


# cuda.core ------------------------------------------------------------------------------------------------------


def _cuda_core(stage: Stage) -> Trial:
    core: Any = importlib.import_module("cuda.core")
    numpy: Any = importlib.import_module("numpy")
    case = stage.case
    _one_launch(case)
    numbers = numpy_numbers(stage)
    device = core.Device(0)
    device.set_current()
    names = {
        "launch": core.launch,
        "stream": device.create_stream(_CurrentStream()),
        "config": core.LaunchConfig(grid=case.grid, block=THREADS),
        "kernel": core.ObjectCode.from_cubin(stage.cubin).get_kernel(KERNEL),
        "StridedMemoryView": importlib.import_module("cuda.core.utils").StridedMemoryView,
        "box": SHAPE,
        **stage.named,
        **numbers,
    }
    mapped = [
        f"StridedMemoryView.from_any_interface({name}, -1).as_tensor_map(box)"
        for name in case.names[: case.maps]
    ]
    pointers = [f"{name}.data_ptr()" for name in case.names[case.maps :]]
    arguments = ", ".join([*mapped, *pointers, *numbers, "word"])
    return PythonCall(f"launch(stream, config, kernel, {arguments})", names, scalar=numpy.int32)


class _CurrentStream:
    """Torch's current stream, for the protocol that cuda.core asks."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, torch.cuda.current_stream(0).cuda_stream


# CuPy -----------------------------------------------------------------------------------------------------------


def _cupy(stage: Stage) -> Trial:
    _no_maps(stage.case)
    _one_launch(stage.case)
    numbers = numpy_numbers(stage)
    cupy: Any = importlib.import_module("cupy")
    numpy: Any = importlib.import_module("numpy")
    image = Path(tempfile.mkdtemp(prefix="trunnion-benchmark-")) / "kernel.cubin"
    image.write_bytes(stage.cubin)
    # An array that is a view of a tensor holds it, which makes every other subject that is passed it faster or slower.
    own = {name: tensor.clone() for name, tensor in stage.named.items()}
    names = {
        "kernel": cupy.RawModule(path=str(image)).get_function(KERNEL),
        "grid": (stage.case.grid,),
        "block": (THREADS,),
        **{name: cupy.from_dlpack(tensor) for name, tensor in own.items()},
        **numbers,
    }
    arguments = "".join(f"{name}, " for name in (*stage.case.names, *numbers, "word"))
    call = PythonCall(f"kernel(grid, block, ({arguments}))", names, scalar=numpy.int32)
    return _OnItsOwn(call, own[stage.case.names[-1]] if own else None)


@dataclass(frozen=True, slots=True)
class _OnItsOwn:
    """A launch over copies of the tensors."""

    call: PythonCall
    """The launch."""

    last: torch.Tensor | None
    """The copy that it writes."""

    def once(self, word: int) -> torch.Tensor | None:
        """Launch and return what was written; see `Trial.once`."""
        if self.last is not None:
            self.last.fill_(float("nan"))
        self.call.once(word)
        return self.last

    def seconds(self, launches: int) -> float:
        """Time the launch; see `Trial.seconds`."""
        return self.call.seconds(launches)


# Triton ---------------------------------------------------------------------------------------------------------


def triton_text(case: Case) -> str:
    """Return the case's kernel in Triton's language."""
    block = f"tl.arange(0, {SHAPE[0]})[:, None] * {SHAPE[1]} + tl.arange(0, {SHAPE[1]})[None, :]"
    place = block if case.maps else f"tl.program_id(0) * {THREADS} + tl.arange(0, {THREADS})"
    *inputs, last = case.names or ("",)
    values = [
        f"{name}.load([0, 0])" if index < case.maps else f"tl.load({name} + place)"
        for index, name in enumerate(inputs)
    ]
    total = " + ".join([*values, "word"])
    if not case.tensors:
        store = f"tl.store((word.to(tl.int64) << {MEBIBYTE_SHIFT}).to(tl.pointer_type(tl.int32)), 42)"
    elif case.maps == case.tensors:
        store = f"{last}.store([0, 0], {total})"
    else:
        store = f"tl.store({last} + place, tl.zeros({_extent(case)}, tl.float32) + {total})"
    lines = [
        "import triton",
        "import triton.language as tl",
        "",
        "@triton.jit",
        f"def {KERNEL}({', '.join([*case.names, 'word'])}):",
        "    if word != 0:",
        f"        place = {place}",
        f"        {store}",
    ]
    return "\n".join(lines) + "\n"


def _extent(case: Case) -> str:
    return str(list(SHAPE)) if case.maps else f"[{THREADS}]"


def _triton(stage: Stage) -> Trial:
    case = stage.case
    one_plain_launch(case)
    module = import_text(f"triton_{case.tensors}_{case.maps}", triton_text(case))
    named = stage.named
    if case.maps:
        tools: Any = importlib.import_module("triton.tools.tensor_descriptor")
        for name in case.names[: case.maps]:
            named[name] = tools.TensorDescriptor.from_tensor(named[name], list(SHAPE))
    arguments = ", ".join([*case.names, "word"])
    return PythonCall(f"kernel[grid]({arguments})", {"kernel": module.receive, "grid": (case.grid,), **named})


# torch ----------------------------------------------------------------------------------------------------------


def _torch_kernel(stage: Stage) -> Trial:
    _no_maps(stage.case)
    one_plain_launch(stage.case)
    compile_kernel: Any = getattr(torch.cuda, "_compile_kernel", None)
    if compile_kernel is None:
        raise NotHereError("this torch has no torch.cuda._compile_kernel")
    names = {
        "kernel": compile_kernel(stage.case.source(), KERNEL),
        "grid": (stage.case.grid, 1, 1),
        "block": (THREADS, 1, 1),
        **stage.named,
    }
    return PythonCall(f"kernel(grid, block, [{', '.join([*stage.case.names, 'word'])}])", names)


def _torch_add(stage: Stage, *, allocating: bool) -> Trial:
    if stage.case != Case(_ADD_TENSORS):
        raise NotHereError("takes three tensors")
    text = "add(t0, t1)" if allocating else "add(t0, t1, out=t2)"
    return PythonCall(text, {"add": torch.add, **stage.named})


OTHERS = (
    *TILELANG_STYLE,
    Subject(
        "cuda.core",
        "other",
        "checks nothing of a tensor, looks up no stream and no device; maps are made and checked on each call",
        _cuda_core,
        distribution="cuda-core",
    ),
    Subject(
        "CuPy RawKernel",
        "other",
        "checks nothing of an array; takes its own arrays, made beforehand, and its own current stream",
        _cupy,
        distribution="cupy-cuda13x|cupy-cuda12x|cupy",
    ),
    Subject(
        "Triton",
        "other",
        "checks no shape, dtype or device (another dtype compiles another kernel); descriptors are made beforehand and "
        "encoded on each call",
        _triton,
        distribution="triton",
    ),
    Subject(
        "torch.cuda._compile_kernel",
        "other",
        "checks that tensors are on a CUDA device, no shape or dtype",
        _torch_kernel,
    ),
    Subject(
        "torch.add(out=)",
        "other",
        "one kernel of its own, three tensors; with all of torch's checks",
        functools.partial(_torch_add, allocating=False),
        adds_scalar=False,
    ),
    Subject(
        "torch.add, allocating",
        "other",
        "as above",
        functools.partial(_torch_add, allocating=True),
        adds_scalar=False,
    ),
)
"""The launchers of others."""

UNCHECKED = ("cuda.core", "CuPy RawKernel")
"""Those of them that check nothing of a tensor, and that our compiled launchers are to be as fast as."""
