from __future__ import annotations

import ast
import re
import traceback
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trunnion.errors import (
    CompileError,
    CorruptArtifactError,
    ProgramError,
    TrunnionError,
    UnknownBackendError,
    UnsupportedFeatureError,
)
from trunnion.messages import (
    describe,
    first_line,
    nearest,
    numbered,
    one_of,
    quoted,
    shorten,
    spelled,
    suggestion,
    type_name,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@given(st.text())
def test_shorten_gives_ascii_that_reads_back(name: str) -> None:
    text = shorten(name)
    assert text.isascii()
    assert text.isprintable()
    if len(name) <= 80:
        assert ast.literal_eval(text) == name


@given(st.text(min_size=81, max_size=300))
def test_shorten_keeps_both_ends_of_a_long_name(name: str) -> None:
    text = shorten(name)
    assert text.startswith(ascii(name[:40])[:-1])
    assert text.endswith(f"{ascii(name[-40:])[1:]} ({len(name)} characters)")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("acme-backend", "acme_backend"),
        ("acme_bakend", "acme_backend"),
        (" ZETA\n", "zeta"),
        ("zeta", "zeta"),
        ("", ""),
        ("nothing like it", ""),
        ("x" * 100_000, ""),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(name: str, meant: str) -> None:
    assert nearest(name, ("acme_backend", "zeta")) == meant
    assert nearest(name, ()) == ""


def test_a_suggestion_is_made_in_one_way() -> None:
    known, aliases = ("float16", "float32", "int32"), {"half": "float16", "Float": "float32", "i": "int32"}
    assert suggestion("HALF", known, aliases) == "; did you mean 'float16'?"
    assert suggestion("float", known, aliases) == "; did you mean 'float32'?"
    assert suggestion("flaot32", known, aliases) == "; did you mean 'float32'?"
    assert suggestion("ii", known, aliases) == ""  # an alias is exact: short ones are near to everything
    assert suggestion("float32", known, aliases) == ""
    assert one_of("itn32", known) == "expected one of float16, float32, int32; did you mean 'int32'?"
    assert one_of(HostileText("zzz"), known) == "expected one of float16, float32, int32"


class Hostile:
    """Whatever is asked of it is a mistake of the message that asks."""

    def _refuse(self, *_: object) -> object:
        raise AssertionError("a message ran a foreign value's code")

    __repr__ = __str__ = __format__ = __eq__ = __bool__ = __len__ = __iter__ = _refuse
    __hash__ = object.__hash__
    __class__ = property(_refuse)


class HostileText(str):
    __slots__ = ()
    __repr__ = __str__ = __format__ = __eq__ = __len__ = Hostile._refuse
    __hash__ = str.__hash__


class HostileNumber(int):
    __slots__ = ()
    __repr__ = __str__ = __format__ = __eq__ = __index__ = bit_length = Hostile._refuse
    __hash__ = int.__hash__


class Named(type):
    __name__ = property(Hostile._refuse)


HOSTILE = {  # made in the test: pytest itself looks at what a test is given
    "object": Hostile,
    "text": lambda: HostileText("a"),
    "number": lambda: HostileNumber(7),
    "metaclass": Named("Odd", (), {}),
    "list": lambda: [Hostile()],
    "mapping": lambda: {"a": Hostile()},
}
FORGED = "\x1b[31m\a\u202e\u2028\ud800\u200b"


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_no_message_runs_a_foreign_value_s_code(make: Callable[[], object]) -> None:
    value = make()
    shown = [show(value) for show in (describe, shorten, type_name, visible, quoted)]
    assert all(text.isprintable() for text in shown)


def test_no_message_shows_what_moves_a_cursor() -> None:
    odd = type(FORGED.replace("\ud800", ""), (), {})()  # which the name of no type can hold
    for shown in (
        describe(odd),
        describe(FORGED),
        type_name(odd),
        shorten(FORGED),
        quoted(FORGED),
        visible(FORGED),
    ):
        assert shown.isprintable()
        assert shown.isascii()
    assert visible("a\tb\r\n\x1b", lines=True) == "a\tb\\r\n\\x1b"


def test_a_tensor_is_told_by_what_needs_no_memory() -> None:
    tensor = torch.zeros(4, 2)
    tensor.untyped_storage().resize_(0)  # its elements are gone: to print them reads from address 0
    assert describe(tensor) == "Tensor (float32, shape (4, 2), on cpu)"


@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning")
def test_a_tensor_without_a_shape_is_told_by_its_type() -> None:
    assert describe(torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])) == "Tensor"


@pytest.mark.parametrize(
    "error",
    [
        TrunnionError(FORGED),
        ProgramError(FORGED, field=FORGED),
        CorruptArtifactError(FORGED, FORGED),
        CompileError(FORGED, f"{FORGED}\n\tlog", FORGED, [FORGED], FORGED, 1),
        UnknownBackendError(FORGED, [FORGED], FORGED, FORGED),
        UnsupportedFeatureError(FORGED, [FORGED], FORGED, [FORGED]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_error_shows_what_moves_a_cursor(error: TrunnionError) -> None:
    error.add_note(FORGED)
    text = "".join(traceback.format_exception(error))
    assert not re.search("[^\n\t -~]", text)


def test_the_lines_of_a_source_are_those_that_compilers_count() -> None:
    assert numbered("a\f\u2028\nb\r\nc\n", 2).split("\n")[1] == "> 2 | b"


def test_an_error_that_cannot_speak_has_a_name() -> None:
    class MuteError(Exception):
        __str__ = Hostile._refuse

    assert first_line(MuteError()) == "MuteError"
    assert first_line(ValueError("\x1b one\ntwo")) == "\\x1b one"


def test_what_has_a_text_is_text_or_a_library_s_own_word() -> None:
    words = (spelled(one, "torch.dtype", "absent.dtype") for one in ("a", HostileText("a"), torch.float16))
    assert [*words] == ["a", "a", "torch.float16"]
    others = (spelled(one, "torch.dtype") for one in (Hostile(), HostileNumber(7), torch.device("cpu")))
    assert [*others] == [None, None, None]
