"""Saboteurs of what a program refuses, writes and returns: narrow ones, at which one law looks and no other."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from trunnion.errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    TensorMapError,
    TrunnionError,
    UnsupportedFeatureError,
)
from trunnion.testing.saboteur import Changed, Saboteur, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.source import GeneratedSource
    from trunnion.model.plan import LaunchPlan

__all__ = ["REFUSAL_SABOTEURS", "of_row", "unrefused"]


def _is_tensor(value: object) -> bool:
    return hasattr(value, "data_ptr")


# What should be refused, and is taken for done ----------------------------------------------------------------------


class _Unrefused(Changed):
    """A loaded program that takes some wrong calls for done.

    Parameters
    ----------
    true
        The program.
    meant
        Whether it takes a wrong call, told by its error, for done.
    """

    def __init__(self, true: LoadedProgram, meant: Callable[[Any], bool]) -> None:
        super().__init__(true)
        self._meant = meant

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch, or not."""
        try:
            return self._true.call(*args, **how)
        except TrunnionError as error:
            if not self._meant(error):
                raise


def unrefused(meant: Callable[[Any], bool]) -> Callable[[LoadedProgram], Any]:
    """Return the change of a loaded program that takes some wrong calls, told by their errors, for done."""
    return lambda true: _Unrefused(true, meant)


def of_row(row: str, words: str = "") -> Callable[[Any], bool]:
    """Return whether an error is of a row of the table of refusals, and has some words in it."""
    return lambda error: getattr(error, "refusal", "") == row and words in str(error)


def _looks(value: Any) -> object:
    """Return what a value looks like, wherever it lies."""
    if not _is_tensor(value):
        return type(value), value
    return value.dtype, tuple(value.shape), tuple(value.stride()), value.device


class _RefusedBefore(Changed):
    """A loaded program that takes a wrong call for done if one that looks the same was just refused."""

    _refused: Any = None

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        try:
            result = self._true.call(args, **how)
        except ArgumentError:
            looks = [*map(_looks, args)], [id(one) for one in args if _is_tensor(one)]
            before, self._refused = self._refused, looks
            if before is not None and before[0] == looks[0] and not {*before[1]} & {*looks[1]}:
                return None
            raise
        self._refused = None
        return result


class _MappedBefore(Changed):
    """A loaded program that takes elements for neighbours in memory of which it has a map."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._mapped: set[Any] = set()

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        from torch.multiprocessing.reductions import StorageWeakRef  # noqa: PLC0415 - tensors are torch's

        memories = {
            StorageWeakRef(one.untyped_storage())  # type: ignore[no-untyped-call]  # torch's
            for one in args
            if _is_tensor(one)
        }
        try:
            result = self._true.call(args, **how)
        except TensorMapError as error:
            apart = error.broken and all("innermost dimension is contiguous" in rule for rule in error.broken)
            if apart and memories and memories <= self._mapped:
                return None
            raise
        self._mapped |= memories
        return result


class _LazyDestinations(Changed):
    """A loaded program that takes a destination in memory that was good, though it is negated or conjugated there."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._known: set[int] = set()

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:
        """Launch, or not."""
        written = [one for one in out or () if _is_tensor(one)]
        lazy = [one for one in written if one.is_neg() or one.is_conj()]
        if lazy and all(one.data_ptr() in self._known for one in lazy):
            return out[0] if len(out) == 1 else tuple(out)
        result = self._true.call(args, out=out, **how)
        self._known |= {one.data_ptr() for one in written}
        return result


def _refuses_neighbours(out: Any) -> None:
    spans = sorted(
        (one.data_ptr(), one.data_ptr() + one.numel() * one.itemsize) for one in out if _is_tensor(one)
    )
    for (start, end), (after, _) in itertools.pairwise(spans):
        if start < end == after:
            raise ArgumentValueError("out", "memory that begins where another's ends", "memory of its own")


class _Distant(Changed):
    """A loaded program that takes two destinations for one memory that only touch."""

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:
        """Launch, or not."""
        _refuses_neighbours(out or ())
        return self._true.call(args, out=out, **how)


class _FewAbsent(Changed):
    """A loaded program that has a bit for each of the first 32 tensors that may be left out."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        if any(one is None for one in args[32:]):
            raise ArgumentTypeError("", "None", "a tensor")
        return self._true.call(args, **how)


# Source and results -------------------------------------------------------------------------------------------------


class _FirstLack(Changed):
    """A wrapper that names one of the things that its backend does not declare."""

    def wrap(self, plan: LaunchPlan, *target: str) -> GeneratedSource:
        """Return a source."""
        try:
            source: GeneratedSource = self._true.wrap(plan, *target)
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(error.plugin, error.features[:1], "not today") from error
        return source


class _OddStrides(Changed):
    """A loaded program whose outputs have strides of their own where a dimension has one element."""

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:
        """Launch."""
        result = self._true.call(args, out=out, **how)
        if out is not None or result is None:
            return result
        return tuple(map(_odd, result)) if isinstance(result, tuple) else _odd(result)


def _odd(tensor: Any) -> Any:
    steps = [
        step + 1 if extent == 1 else step for extent, step in zip(tensor.shape, tensor.stride(), strict=True)
    ]
    return tensor.as_strided(tensor.shape, steps)


def _saboteur(name: str, what: str, law: str, loaded: Callable[[LoadedProgram], Any]) -> Saboteur:
    return saboteur(name, what, law, stage="lifecycle", loaded=loaded)


REFUSAL_SABOTEURS: tuple[Saboteur, ...] = (
    _saboteur(
        "odd-grids",
        "Takes a grid for whole that leaves one block of a cluster of two over.",
        "A4",
        unrefused(of_row("cluster", "multiple of the cluster's 2")),
    ),
    _saboteur("refused-before", "Refuses a wrong call once.", "L8", _RefusedBefore),
    _saboteur("mapped-before", "Takes any map of memory that was mapped.", "T3", _MappedBefore),
    _saboteur(
        "empty-boxes",
        "Takes a map for good whose box of pixels is empty.",
        "T5",
        unrefused(lambda error: "is not empty" in str(getattr(error, "broken", ""))),
    ),
    _saboteur(
        "captured-windows",
        "Does nothing where a window of a captured stream waits.",
        "G3",
        unrefused(of_row("window-in-capture")),
    ),
    _saboteur("lazy-destinations", "Takes known memory that is negated.", "O2", _LazyDestinations),
    _saboteur("distant-destinations", "Refuses destinations that touch.", "O4", _Distant),
    _saboteur("few-absent", "Demands the 33rd tensor, and those after it.", "V4", _FewAbsent),
    _saboteur("odd-strides", "Returns unusual strides of single elements.", "O5", _OddStrides),
    saboteur(
        "first-lack",
        "Names one lacking capability.",
        "S4",
        stage="emitter",
        wrapper=_FirstLack,
    ),
)
"""The saboteurs."""
