"""What C++ launchers say is the table's: the files are what is written from it, and each row is said as in Python."""

from __future__ import annotations

import pytest

from trunnion.codegen.cpp.build import runtime_folder
from trunnion.codegen.cpp.payload import fields_of, typed_error
from trunnion.codegen.cpp.refusals import refusals_header, refusals_source
from trunnion.codegen.literals import cpp_name, cpp_string
from trunnion.errors import TrunnionError, UnboundSymbolError
from trunnion.model.plan.refusals import REFUSALS, FieldKind

SAID = [row for row in REFUSALS.values() if row.only != "python"]
BUILT_IN = (TypeError, ValueError, MemoryError, RuntimeError)
PLACE = "out[1]"
LONG = 'it\'s "é"' * 20
PLACES = tuple(f"dimension {axis} of 'a' is (n + 1)" for axis in range(14))

SAMPLES = {
    FieldKind.ARGUMENT: (LONG, f'Name{{{cpp_string(LONG)}, {len(LONG.encode())}, "{PLACE}"}}'),
    FieldKind.NAME: ("a\t'{0}", cpp_name("a\t'{0}")),
    FieldKind.TEXT: ("words {1} é", cpp_string("words {1} é")),
    FieldKind.INT: (-(1 << 63), "INT64_MIN"),
    FieldKind.NUMBER: ((1 << 64) - 1, "uint64_t{UINT64_MAX}"),
    FieldKind.ADDRESS: ((1 << 64) - 8, "uint64_t{UINT64_MAX - 7}"),
    FieldKind.AXIS: (2, "2"),
    FieldKind.VERSION: (12090, "12090"),
    FieldKind.DIMS: ((3, -4), "kDims, 2"),
    FieldKind.AUTHOR: ("(n + 1)", cpp_name("(n + 1)")),
    FieldKind.NAMES: (("a", LONG), "kNames, 2"),
    FieldKind.PLACES: (PLACES, f"kPlaces, {len(PLACES)}"),
}
LISTS = "\n".join(
    (
        "static constexpr int64_t kDims[] = {3, -4, 5};",
        f"static constexpr Name kNames[] = {{{cpp_name('a')}, {cpp_name(LONG)}}};",
        f"static constexpr Name kPlaces[] = {{{', '.join(map(cpp_name, PLACES))}}};",
    )
)
OTHERS = {  # lists of none and of one, and an author who wrote the number itself
    "count": ((0, ()), "0, nullptr, 0"),
    "rank": (("a", 1, 2, (5,)), 'Name{"a", 1}, 1, 2, kDims + 2, 1'),
    "value": (("a", 3, 4, "4"), 'Name{"a", 1}, 3, 4, Name{"4", 1}'),
    "layout": (("a", (), ()), 'Name{"a", 1}, nullptr, 0, nullptr, 0'),
}


def cases():
    """Yield a row, its fields, and the same fields in C++."""
    for row in SAID:
        samples = [SAMPLES[kind] for _, kind in row.fields]
        yield row, tuple(value for value, _ in samples), ", ".join(text for _, text in samples)
    for name, (values, text) in OTHERS.items():
        yield REFUSALS[name], values, text


CASES = [*cases()]


@pytest.fixture(scope="module")
def refuse(native_module):
    calls = (
        f"case {index}: return raise_{row.id.replace('-', '_')}({text}), -1;"
        for index, (row, _, text) in enumerate(CASES)
    )
    return native_module("refusals", "\n".join((LISTS, *calls))).get_function("refuse")


def test_the_files_are_what_is_written_from_the_table() -> None:
    folder = runtime_folder() / "trunnion"
    written = {"refusals.hpp": refusals_header(), "refusals.cc": refusals_source()}
    for name, text in written.items():
        assert (folder / name).read_text("utf-8") == text, "run python -m trunnion.codegen.cpp.refusals"


@pytest.mark.tvm_ffi_abi
@pytest.mark.parametrize("index", range(len(CASES)), ids=[row.id for row, _, _ in CASES])
def test_a_row_is_said_as_in_python(refuse, index) -> None:
    row, values, text = CASES[index]
    wanted = row(*values)
    if PLACE in text:
        wanted.place = PLACE
    with pytest.raises(BUILT_IN) as caught:
        refuse(index)
    assert str(caught.value) == str(wanted)
    kind = next((kind for kind in BUILT_IN if isinstance(wanted, kind)), RuntimeError)
    assert type(caught.value) is kind
    typed = typed_error(fields_of(caught.value))
    assert (type(typed), str(typed), vars(typed)) == (type(wanted), str(wanted), vars(wanted))


def test_an_error_of_a_row_knows_it() -> None:
    error = REFUSALS["unbound"]("n", ("here",))
    assert isinstance(error, UnboundSymbolError)
    assert error.refusal == "unbound"
    assert TrunnionError("x").refusal == ""
