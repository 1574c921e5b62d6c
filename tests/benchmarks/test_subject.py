from __future__ import annotations

from types import SimpleNamespace

from launching.subject import NotHereError, Subject, prepare, version_of
from launching.trial import PythonCall


class FakeStage:
    """A stage on a GPU, which finds that every kernel received ``answer``."""

    def __init__(self, answer: bool) -> None:
        self.device = SimpleNamespace(simulator=None)
        self.answer = answer
        self.held = ()

    def received(self, trial: object, *, adds_scalar: bool) -> bool:
        return self.answer


def subject(name: str, prepare, **fields) -> Subject:
    return Subject(name, "other", "nothing", prepare, **fields)


def fails(stage: object) -> PythonCall:
    raise KeyError("whatever\nelse")


def is_not_here(stage: object) -> PythonCall:
    raise NotHereError("takes no maps")


def works(stage: object) -> PythonCall:
    return PythonCall("word", {})


def test_one_that_fails_is_a_row_and_ends_no_other() -> None:
    subjects = (subject("a", fails), subject("b", is_not_here), subject("c", works))
    ready = prepare(subjects, FakeStage(answer=True))
    assert set(ready.trials) == {"c"}
    assert ready.absent == {"a": "failed: KeyError: 'whatever\\nelse'", "b": "takes no maps"}


def test_one_that_is_not_installed_says_so() -> None:
    ready = prepare((subject("a", works, distribution="no-such-thing|nor-this"),), FakeStage(answer=True))
    assert ready.absent == {"a": "not installed"}


def test_one_whose_kernel_received_something_else_is_not_timed() -> None:
    ready = prepare((subject("a", works), subject("b", works, launches=False)), FakeStage(answer=False))
    assert set(ready.trials) == {"b"}
    assert ready.absent["a"].startswith("WRONG")


def test_one_that_holds_the_tensors_of_all_is_not_timed() -> None:
    def holds(stage: FakeStage) -> PythonCall:
        stage.held = ("t0", "t1")
        return works(stage)

    ready = prepare((subject("a", holds),), FakeStage(answer=True))
    assert ready.trials == {}
    assert ready.absent["a"] == "holds t0, t1, which all subjects share: give it tensors of its own"


def test_version_of_takes_the_first_that_is_installed() -> None:
    assert version_of("no-such-thing|pytest") == version_of("pytest") != ""
