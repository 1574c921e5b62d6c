"""What a launcher keeps of its calls may be as much as the manual says, and no more: by law C9."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from trunnion.testing.harness import Sabotage
from trunnion.testing.laws import LawViolation, catalogue
from trunnion.testing.runner import harness_of
from trunnion.testing.saboteur import Changed


def shapes(tensors):
    return tuple(tuple(one.shape) for one in tensors)


def addresses(tensors):
    return tuple(one.data_ptr() for one in tensors)


def keeping(*caches):
    """Return a backend that keeps something of its calls' last keys: for each cache, of so many by a function."""

    class Keeping(Changed):
        def __init__(self, true):
            super().__init__(true)
            self._kept = [(functools.lru_cache(maxsize=most)(lambda key: [key]), key) for most, key in caches]

        def call(self, args, **how):
            tensors = [one for one in args if hasattr(one, "data_ptr")]
            if len(tensors) > 1:
                for kept, key in self._kept:
                    kept(key(tensors))
            return self._true.call(args, **how)

    return replace(harness_of("nvrtc"), sabotage=Sabotage(loaded=Keeping))


def test_bounded_caches_are_well(simulator):
    """Together they keep more than each alone, so none of them is blamed by itself either: the law is long."""
    every = keeping((128, shapes), (512, shapes), (1024, addresses))
    assert catalogue()["C9"].check(every, shrink=False).examples == 1


@pytest.mark.parametrize(
    ("key", "kind"),
    [(shapes, "of new extents"), (addresses, "at new addresses")],
    ids=["shapes", "addresses"],
)
def test_one_without_a_most_is_not(simulator, key, kind):
    with pytest.raises(LawViolation, match=kind):
        catalogue()["C9"].check(keeping((None, key)), shrink=False)
