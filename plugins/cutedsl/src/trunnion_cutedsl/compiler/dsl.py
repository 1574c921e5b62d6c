"""It imports CuTeDSL, as `annotations` does, and compiles one job, in a process that does nothing else.

Everything here may be spoilt by the author's text, which runs in the same process: what it returns is only bytes and
words, and trunnion checks them.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import shlex
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_fake_stream, make_fake_tensor, make_ptr
from cutlass.experimental.cuda import tensor_map

from trunnion_cutedsl.compiler.annotations import check_annotation
from trunnion_cutedsl.compiler.host_ir import read_launches
from trunnion_cutedsl.compiler.messages import JobError
from trunnion_cutedsl.compiler.module_text import HOST_FILE, HOST_FUNCTION, emit_host

__all__ = ["compile_job"]

_TIME = 946684800  # the first second of 2000


def compile_job(job: dict[str, Any], folder: Path) -> tuple[dict[str, Any], bytes]:
    """Compile the kernels of a job into one cubin.

    Parameters
    ----------
    job
        What `Job.message` gives.
    folder
        An empty folder, which is the current one; it takes the text and all that CuTeDSL writes.

    Returns
    -------
    tuple[dict[str, Any], bytes]
        The answer: ``kernels``, for each in the job's order its symbol, its shared memory and its block, and
        ``seconds``, how long ``cute.compile`` took. Then the cubin.

    Raises
    ------
    JobError
        If CuTeDSL has no such architecture, a kernel is not in the text or takes other arguments, or CuTeDSL did not
        write exactly one cubin.
    """
    _check_arch(job["arch"])
    module = _author_module(job)
    kernels = [_kernel(module, kernel) for kernel in job["kernels"]]
    arguments = [
        argument
        for index, kernel in enumerate(job["kernels"])
        for argument in _arguments(kernel, f"kernel {index}")
    ]
    os.chdir(folder)  # the text may have gone elsewhere
    host = _host(job, kernels)
    written = Path("written")
    written.mkdir()
    # By its name alone: CuTeDSL hands it on in texts of its own, which do not take every path.
    words = [*job["options"], "--keep-cubin", f"--gpu-arch={job['arch']}", f"--dump-dir={written}"]
    start = time.perf_counter()
    compiled = cute.compile(host, *arguments, make_fake_stream(), options=shlex.join(words))
    seconds = time.perf_counter() - start
    cubin = _only_cubin(written)
    facts = read_launches(compiled.ir_module)
    if [fact.symbol for fact in facts] != list(compiled.kernel_info):
        said = ", ".join(compiled.kernel_info)
        raise JobError(
            f"CuTeDSL says that it compiled {said}, and launches {[fact.symbol for fact in facts]}"
        )
    return {"kernels": [dataclasses.asdict(fact) for fact in facts], "seconds": seconds}, cubin


def _check_arch(arch: str) -> None:
    known = list(vars(cutlass)["Arch"].__members__)  # public, but not listed as such
    if arch not in known:
        raise JobError(f"got {arch!r}, expected one that CuTeDSL has: {', '.join(known)}", "target")


def _only_cubin(folder: Path) -> bytes:
    found = sorted(path.name for path in folder.iterdir())
    cubins = [name for name in found if name.endswith(".cubin")]
    if len(cubins) != 1:
        raise JobError(f"CuTeDSL wrote {', '.join(found) or 'nothing'}; expected exactly one cubin")
    return (folder / cubins[0]).read_bytes()


# The author's text ------------------------------------------------------------------------------------------------


def _author_module(job: dict[str, Any]) -> Any:
    """Run the text as a module; the modules that it brings along can be imported from it."""
    for name, text in job["modules"]:
        module = name.partition("/")[0].removesuffix(".py")
        if module in sys.modules or module in sys.stdlib_module_names:
            raise JobError(f"an include is called {name}, and {module} is another module already: rename it")
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        _write(name, text)
    _write(job["file_name"], job["source"])
    sys.dont_write_bytecode = True
    sys.path.insert(0, "")
    return _module(job["file_name"], {})


def _write(name: str, text: str) -> None:
    """Write a file that looks the same in each compilation: line information holds the time of its last change."""
    Path(name).write_text(text, encoding="utf-8")
    os.utime(name, (_TIME, _TIME))


def _module(file_name: str, given: dict[str, Any]) -> Any:
    # By a relative path, which the import system would make absolute: no bytes shall depend on where the folder is.
    module = ModuleType(f"text of {file_name}")  # no name that somebody could import
    vars(module).update(given, __file__=file_name)
    sys.modules[module.__name__] = module
    text = Path(file_name).read_text(encoding="utf-8")
    exec(compile(text, file_name, "exec", dont_inherit=True), vars(module))  # noqa: S102 - it is trusted
    return module


def _kernel(module: Any, kernel: dict[str, Any]) -> Any:
    """Return the kernel's function once it takes what the program gives."""
    name = kernel["name"]["function"]
    function = getattr(module, name, None)
    if _kind(function) != "kernel":
        known = [key for key, value in vars(module).items() if _kind(value) == "kernel"]
        what = "is no kernel" if function is not None else "is not in the text"
        raise JobError(f"{name} {what}; its functions under @cute.kernel are: {', '.join(known) or 'none'}")
    constants = dict(kernel["name"]["constants"])
    signature = inspect.signature(function, eval_str=True)  # type: ignore[arg-type]  # a kernel is a function
    free = [one for one in signature.parameters.values() if one.name not in constants]
    unknown = [key for key in constants if key not in signature.parameters]
    if unknown:
        raise JobError(f"{name} has no parameter {', '.join(unknown)}; it is {name}{signature}")
    wanted = [one for one in free if _is_given(one)]
    parameters = kernel["parameters"]
    if len(wanted) != len(parameters):
        raise JobError(_count_message(name, wanted, len(parameters)))
    for one, given in zip(wanted, parameters, strict=True):
        check_annotation(name, one, given)
    return function


def _kind(value: Any) -> str:
    return getattr(getattr(value, "__wrapped__", None), "_decorator_kind", "")


def _is_constant(parameter: inspect.Parameter) -> bool:
    return "Constexpr" in str(parameter.annotation)


def _count_message(name: str, wanted: list[inspect.Parameter], count: int) -> str:
    names = ", ".join(one.name for one in wanted) or "none"
    made = [
        one.name for one in wanted if any(word in str(one.annotation) for word in ("CopyAtom", "TiledMma"))
    ]
    compiled = [one.name for one in wanted if _is_constant(one)]
    text = f"the program gives {name} {count} arguments, and it takes {len(wanted)}: {names}"
    if made:
        text += (
            f"; {', '.join(made)} can only be made by a host function (cute.nvgpu.cpasync.make_tiled_tma_atom): take "
            "the tensor map itself, as cutlass.GridConstant[TensorMap], and make atoms in the kernel"
        )
    if compiled:
        text += f"; {', '.join(compiled)} is a constant: say it in the kernel's name, as in '{name}({compiled[0]}=...)'"
    return text


# The host function ------------------------------------------------------------------------------------------------


def _host(job: dict[str, Any], kernels: list[Any]) -> Any:
    _write(HOST_FILE, emit_host(job["kernels"]))
    given = {
        "kernels": kernels,
        "arguments": [
            _placed(function, dict(kernel["name"]["constants"]))
            for function, kernel in zip(kernels, job["kernels"], strict=True)
        ],
        "prefixes": [kernel["prefix"] for kernel in job["kernels"]],
        "make_map": _map_maker(job["kernels"]),
    }
    return getattr(_module(HOST_FILE, given), HOST_FUNCTION)


def _placed(function: Any, constants: dict[str, Any]) -> Any:
    """Return what puts a launch's arguments between the constants, wherever a kernel has those."""
    parameters = list(inspect.signature(function).parameters.values())

    def place(*given: Any) -> list[Any]:
        rest = iter(given)
        return [
            constants[one.name] if one.name in constants else next(rest) if _is_given(one) else one.default
            for one in parameters
        ]

    return place


def _is_given(parameter: inspect.Parameter) -> bool:
    """Whether a launch gives the parameter, unless it is a constant that the kernel's name gives."""
    return parameter.default is inspect.Parameter.empty or not _is_constant(parameter)


def _map_maker(kernels: list[dict[str, Any]]) -> Any:
    def make_map(index: int, ordinal: int, address: Any) -> Any:
        """Return a placeholder that carries the constants of the plan's map; its bytes are never used."""
        parameter = kernels[index]["parameters"][ordinal]
        placeholder = tensor_map.create_tensor_map_tiled(
            address, cutlass.Float16, [address, address], [address], [64, 8]
        )
        return dataclasses.replace(
            placeholder,
            swizzle=tensor_map.TensorMapSwizzle(parameter["swizzle"]),
            dtype=_type(parameter["dtype"]),
            tma_format=tensor_map.TensorMapDataFormat[parameter["format"]],
            box_dims=tuple(parameter["box"]),
        )

    return make_map


def _arguments(kernel: dict[str, Any], where: str) -> list[Any]:
    arguments = [_argument(parameter, where) for parameter in kernel["parameters"]]
    if not kernel["block"]:
        arguments += [cutlass.Int32(32), cutlass.Int32(1), cutlass.Int32(1)]
    return arguments


def _argument(parameter: dict[str, Any], where: str) -> Any:
    match parameter["kind"]:
        case "tensor":
            return _tensor(parameter)
        case "pointer":
            space, alignment = cute.AddressSpace.gmem, parameter["alignment"]
            return make_ptr(_type(parameter["dtype"]), alignment, space, assumed_align=alignment)
        case "scalar":
            return _type(parameter["dtype"])(0)
        case "map":
            return cutlass.Int64(1 << 10)
    raise JobError(f"{where} is given something of kind {parameter['kind']}")


def _tensor(parameter: dict[str, Any]) -> Any:
    """Return a fake tensor: numbers where the plan has constants, symbols where a call decides."""
    rank = len(parameter["shape"])
    numbers = [*parameter["shape"], *parameter["strides"]]
    makers = [cute.sym_int32] * rank + [cute.sym_int64] * rank
    values = [
        make(divisibility=divisor) if value is None else value
        for value, make, divisor in zip(numbers, makers, parameter["divisors"], strict=True)
    ]
    return make_fake_tensor(
        _type(parameter["dtype"]),
        tuple(values[:rank]),
        tuple(values[rank:]),
        assumed_align=parameter["alignment"],
    )


def _type(name: str) -> Any:
    found = getattr(cutlass, name, None)
    if found is None:
        raise JobError(f"this CuTeDSL has no type {name}")
    return found
