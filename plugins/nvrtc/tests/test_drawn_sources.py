"""Drawn macros, headers in memory, options and name expressions: what NVRTC saw is what was given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.contract.compiler import CompileRequest, DeviceImage
from trunnion.contract.spec import Target
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion.testing.draws import for_examples
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXAMPLES = 25
TEXT = """
constexpr __device__ bool same(const char* a, const char* b) { return *a == *b && (*a == 0 || same(a + 1, b + 1)); }
#define TEXT_(...) #__VA_ARGS__
#define TEXT(...) TEXT_(__VA_ARGS__)
"""


def build(source: str, *kernels: str, kind: str = "cubin", **code: Any) -> DeviceImage:
    request = CompileRequest(
        code=(DeviceCode("cuda", source, **code),),
        kernels=tuple(KernelSignature(name, ()) for name in kernels),
        target=Target.parse("compute_90a" if kind == "ptx" else "sm_90a"),
        accepts=(kind,),
    )
    return NvrtcCompiler().compile(request)


# Macros -------------------------------------------------------------------------------------------------------------

IDENTIFIERS = st.from_regex(r"m_[A-Za-z0-9_]{0,12}", fullmatch=True)
PUNCTUATION = (
    "+",
    "-",
    "=",
    "==",
    ",",
    ";",
    ":",
    "( x )",
    "[",
    "]",
    "{",
    "}",
    "<",
    "<<",
    "...",
    "#",
    "&",
    "~",
    "?",
    "!",
)
WORDS = st.one_of(
    st.sampled_from(PUNCTUATION),
    st.integers(0, 2**63).map(str),
    st.sampled_from(
        ("x", "struct", "0x1F", "1.5e-3f", "'a'", "' '", r"'\''", r"'\\'", "--define-macro=x", "-D")
    ),
    st.text(" !#$%&'()*+,-./:;<=>?@[]^_`{|}~abcXYZ019\"\\é大", max_size=12).map(
        lambda text: json.dumps(text, ensure_ascii=False)
    ),
)
VALUES = st.one_of(st.none(), st.lists(WORDS, max_size=5).map(" ".join))
MACROS = st.dictionaries(IDENTIFIERS, VALUES, min_size=1, max_size=6)


def test_a_macro_is_what_was_given() -> None:
    def body(macros: dict[str, str | None]) -> None:
        # A macro without a value is 1. What a value becomes as a string shows every token, and a blank where one is.
        seen = {name: "1" if value is None else value for name, value in macros.items()}
        lines = [
            f"static_assert(same(TEXT({name}), {json.dumps(value, ensure_ascii=False)}), {json.dumps(name)});"
            for name, value in seen.items()
        ]
        build(TEXT + "\n".join(lines), defines=tuple(macros.items()))

    for_examples(MACROS, 3 * EXAMPLES, body)


# Headers and options ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Headers:
    """Headers that include others; the number of each is its place."""

    names: tuple[str, ...]
    includes: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...]
    first: tuple[int, ...]
    pre_included: int | None

    def reached(self) -> set[int]:
        found: set[int] = set()
        left = [*self.first, *(() if self.pre_included is None else (self.pre_included,))]
        while left:
            one = left.pop()
            if one not in found:
                found.add(one)
                left += self.includes[one]
        return found

    def texts(self) -> Iterator[tuple[str, str]]:
        for place, (name, others) in enumerate(zip(self.names, self.includes, strict=True)):
            own = f"#define HAVE_{place} {self.numbers[place]}"
            yield name, "\n".join(["#pragma once", self.lines(others), own])

    def lines(self, places: Sequence[int]) -> str:
        forms = ("#include <{}>", '#include "{}"')
        return "\n".join(forms[place % 2].format(self.names[place]) for place in places)


@st.composite
def headers(draw: st.DrawFn) -> Headers:
    known = (
        "a.h",
        "b.h",
        "deep/a.h",
        "deep/er/b.cuh",
        "my header.h",
        "no_suffix",
        "größe.h",
        "a=b;c.h",
        "-D.h",
    )
    names = draw(st.lists(st.sampled_from(known), min_size=1, max_size=6, unique=True))
    some = st.lists(st.integers(0, len(names) - 1), max_size=3).map(tuple)  # themselves too, and in circles
    return Headers(
        names=tuple(names),
        includes=tuple(draw(some) for _ in names),
        numbers=tuple(draw(st.integers(0, 10**6)) for _ in names),
        first=draw(some),
        pre_included=draw(st.one_of(st.none(), st.integers(0, len(names) - 1))),
    )


def test_headers_in_memory_include_one_another() -> None:
    def body(given: Headers) -> None:
        reached = given.reached()
        asserts = [
            f"static_assert(HAVE_{place} == {number});"
            if place in reached
            else f"#ifdef HAVE_{place}\n#error\n#endif"
            for place, number in enumerate(given.numbers)
        ]
        first = given.pre_included
        build(
            "\n".join([given.lines(given.first), *asserts]),
            includes=tuple(given.texts()),
            options=() if first is None else (f"--pre-include={given.names[first]}",),
        )

    for_examples(headers(), 2 * EXAMPLES, body)


STANDARDS = {"c++11": 201103, "c++14": 201402, "c++17": 201703, "c++20": 202002}
SWITCHES = {
    "std": st.one_of(st.none(), st.sampled_from(sorted(STANDARDS))),
    "fmad": st.sampled_from((None, "true", "false")),
    "int128": st.booleans(),
    "lineinfo": st.booleans(),
}


def test_options_do_what_they_say() -> None:
    def body(drawn: tuple[dict[str, Any], Any]) -> None:
        given, chance = drawn
        options = [f"--std={given['std']}"] if given["std"] else []
        options += [f"--fmad={given['fmad']}"] if given["fmad"] else []
        options += ["-device-int128"] if given["int128"] else []
        options += ["-lineinfo"] if given["lineinfo"] else []
        chance.shuffle(options)
        source = f"""static_assert(__cplusplus == {STANDARDS[given["std"] or "c++17"]}, "");
        #if {"!" if given["int128"] else ""}defined(__CUDACC_RTC_INT128__)
        #error
        #endif
        extern "C" __global__ void k(float* x) {{ x[0] = x[1] * x[2] + x[3]; }}"""
        text = build(source, "k", kind="ptx", options=tuple(options)).data.decode()
        assert ("fma.rn.f32" in text) == (given["fmad"] != "false")
        assert (".loc" in text) == given["lineinfo"]

    for_examples(
        st.tuples(st.fixed_dictionaries(SWITCHES), st.randoms(use_true_random=False)), EXAMPLES, body
    )


# Name expressions ---------------------------------------------------------------------------------------------------

KERNELS = """
template <int N, class T> struct Box { T values[N]; };
template <int N, class T> __global__ void flat(Box<N, T>) {}
namespace deep { template <class T, int N = 3> __global__ void inner(Box<N, T>, char) {} }
namespace { template <class T> __global__ void hidden(Box<5, T>) {} }
"""
SIZES = {
    "char": 1,
    "short": 2,
    "int": 4,
    "float": 4,
    "double": 8,
    "unsigned long long": 8,
    "Box<3, short>": 6,
}


@st.composite
def name_expressions(draw: st.DrawFn) -> dict[str, list[int]]:
    """Draw names of specialisations, each with the bytes of its parameters."""
    found = {}
    for _ in range(draw(st.integers(1, 5))):
        kind, count = draw(st.sampled_from(sorted(SIZES))), draw(st.integers(1, 40))
        blank = draw(st.sampled_from(("", " ", "  ")))
        count_text = draw(st.sampled_from((str(count), hex(count), f"({count - 1} + 1)")))
        name, sizes = draw(
            st.sampled_from(
                (
                    (f"flat<{blank}{count_text},{blank}{kind}{blank}>", [count * SIZES[kind]]),
                    (f"deep::inner<{kind},{blank}{count_text}>", [count * SIZES[kind], 1]),
                    (f"{blank}deep::inner<{blank}{kind}>", [3 * SIZES[kind], 1]),
                    (f"hidden<{kind}{blank}>", [5 * SIZES[kind]]),
                )
            )
        )
        found[name] = sizes
    return found


def test_a_name_expression_is_the_kernel_that_it_names() -> None:
    def body(names: dict[str, list[int]]) -> None:
        image = build(KERNELS, *names)
        assert [kernel.name for kernel in image.kernels] == list(names)
        assert [[one.size for one in kernel.parameters] for kernel in image.kernels] == list(names.values())
        text = build(KERNELS, *names, kind="ptx")
        for kernel in text.kernels:
            assert f".entry {kernel.symbol}(" in text.data.decode()

    for_examples(name_expressions(), EXAMPLES, body)
