"""Every option that NVRTC 13 documents: what may be given, and what is said elsewhere; and those that only nvcc has."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NVCC_ONLY", "OPTIONS", "REFUSED", "Option", "RefusedOption"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of ``nvrtcCompileProgram`` that may be given."""

    name: str
    """Its long name, without dashes."""

    value: str = ""
    """What a value must look like, as a regular expression; empty: the option takes none."""

    aliases: tuple[str, ...] = ()
    """Other names, without dashes."""

    repeatable: bool = False
    """Whether every value counts, in order, instead of the last one."""

    linker: tuple[str, ...] = ()
    """The same for nvJitLink, ``{}`` for the value: for PTX, and for parts that are optimised together."""

    linking: bool = False
    """Whether it says how parts are linked, so that the compiler spells it itself."""

    early: bool = False
    """Whether nothing comes of it where parts are optimised together, though it is about code or its making."""

    assembling: bool = False
    """Whether the assembler alone reads it, so that PTX is the same without it."""

    @property
    def form(self) -> str:
        """What a value must look like, in words; empty: the option takes none."""
        return _IN_WORDS.get(self.value) or " or ".join(self.value.split("|"))


@dataclass(frozen=True, slots=True)
class RefusedOption:
    """One option that may not be given here."""

    name: str
    """Its long name, without dashes."""

    instead: str
    """What to do instead, or why it would be of no use."""

    aliases: tuple[str, ...] = ()
    """Other names, without dashes."""


_BOOLEAN = "true|false"
_NUMBERS = r"\d+(,\d+)*"
_IDENTIFIER = r"(?a:[A-Za-z_]\w*)"
_STANDARD = r"c\+\+\d\d"
_REGISTERS, _DENSITY, _THREADS = r"\d{1,9}", r"\d{1,3}", r"\d{1,4}"
_PATH = "(?s:.+)"
_HEADER = '[^"<>\n\r]+'
_LOG = "-"
_PTXAS = r"--?[A-Za-z][A-Za-z0-9-]*(=[A-Za-z0-9_.+-]+)?"  # one word, so that none holds a second option

_IN_WORDS = {
    _NUMBERS: "numbers of messages, with commas between them",
    _IDENTIFIER: "the name of a macro",
    _STANDARD: "a standard such as c++17",
    _REGISTERS: "a number of at most 9 digits",
    _DENSITY: "a number of at most 3 digits",
    _THREADS: "a number of at most 4 digits",
    _PATH: "the absolute path of a folder",
    _HEADER: "the name of a header, without quotation marks, angle brackets and line breaks",
    _LOG: "-, which is the log",
    _PTXAS: "one option of ptxas, such as -v or --maxrregcount=64, and the next one in another word",
}
"""The forms of values in words; every other one is a list of the words that are allowed."""

OPTIONS = (
    # How parts are linked
    Option("relocatable-device-code", _BOOLEAN, aliases=("rdc",), linking=True),
    Option("device-c", aliases=("dc",), linking=True),
    Option("device-w", aliases=("dw",), linking=True),
    Option("dlink-time-opt", aliases=("dlto",), linking=True),
    Option("gen-opt-lto"),
    # Language
    Option("std", _STANDARD),
    Option("builtin-move-forward", _BOOLEAN),
    Option("builtin-initializer-list", _BOOLEAN),
    Option("device-as-default-execution-space", aliases=("default-device",)),
    Option("device-int128"),
    Option("device-float128"),
    Option("minimal"),
    # Code
    Option(
        "use_fast_math",
        linker=("-ftz=1", "-prec-div=0", "-prec-sqrt=0", "-fma=1"),
    ),
    Option("ftz", _BOOLEAN, linker=("-ftz={}",)),
    Option("prec-sqrt", _BOOLEAN, linker=("-prec-sqrt={}",)),
    Option("prec-div", _BOOLEAN, linker=("-prec-div={}",)),
    Option("fmad", _BOOLEAN, linker=("-fma={}",)),
    Option("extra-device-vectorization"),
    Option("maxrregcount", _REGISTERS, linker=("-maxrregcount={}",), assembling=True),
    Option(
        "ptxas-options",
        _PTXAS,
        aliases=("Xptxas",),
        repeatable=True,
        linker=("-Xptxas={}",),
        assembling=True,
    ),
    Option("restrict"),
    Option("dopt", "on"),
    Option("Ofast-compile", "0|min|mid|max", aliases=("Ofc",), early=True),
    Option("jump-table-density", _DENSITY, aliases=("jtd",), linker=("-jump-table-density={}",)),
    Option("device-stack-protector", _BOOLEAN, early=True, assembling=True),
    Option("generate-line-info", aliases=("lineinfo",), linker=("-lineinfo",)),
    Option("device-debug", aliases=("G",), linker=("-g",)),
    # Preprocessor
    Option("undefine-macro", _IDENTIFIER, aliases=("U",), repeatable=True),
    Option("include-path", _PATH, aliases=("I",), repeatable=True),
    Option("pre-include", _HEADER, aliases=("include",), repeatable=True),
    Option("no-source-include"),
    # Messages
    Option("disable-warnings", aliases=("w",)),
    Option("brief-diagnostics", _BOOLEAN, aliases=("brief-diag",)),
    Option("display-error-number", aliases=("err-no",)),
    Option("no-display-error-number", aliases=("no-err-no",)),
    Option("diag-error", _NUMBERS, repeatable=True),
    Option("diag-suppress", _NUMBERS, repeatable=True),
    Option("diag-warn", _NUMBERS, repeatable=True),
    Option("optimization-info", "inline", aliases=("opt-info",), early=True),
    Option("time", _LOG),
    # How the compiler works
    Option("pch"),
    Option("instantiate-templates-in-pch", _BOOLEAN),
    Option("split-compile", _THREADS, linker=("-split-compile={}",)),
    Option("modify-stack-limit", _BOOLEAN),
    Option("no-cache", linker=("-no-cache",)),
)
"""Every option that may be given."""

REFUSED = (
    RefusedOption("gpu-architecture", "name the architecture as the target", ("arch",)),
    RefusedOption("define-macro", "use DeviceCode.defines", ("D",)),
    RefusedOption(
        "optix-ir",
        "no backend launches OptiX-IR; trunnion_nvrtc.compiler.program.Program makes it",
    ),
    RefusedOption("extensible-whole-program", "use relocatable-device-code", ("ewp",)),
    RefusedOption("frandom-seed", "it is derived from the source, so that equal requests give equal bytes"),
    RefusedOption("create-pch", "use pch: it keeps the files, and notices when a header has changed"),
    RefusedOption("use-pch", "use pch: it keeps the files, and notices when a header has changed"),
    RefusedOption("pch-dir", "use pch: it keeps the files in a folder of this process"),
    RefusedOption("pch-verbose", "use pch, which says nothing, so that logs do not depend on it"),
    RefusedOption("pch-messages", "use pch, which says nothing, so that logs do not depend on it"),
    RefusedOption("fdevice-time-trace", "it writes a file; use time=-, which writes into the log"),
    RefusedOption(
        "fdevice-syntax-only", "it makes no code; trunnion_nvrtc.compiler.program.Program takes it"
    ),
    RefusedOption(
        "use-bundled-headers", "headers are found without it; include-path names folders of your own"
    ),
)
"""Every other one. Left out on purpose: what a field of the program says already, what asks for another output than
a backend launches, and what reads or writes files."""

_HOST = "there is no host code here, and no host compiler; leave it out"
_HOST_WARNINGS = (
    "it is about the host compiler's warnings; diag-error, diag-warn and diag-suppress take NVRTC's by number"
)
_TARGET = "name the architecture as the target"
_LINK = "nothing is linked with host code; give device code as several DeviceCode parts"
_DRIVER = "it is about nvcc's own steps and files, of which there are none; leave it out"

NVCC_ONLY = (
    RefusedOption(
        "O3",
        "device code is optimised without it; ptxas-options=-O3 is about ptxas alone",
        ("O", "O0", "O1", "O2", "O4", "Os", "Ofast", "optimize"),
    ),
    RefusedOption("debug", "it is about host code; use device-debug, or generate-line-info", ("g", "ggdb")),
    RefusedOption(
        "expt-relaxed-constexpr",
        "device-as-default-execution-space takes every function without an execution space as a device function",
    ),
    RefusedOption(
        "extended-lambda",
        "lambdas within device code need no option, and no host code could pass one",
        ("expt-extended-lambda",),
    ),
    RefusedOption("generate-code", _TARGET, ("gencode", "gpu-code", "code", "arch-list")),
    RefusedOption("compiler-options", _HOST, ("Xcompiler",)),
    RefusedOption(
        "compiler-bindir", _HOST, ("ccbin", "allow-unsupported-compiler", "static-global-template-stub")
    ),
    RefusedOption(
        "forward-unknown-to-host-compiler",
        _HOST,
        ("forward-unknown-opts", "forward-unknown-to-host-linker", "forward-slash-prefix-opts"),
    ),
    RefusedOption("fPIC", _HOST, ("fpic", "fopenmp", "fvisibility", "fno-exceptions", "fno-rtti", "pthread")),
    RefusedOption("march", _HOST, ("mtune", "m64", "m32", "machine", "mavx2", "mavx512f")),
    RefusedOption(
        "Wall", _HOST_WARNINGS, ("W", "Wextra", "Werror", "pedantic", "Wno-deprecated-gpu-targets")
    ),
    RefusedOption("Xcudafe", "diag-error, diag-warn and diag-suppress take messages by number"),
    RefusedOption(
        "ftemplate-backtrace-limit", "it is about how long messages are; leave it out", ("ftemplate-depth",)
    ),
    RefusedOption("no-host-device-move-forward", "use builtin-move-forward=false"),
    RefusedOption("no-host-device-initializer-list", "use builtin-initializer-list=false"),
    RefusedOption("source-in-ptx", "generate-line-info says where code is from", ("src-in-ptx",)),
    RefusedOption("system-include", "use include-path", ("isystem",)),
    RefusedOption(
        "library",
        _LINK,
        (
            "L",
            "l",
            "lcuda",
            "lcudart",
            "lcublas",
            "library-path",
            "linker-options",
            "Xlinker",
            "cudart",
            "shared",
            "lib",
        ),
    ),
    RefusedOption("nvlink-options", "options of the linker follow from those of the parts", ("Xnvlink",)),
    RefusedOption(
        "cubin",
        "the target chooses: sm_90a makes a cubin, compute_90a PTX",
        ("ptx", "fatbin", "compile", "c"),
    ),
    RefusedOption(
        "keep",
        _DRIVER,
        (
            "keep-dir",
            "save-temps",
            "output-file",
            "o",
            "dryrun",
            "verbose",
            "v",
            "threads",
            "t",
            "t0",
            "t4",
            "t8",
            "x",
            "E",
            "M",
            "MM",
            "MD",
            "MMD",
            "MF",
        ),
    ),
    RefusedOption(
        "fatbin-options",
        "nothing is packed or compressed here; leave it out",
        ("Xfatbin", "compress-mode", "compress-all", "no-compress"),
    ),
    RefusedOption("default-stream", "a launch is on the stream of its call; see stream="),
    RefusedOption("resource-usage", "use ptxas-options=-v; program.kernels has the numbers", ("res-usage",)),
)
"""Those of nvcc's, and of its host compiler's, that NVRTC lacks and that builds of CUDA C++ have."""
