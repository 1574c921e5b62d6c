from __future__ import annotations

import copy
import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from trunnion import errors
from trunnion.errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    BackendUnavailableError,
    CaptureError,
    CompileError,
    CorruptArtifactError,
    DeviceRequirementError,
    DriverError,
    DuplicatePluginError,
    ExprError,
    KernelBodyError,
    LifecycleError,
    ParameterMismatchError,
    ProgramError,
    RegistryError,
    TensorMapError,
    TrunnionError,
    UnboundSymbolError,
    UnknownBackendError,
    UnknownKernelError,
    UnknownProgramError,
    UnknownVariableError,
    UnsupportedFeatureError,
    UntrustedArtifactError,
    VariableMismatchError,
)

SOURCE = "int a;\nint b\nint c;\nint d;\nint e;\nint f;\nint g;"
SAMPLES = (
    TrunnionError("plain"),
    ProgramError("got 0", field="launches[1].grid[0]"),
    TensorMapError(["one", "two"], field="map"),
    ExprError("division by zero"),
    UnboundSymbolError("n", ["dimension 0 of 'a' is (n + 1)"]),
    ArgumentError("x", "5", "6"),
    ArgumentTypeError("x", "a str", "a tensor"),
    ArgumentValueError("", "5", "6"),
    RegistryError("no plugin"),
    UnknownBackendError("acme", ["nvrtc", "acne"], "device compiler", "install it"),
    DuplicatePluginError("acme", ["acme-a", "acme-b"]),
    BackendUnavailableError("acme", "acme-dist", "it is not installed", "Traceback ..."),
    UnsupportedFeatureError("acme", ["pdl", "cluster"], "choose another", ["pdl: here", "cluster: there"]),
    DeviceRequirementError("sm_90a", "sm_80", "use a newer device"),
    CompileError("NVRTC 13.0", "x.cu(2): error", SOURCE, ["-G"], "sm_90a", 2),
    ParameterMismatchError("gemm<128>", 3, "int64", "int32"),
    DriverError("cuLaunchKernelEx", 1, "CUDA_ERROR_INVALID_VALUE", "a parameter is wrong"),
    CaptureError("a capture is going on"),
    LifecycleError("closed"),
    ArtifactError("no artifact"),
    CorruptArtifactError("image.cubin", "is truncated"),
    UntrustedArtifactError("is not on the list"),
    KernelBodyError("scale", 9, "int32", "the kernel has 4 parameters"),
    ArgumentValueError("y", "5", "6", "out[0]"),
    UnknownKernelError("gem", ["gemm", "split_k"]),
    UnknownProgramError("gem", ["gemm", "norm"]),
    VariableMismatchError("ns::filter", "252 bytes", "256 bytes"),
    UnknownVariableError("filtr", ["filter", "gain"]),
)


def echo(error: TrunnionError) -> TrunnionError:
    return error


def fail(index: int) -> None:
    raise SAMPLES[index]


def facts(error: BaseException) -> tuple[object, ...]:
    return type(error), str(error), error.args, error.__dict__


def test_there_is_a_sample_of_every_class() -> None:
    classes = {
        member
        for _, member in inspect.getmembers(errors, inspect.isclass)
        if issubclass(member, TrunnionError)
    }
    assert classes == {type(error) for error in SAMPLES}
    assert {member.__name__ for member in classes} | {"shorten"} == set(errors.__all__)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_pickles(error: TrunnionError, protocol: int) -> None:
    assert facts(pickle.loads(pickle.dumps(error, protocol))) == facts(error)  # noqa: S301 - our own bytes


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_copies(error: TrunnionError) -> None:
    assert facts(copy.copy(error)) == facts(error)
    assert facts(copy.deepcopy(error)) == facts(error)


def test_notes_travel_with_an_error() -> None:
    error = DriverError("cuInit", 3, "CUDA_ERROR_NOT_INITIALIZED")
    error.add_note("the note")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["the note"]  # noqa: S301 - our own bytes


def test_errors_cross_a_process_pool() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for index, error in enumerate(SAMPLES):
            assert facts(pool.submit(echo, error).result()) == facts(error)
            raised = pool.submit(fail, index).exception()
            assert (type(raised), str(raised)) == (type(error), str(error))


def test_a_class_of_somebody_else_pickles_too() -> None:
    assert facts(pickle.loads(pickle.dumps(ForeignError("x", 3)))) == facts(ForeignError("x", 3))  # noqa: S301 - our own bytes


class ForeignError(DriverError):
    """Another signature than its base."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__("acmeLaunch", count, name)
        self.count = count


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ProgramError, ValueError),
        (ArgumentTypeError, TypeError),
        (ArgumentValueError, ValueError),
        (UnknownBackendError, LookupError),
        (UnsupportedFeatureError, NotImplementedError),
        (ParameterMismatchError, ValueError),
        (VariableMismatchError, ValueError),
        (UnknownVariableError, LookupError),
        (KernelBodyError, ValueError),
        (DriverError, RuntimeError),
        (CaptureError, RuntimeError),
        (LifecycleError, RuntimeError),
        (CorruptArtifactError, ValueError),
    ],
)
def test_leaves_are_also_what_python_would_raise(error: type, builtin: type) -> None:
    assert issubclass(error, builtin)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SAMPLES[1], "launches[1].grid[0]: got 0"),
        (SAMPLES[2], "map: one; two"),
        (
            SAMPLES[4],
            (
                "symbol 'n' has no value: no input has it as a bare dimension, stride or scalar (it stands here: "
                "dimension 0 of 'a' is (n + 1)); add a parameter that does"
            ),
        ),
        (
            UnboundSymbolError("n"),
            (
                "symbol 'n' has no value: no input has it as a bare dimension, stride or scalar (it stands here: "
                "nowhere in the signature); add a parameter that does"
            ),
        ),
        (SAMPLES[5], "argument 'x': got 5, expected 6"),
        (SAMPLES[7], "got 5, expected 6"),
        (SAMPLES[23], "argument 'y' (out[0]): got 5, expected 6"),
        (
            SAMPLES[9],
            "unknown device compiler 'acme'; did you mean 'acne'? installed: nvrtc, acne; install it",
        ),
        (UnknownBackendError("a", ["nvrtc"]), "unknown backend 'a'; installed: nvrtc"),
        (UnknownBackendError("a"), "unknown backend 'a'; none is installed"),
        (SAMPLES[10], "plugin 'acme' is announced by acme-a and acme-b; uninstall all but one"),
        (SAMPLES[11], "plugin 'acme' (acme-dist) is unavailable: it is not installed"),
        (
            BackendUnavailableError("acme", "", "it is not installed"),
            "'acme' is unavailable: it is not installed",
        ),
        (SAMPLES[12], "acme does not support pdl, cluster; choose another\n  pdl: here\n  cluster: there"),
        (UnsupportedFeatureError("acme", ["pdl"]), "acme does not support pdl"),
        (UnsupportedFeatureError("no installed backend", ["pdl"]), "no installed backend supports pdl"),
        (SAMPLES[13], "needs sm_90a, got sm_80; use a newer device"),
        (DeviceRequirementError("a", "b"), "needs a, got b"),
        (
            SAMPLES[15],
            (
                "kernel 'gemm<128>', parameter 3: the program passes int64, the compiled kernel takes int32; "
                "correct the launch's args (an expression is int64 unless cast, a number too: "
                "const(8, 'int32')) or the declaration"
            ),
        ),
        (
            ParameterMismatchError("k", -1, "2 arguments", "3 parameters"),
            (
                "kernel 'k', its parameters: the program passes 2 arguments, the compiled kernel takes 3 parameters; "
                "correct the launch's args (an expression is int64 unless cast, a number too: "
                "const(8, 'int32')) or the declaration"
            ),
        ),
        (SAMPLES[16], "cuLaunchKernelEx failed with CUDA_ERROR_INVALID_VALUE (1): a parameter is wrong"),
        (DriverError("f", 2, "N"), "f failed with N (2)"),
        (SAMPLES[20], "image.cubin: is truncated"),
        (
            SAMPLES[22],
            "kernel 'scale' was asked for parameter 9 as int32; the kernel has 4 parameters",
        ),
        (
            SAMPLES[-2],
            (
                "variable 'ns::filter': the program says 252 bytes, the compiled code has 256 bytes; correct its dtype "
                "and shape, or the declaration"
            ),
        ),
        (
            SAMPLES[-1],
            (
                "the compiled code has no variable 'filtr' (it has: 'filter', 'gain'); did you mean 'filter'?; one "
                "that no kernel uses may be dropped where it is linked"
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_texts(error: TrunnionError, text: str) -> None:
    assert str(error) == text


def test_within_builds_a_path_from_the_inside_out() -> None:
    error = ProgramError("got 0", field="[0]")
    assert error.within("grid") is error
    assert error.field == "grid[0]"
    assert error.within("launches[1]").field == "launches[1].grid[0]"
    assert ProgramError("x").within("name").field == "name"
    assert str(ProgramError("x").within("name")) == "name: x"


def test_numbered_source_marks_the_line() -> None:
    error = CompileError("c", "log", SOURCE, line=2)
    whole = error.numbered_source().splitlines()
    assert len(whole) == 7
    assert whole[0] == "  1 | int a;"
    assert whole[1] == "> 2 | int b"
    assert error.numbered_source(radius=1).splitlines() == ["  1 | int a;", "> 2 | int b", "  3 | int c;"]
    assert CompileError("c", "log", "x\n" * 12, line=10).numbered_source(1).splitlines()[0] == "   9 | x"


@pytest.mark.parametrize("line", [0, 99])
def test_numbered_source_survives_any_line(line: int) -> None:
    error = CompileError("c", "log", "a\nb", line=line)
    assert ">" not in error.numbered_source(2)
    assert CompileError("c", "log", "", line=line).numbered_source(2) == ""


def test_a_compile_error_says_all_that_it_knows() -> None:
    text = str(SAMPLES[14])
    assert text.splitlines()[:2] == ["NVRTC 13.0 refused the source for sm_90a", "options: -G"]
    assert "> 2 | int b" in text
    assert text.endswith("x.cu(2): error")
    bare = str(CompileError("c", " \n"))
    assert bare == "c refused the source for the target\noptions: (none)\n(the compiler printed nothing)"


def test_only_the_first_places_of_an_unbound_symbol_are_shown() -> None:
    error = UnboundSymbolError("n", [f"place {index}" for index in range(40)])
    assert len(error.candidates) == 40
    assert "place 11 and 28 more" in str(error)
