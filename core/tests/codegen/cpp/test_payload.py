"""What a launcher raises arrives whole, whatever a user's text holds."""

from __future__ import annotations

import pytest

from trunnion.codegen.cpp.payload import fields_of, typed_error
from trunnion.errors import ArgumentValueError

pytestmark = pytest.mark.tvm_ffi_abi

TEXTS = (
    "plain",
    "",
    "a\0b",
    "3:abc,",
    "\\",
    "\\\\",
    "\\udc80",
    "\\\\udc80",
    "\udc80",
    "\ud800\udfff",
    "\\\ud800",
    "a\udbff\\",
    "\ud7ff\ue000\uffff",
    "é名\U0010ffff\ud834\U0001d11e",
    "\udc80" * 3000,
)


@pytest.fixture(scope="module")
def refuse(native_module):
    return native_module("raising").get_function("refuse")


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_every_text_arrives(refuse, text):
    with pytest.raises(ValueError) as caught:
        refuse(text.encode("utf-8", "surrogatepass"))
    assert fields_of(caught.value) == ("real-range", "", text, text, "\\")
    error = typed_error(fields_of(caught.value))
    assert isinstance(error, ArgumentValueError)
    assert (error.argument, error.got, error.refusal) == (text, text, "real-range")


def test_the_message_is_for_everybody(refuse):
    with pytest.raises(ValueError, match=r"got a\\udc80\\é, expected a number that fits \\$"):
        refuse("a\udc80\\é".encode("utf-8", "surrogatepass"))


def test_what_others_raise_has_no_fields():
    assert fields_of(ValueError("trunnion/1 1:a,")) == ()
