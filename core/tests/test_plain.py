"""The door: what foreign classes hold is read by the base types' own methods."""

from __future__ import annotations

import collections.abc
import enum
import os
import pathlib
from types import MappingProxyType

import numpy as np
import pytest
import torch

from trunnion.plain import ForeignError, asked, is_a, is_exactly, pairs, path_text, sequence, text


def end(*_):
    raise SystemExit(0)


class Word(enum.StrEnum):
    A = "a"


class EndingPath:
    __fspath__ = end


class EndingItems:
    __iter__ = end


def test_foreign_code_may_raise_anything_but_what_the_user_asks_for():
    assert asked(lambda: 3) == 3
    for error in (SystemExit(0), ValueError(), GeneratorExit()):
        with pytest.raises(ForeignError) as caught:
            asked(lambda error=error: raise_(error))
        assert caught.value.__cause__ is error
    with pytest.raises(KeyboardInterrupt):
        asked(lambda: raise_(KeyboardInterrupt()))


def raise_(error):
    raise error


def test_what_a_value_is_says_its_type_and_not_the_value():
    posing = type("Posing", (), {"__class__": property(end)})()
    assert not is_a(posing, int)
    assert is_a(True, int)
    assert not is_exactly(True, int, float)
    equal = type("Equal", (type,), {"__eq__": end, "__hash__": type.__hash__})
    assert not is_exactly(equal("Odd", (), {})(), int, float)


@pytest.mark.parametrize(("value", "plain"), [(Word.A, "a"), (np.str_("a"), "a"), (b"a", None), (3, None)])
def test_text(value, plain):
    assert text(value) == plain
    assert type(text(value)) in (str, type(None))


def test_a_path_is_a_text_or_gives_one():
    assert path_text(pathlib.Path("a")) == "a"
    assert path_text(Word.A) == "a"
    assert [*map(path_text, (b"a", 3, None, EndingPath()))] == [None] * 4


def test_a_sequence_gives_its_own_members():
    ending = type("Ending", (list,), {"__iter__": end, "__len__": end, "__getitem__": end})
    for value in ([1, 2], (1, 2), torch.Size([1, 2]), collections.deque([1, 2]), range(1, 3), ending([1, 2])):
        assert sequence(value, 9) == (1, 2)
    assert [sequence(one, 9) for one in ("ab", b"ab", {1: 2}, {1}, MappingProxyType({}), 3, None)] == [
        None
    ] * 7
    assert sequence(iter(range(9)), 2) == (0, 1)
    with pytest.raises(ForeignError):
        sequence(EndingItems(), 9)


def test_a_mapping_gives_its_own_pairs():
    ending = type("Ending", (dict,), {"items": end, "__iter__": end, "keys": end})
    for value in ({"a": 1}, collections.OrderedDict(a=1), MappingProxyType({"a": 1}), ending(a=1)):
        assert pairs(value) == [("a", 1)]
    assert pairs([("a", 1)]) is None


def test_whether_something_is_of_a_class_runs_no_code_of_its_own():
    class Meta(type):
        __hash__ = __eq__ = __instancecheck__ = __subclasscheck__ = __getattribute__ = end

    foreign = object.__new__(type.__new__(Meta, "Foreign", (), {"__class__": property(end)}))
    for kind in (int, collections.abc.Mapping, os.PathLike, (int, collections.abc.Sized)):
        assert not is_a(foreign, kind)
    assert is_a(foreign, object)
