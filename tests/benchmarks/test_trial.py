from __future__ import annotations

import gc
from fractions import Fraction

from launching.trial import NativeLoop, PythonCall


def test_an_expression_is_evaluated_with_its_names_and_the_scalar() -> None:
    assert PythonCall("f(a, word)", {"f": max, "a": 3}).once(7) == 7
    assert PythonCall("word", {}, scalar=Fraction).once(7) == Fraction(7)


def test_an_expression_is_timed_with_the_scalar_0_as_often_as_asked_with_the_collector_on() -> None:
    seen: list[tuple[int, bool]] = []
    took = PythonCall("f(word)", {"f": lambda word: seen.append((word, gc.isenabled()))}).seconds(5)
    assert seen == [(0, True)] * 5
    assert took > 0


def test_a_native_loop_says_itself_how_long_it_took() -> None:
    calls: list[tuple[int, int]] = []
    trial = NativeLoop(lambda word, launches: calls.append((word, launches)) or 0.25)
    trial.once(7)
    assert trial.seconds(9) == 0.25
    assert calls == [(7, 1), (0, 9)]
