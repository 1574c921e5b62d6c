"""A Python launcher in the style of TileLang's NVRTC wrapper, written anew: everything is made on each call."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from launching.case import SHAPE, THREADS
from launching.subject import NotHereError, Subject, one_plain_launch
from launching.trial import PythonCall
from launching.written import import_text

if TYPE_CHECKING:
    from launching.case import Case
    from launching.stage import Stage
    from launching.trial import Trial

__all__ = ["TILELANG_STYLE", "launcher_text"]

_HEAD = """
import ctypes
import torch
from cuda.bindings import driver as cuda


def call(kernel, {parameters}stream):
"""

_MAP = """
    status, map_{name} = cuda.cuTensorMapEncodeTiled(
        cuda.CUtensorMapDataType(7),
        2,
        {name}.data_ptr(),
        [cuda.cuuint64_t({columns}), cuda.cuuint64_t({rows})],
        [cuda.cuuint64_t({pitch})],
        [cuda.cuuint32_t({columns}), cuda.cuuint32_t({rows})],
        [cuda.cuuint32_t(1), cuda.cuuint32_t(1)],
        cuda.CUtensorMapInterleave(0),
        cuda.CUtensorMapSwizzle(0),
        cuda.CUtensorMapL2promotion(2),
        cuda.CUtensorMapFloatOOBfill(0),
    )
    if status != cuda.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"a tensor map was refused: {{status}}")
"""

_LAUNCH = """
    status, = cuda.cuKernelSetAttribute(
        cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0, kernel, cuda.CUdevice({ordinal})
    )
    if status != cuda.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the attribute was refused: {{status}}")
    config = cuda.CUlaunchConfig()
    config.gridDimX = {grid}
    config.gridDimY = 1
    config.gridDimZ = 1
    config.blockDimX = {threads}
    config.blockDimY = 1
    config.blockDimZ = 1
    config.sharedMemBytes = 0
    config.hStream = cuda.CUstream(stream)
    values = ({values})
    types = ({types})
    status, = cuda.cuLaunchKernelEx(config, kernel, (values, types), 0)
    if status != cuda.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the launch was refused: {{status}}")


class Adapter:
    def __init__(self, kernel, count, results, shape):
        self.kernel, self.count, self.results, self.shape = kernel, count, results, shape

    def __call__(self, *inputs):
        if len(inputs) + len(self.results) != self.count:
            raise ValueError(f"expected {{self.count - len(self.results)}} inputs, got {{len(inputs)}}")
        arguments, taken = [], 0
        for index in range(self.count):
            if index in self.results:
                value = torch.empty(*self.shape, dtype=torch.float32, device=inputs[0].device)
            else:
                value = inputs[taken]
                taken += 1
            arguments.append(value)
        call(self.kernel, *arguments, torch.cuda.current_stream().cuda_stream)
        return arguments[self.results[0]] if self.results else None
"""


def launcher_text(case: Case) -> str:
    """Return the launcher of a case: one statement for each thing, as a generator would write it."""
    mapped, plain = case.names[: case.maps], case.names[case.maps :]
    rows, columns = SHAPE
    maps = "".join(_MAP.format(name=name, rows=rows, columns=columns, pitch=4 * columns) for name in mapped)
    values = [*(f"map_{name}" for name in mapped), *(f"{name}.data_ptr()" for name in plain), "word"]
    types = ["None"] * len(mapped) + ["ctypes.c_void_p"] * len(plain) + ["ctypes.c_int"]
    launch = _LAUNCH.format(
        ordinal=f"{case.names[0]}.device.index" if case.tensors else "torch.cuda.current_device()",
        grid=f"({case.names[0]}.shape[0] + {THREADS - 1}) // {THREADS}" if case.grid > 1 else "1",
        threads=THREADS,
        values=", ".join(values) + ",",
        types=", ".join(types) + ",",
    )
    head = _HEAD.format(parameters="".join(f"{name}, " for name in (*case.names, "word")))
    return f"{head}{maps}{launch}".lstrip()


def _prepare(stage: Stage, *, allocating: bool) -> Trial:
    case = stage.case
    one_plain_launch(case)
    passed = case.names[:-1] if allocating else case.names
    if allocating and not passed:
        raise NotHereError("no tensor to take the device from")
    # Outputs come last among the tensors, and the scalar after them.
    results = [case.tensors - 1] if allocating else []
    module = import_text(f"tilelang_style_{case.tensors}_{case.maps}", launcher_text(case))
    adapter = module.Adapter(stage.kernel, case.tensors + 1, results, case.shape)
    return PythonCall(f"adapter({', '.join([*passed, 'word'])})", {"adapter": adapter, **stage.named})


_OMITS = (
    "checks the number of arguments and nothing else; the stream is the current device's, not the tensors'"
)

TILELANG_STYLE = (
    Subject(
        "TileLang style (cuda.bindings)",
        "other",
        _OMITS,
        functools.partial(_prepare, allocating=False),
        distribution="cuda-bindings",
    ),
    Subject(
        "TileLang style, allocating",
        "other",
        _OMITS,
        functools.partial(_prepare, allocating=True),
        distribution="cuda-bindings",
    ),
)
"""The launcher, given its output and allocating it."""
