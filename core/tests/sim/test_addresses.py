"""Where simulated memory lies: a matter of what was allocated before, in every process."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

import pytest

from trunnion.sim import addresses
from trunnion.sim.addresses import ALIGNMENT, Addresses

APART = 1 << 16


@pytest.fixture
def space():
    return Addresses()


def test_memory_is_aligned_as_little_as_a_driver_promises(space):
    taken = [space.take(nbytes) for nbytes in (1, 100, APART, 3 * APART + 5, 1)]
    assert {address % APART for address, _ in taken} == {ALIGNMENT}
    assert [len(owner) for _, owner in taken] == [1, 100, APART, 3 * APART + 5, 1]


def test_pieces_share_nothing_and_can_be_written_to_their_last_byte(space):
    sizes = [1, APART - ALIGNMENT, APART - ALIGNMENT + 1, 5]
    taken = [space.take(nbytes) for nbytes in sizes]
    for index, (address, owner) in enumerate(taken):
        ctypes.memset(address, index + 1, len(owner))
    for index, (_, owner) in enumerate(taken):
        assert bytes(owner) == bytes([index + 1]) * sizes[index]


def test_what_was_freed_last_is_given_first(space):
    first, second, larger = space.take(10), space.take(20), space.take(2 * APART)
    for address, owner in (first, second, larger):
        space.give(address, len(owner))
    again = [space.take(nbytes)[0] for nbytes in (APART - ALIGNMENT, 1, APART + 1)]
    assert again[:2] == [second[0], first[0]]
    assert again[2] > larger[0], "of another size"


def test_what_was_freed_is_nobodys(space):
    address, owner = space.take(100)
    ctypes.memset(address, 7, 100)
    space.give(address, len(owner))
    again, owner = space.take(100)
    assert again == address
    assert not any(owner), "fresh from the system"


def test_a_place_that_somebody_else_has_is_passed_over(space):
    other = Addresses()
    (theirs, _owner), (ours, _ours) = other.take(1), space.take(1)
    assert ours != theirs
    assert ours % APART == ALIGNMENT


@pytest.mark.parametrize("nbytes", [1 << 46, 1 << 60, 1 << 70])
def test_more_than_there_is_is_refused(space, nbytes):
    with pytest.raises(OSError, match="Cannot allocate"):
        space.take(nbytes)


def test_where_a_place_cannot_be_asked_for_memory_is_aligned_all_the_same(monkeypatch):
    monkeypatch.setattr(addresses, "_FIRST", 1 << 62)  # beyond what any process can have
    elsewhere = Addresses()
    taken = [elsewhere.take(nbytes) for nbytes in (1, 3 * APART)]
    assert {address % APART for address, _ in taken} == {ALIGNMENT}
    for address, owner in taken:
        ctypes.memset(address, 1, len(owner))
        elsewhere.give(address, len(owner))
    assert elsewhere.take(1)[0] % APART == ALIGNMENT


SEEN = """
import ctypes, random, sys
kept = [bytearray(random.SystemRandom().randrange(1 << 20)) for _ in range(int(sys.argv[1]))]
from trunnion import sim
simulator = sim.start(devices=2)
import torch
seen = []
for size in (10, 100_000, 10, 1 << 20):
    tensor, host = simulator.tensor(torch.zeros(size), 1), torch.empty(size)
    seen.append(tensor.data_ptr())
    seen.append(simulator.runtime.allocate((size,), torch.int8, 0, 0).data_ptr())
    seen.append((tensor + 1).data_ptr())
print(*seen)
"""


def test_every_process_has_the_same_addresses():
    def seen(hashes: str, kept: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", SEEN, kept],
            env={
                **os.environ,
                "PYTHONHASHSEED": hashes,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    first = seen("1", "0")
    assert first == seen("2", "50")
    assert len(first) == 12


def test_garbage_that_is_collected_late_moves_only_what_comes_after(space):
    """What is freed in a finalizer, in the middle of anything, is given to the next who asks."""

    class Held:
        def __init__(self) -> None:
            self.address, self.owner = space.take(1)
            self.me = self

        def __del__(self) -> None:
            space.give(self.address, len(self.owner))

    place = Held().address
    gc.collect()
    assert space.take(1)[0] == place
