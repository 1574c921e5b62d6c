"""What NVRTC and nvJitLink answer, and what it means: two closed tables."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NVJITLINK_RESULTS", "NVRTC_RESULTS", "ResultCode", "result_code"]


@dataclass(frozen=True, slots=True)
class ResultCode:
    """One status that a library returns."""

    code: int
    """The number."""

    name: str
    """The name in the library's header."""

    meaning: str
    """What it means here, and what to do about it."""


NVRTC_RESULTS: tuple[ResultCode, ...] = (
    ResultCode(0, "NVRTC_SUCCESS", "the call did what it was asked for"),
    ResultCode(1, "NVRTC_ERROR_OUT_OF_MEMORY", "this process cannot get the memory that the compiler needs"),
    ResultCode(
        2,
        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC could not make a program of this source and its headers",
    ),
    ResultCode(3, "NVRTC_ERROR_INVALID_INPUT", "an argument of the call is not one that NVRTC takes"),
    ResultCode(4, "NVRTC_ERROR_INVALID_PROGRAM", "the program was destroyed, or was never made"),
    ResultCode(5, "NVRTC_ERROR_INVALID_OPTION", "NVRTC does not know an option; the log names it"),
    ResultCode(6, "NVRTC_ERROR_COMPILATION", "the source has errors; the log lists them"),
    ResultCode(
        7,
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "libnvrtc-builtins, of the same version as libnvrtc, must lie beside it",
    ),
    ResultCode(
        8,
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        "names must be asked for before the program is compiled",
    ),
    ResultCode(
        9,
        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "there are no symbols until the program is compiled",
    ),
    ResultCode(
        10,
        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        "a name was not asked for before the program was compiled",
    ),
    ResultCode(
        11, "NVRTC_ERROR_INTERNAL_ERROR", "the compiler failed by its own fault; the log may say where"
    ),
    ResultCode(12, "NVRTC_ERROR_TIME_FILE_WRITE_FAILED", "the file of option --time cannot be written"),
    ResultCode(
        13,
        "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED",
        "no precompiled header was asked for, or one was there already",
    ),
    ResultCode(
        14,
        "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED",
        "the precompiled header does not fit into the heap for them; make the heap larger, or do without",
    ),
    ResultCode(15, "NVRTC_ERROR_PCH_CREATE", "the precompiled header could not be made; the log says why"),
    ResultCode(16, "NVRTC_ERROR_CANCELLED", "the program's own callback stopped the compilation"),
    ResultCode(
        17,
        "NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED",
        "the file of option --fdevice-time-trace cannot be written",
    ),
    ResultCode(18, "NVRTC_ERROR_BUSY", "the program is in use by another thread; each thread needs its own"),
)
"""``nvrtcResult``."""

NVJITLINK_RESULTS: tuple[ResultCode, ...] = (
    ResultCode(0, "NVJITLINK_SUCCESS", "the call did what it was asked for"),
    ResultCode(1, "NVJITLINK_ERROR_UNRECOGNIZED_OPTION", "nvJitLink does not know an option"),
    ResultCode(2, "NVJITLINK_ERROR_MISSING_ARCH", "no architecture was named"),
    ResultCode(3, "NVJITLINK_ERROR_INVALID_INPUT", "an input is for another architecture, or is damaged"),
    ResultCode(4, "NVJITLINK_ERROR_PTX_COMPILE", "PTX has errors, or asks for more than the target has"),
    ResultCode(5, "NVJITLINK_ERROR_NVVM_COMPILE", "LTO-IR cannot be linked; the log says why"),
    ResultCode(6, "NVJITLINK_ERROR_INTERNAL", "the parts do not fit together; the log says why"),
    ResultCode(7, "NVJITLINK_ERROR_THREADPOOL", "the threads of option --split-compile could not be started"),
    ResultCode(8, "NVJITLINK_ERROR_UNRECOGNIZED_INPUT", "an input is in no form that nvJitLink reads"),
    ResultCode(9, "NVJITLINK_ERROR_FINALIZE", "the parts do not fit together; the log says why"),
    ResultCode(10, "NVJITLINK_ERROR_NULL_INPUT", "an argument of the call is missing"),
    ResultCode(11, "NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS", "two options contradict each other"),
    ResultCode(
        12, "NVJITLINK_ERROR_INCORRECT_INPUT_TYPE", "an input is not of the kind that it was said to be"
    ),
    ResultCode(13, "NVJITLINK_ERROR_ARCH_MISMATCH", "an input is for another architecture"),
    ResultCode(
        14,
        "NVJITLINK_ERROR_OUTDATED_LIBRARY",
        "an input was made by a newer compiler; nvJitLink must be at least as new as NVRTC",
    ),
    ResultCode(15, "NVJITLINK_ERROR_MISSING_FATBIN", "a fat binary holds nothing for this architecture"),
    ResultCode(16, "NVJITLINK_ERROR_UNRECOGNIZED_ARCH", "nvJitLink does not know this architecture"),
    ResultCode(
        17, "NVJITLINK_ERROR_UNSUPPORTED_ARCH", "nvJitLink no longer makes code for this architecture"
    ),
    ResultCode(
        18, "NVJITLINK_ERROR_LTO_NOT_ENABLED", "LTO-IR was handed in where no optimisation was asked for"
    ),
)
"""``nvJitLinkResult``."""


def result_code(table: tuple[ResultCode, ...], code: int) -> ResultCode:
    """Return the row of a status; one that says as much if a newer library has added it."""
    for row in table:
        if row.code == code:
            return row
    return ResultCode(code, "unknown", "a status that this version of the plugin does not know")
