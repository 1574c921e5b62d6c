"""The grid loop of the CPU target: every block once, in order on each thread, with scratch of its own."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion.codegen.cpp.build import runtime_folder

REQUEST = np.dtype(
    [
        ("grid", "<u4", 3),
        ("block", "<u4", 3),
        ("shared_bytes", "<u8"),
        ("threads", "<u4"),
        ("threads_left", "<u4"),
        ("scratches_left", "<u4"),
        ("unused", "<u4"),
    ]
)
ANSWER = np.dtype([("ok", "<u4"), ("raised", "<u4"), ("threads_made", "<u4"), ("calls", "<u4")])
CALL = np.dtype(
    [
        ("turn", "<u4"),
        ("thread", "<u4"),
        ("index", "<u4", 3),
        ("grid", "<u4", 3),
        ("block", "<u4", 3),
        ("good", "<u4"),
        ("shared_bytes", "<u8"),
    ],
    align=True,
)
PLENTY = 2**32 - 1


@pytest.fixture(scope="module")
def run(native: Any) -> Any:
    program = native("grid")

    def run_once(
        grid: tuple[int, ...],
        block: tuple[int, ...] = (1, 1, 1),
        *,
        shared: int = 0,
        threads: int = 1,
        left: tuple[int, int] = (PLENTY, PLENTY),
    ) -> tuple[Any, Any]:
        request = np.zeros(1, REQUEST)
        request[0] = (grid, block, shared, threads, *left, 0)
        answer = program(request.tobytes())
        return (
            np.frombuffer(answer, ANSWER, count=1)[0],
            np.frombuffer(answer, CALL, offset=ANSWER.itemsize),
        )

    return run_once


def in_order(grid: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the index of each block, x fastest."""
    return [(x, y, z) for z, y, x in itertools.product(*(range(extent) for extent in reversed(grid)))]


def parts(calls: Any) -> list[list[tuple[int, ...]]]:
    """Return the blocks of each thread, in its order, the threads by their first block."""
    found: dict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    for call in calls:
        found[int(call["thread"])].append((int(call["turn"]), tuple(map(int, call["index"]))))
    each = [[index for _, index in sorted(one)] for one in found.values()]
    return sorted(each, key=lambda one: one[0][::-1])


extents = st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 3))


@settings(max_examples=40)
@given(
    grid=extents,
    block=st.tuples(st.integers(1, 1024), st.integers(1, 9), st.integers(1, 64)),
    shared=st.sampled_from((0, 1, 63, 64, 65, 4096)),
    threads=st.integers(0, 5),
    left=st.tuples(st.sampled_from((0, 1, 2, PLENTY)), st.sampled_from((1, 2, 3, PLENTY))),
)
def test_every_block_is_computed_once_and_in_order(run, grid, block, shared, threads, left):
    answer, calls = run(grid, block, shared=shared, threads=threads, left=left)
    assert (answer["ok"], answer["raised"]) == (1, 0)
    assert all(tuple(call["grid"]) == grid and tuple(call["block"]) == block for call in calls)
    assert all(call["good"] and call["shared_bytes"] == shared for call in calls)
    wanted = in_order(grid)
    assert sorted(tuple(map(int, call["index"])) for call in calls) == sorted(wanted)
    if answer["threads_made"] == 0:  # also where there should be several, and there are none
        assert parts(calls) == ([wanted] if wanted else [])
    assert answer["threads_made"] < (threads or len(os.sched_getaffinity(0)))


def test_one_thread_is_the_calling_one(run):
    answer, calls = run((3, 2, 2), threads=1)
    assert answer["threads_made"] == 0
    assert parts(calls) == [in_order((3, 2, 2))]


def test_several_threads_take_consecutive_parts_of_equal_length(run):
    answer, calls = run((5, 3, 1), threads=4)
    assert answer["threads_made"] == 3
    wanted = in_order((5, 3, 1))
    assert parts(calls) == [wanted[:4], wanted[4:8], wanted[8:12], wanted[12:]]


def test_there_are_not_more_threads_than_blocks(run):
    answer, calls = run((2, 1, 1), threads=1000)
    assert (answer["threads_made"], len(calls)) == (1, 2)


def test_zero_threads_are_all_cores(run):
    answer, _ = run((64, 64, 1), threads=0)
    assert answer["threads_made"] == len(os.sched_getaffinity(0)) - 1


def test_threads_that_cannot_be_had_leave_their_blocks_to_the_caller(run):
    answer, calls = run((8, 1, 1), threads=4, left=(1, PLENTY))
    assert (answer["ok"], answer["threads_made"]) == (1, 1)
    assert sorted(parts(calls), key=len) == [[(2, 0, 0), (3, 0, 0)], [(x, 0, 0) for x in (0, 1, 4, 5, 6, 7)]]


def test_memory_for_one_scratch_is_enough(run):
    answer, calls = run((8, 1, 1), shared=100, threads=4, left=(PLENTY, 1))
    assert (answer["ok"], answer["threads_made"]) == (1, 0)
    assert parts(calls) == [in_order((8, 1, 1))]


@pytest.mark.parametrize(
    ("shared", "left"), [(64, (PLENTY, 0)), (2**62, (PLENTY, PLENTY)), (2**64 - 1, (0, 9))]
)
def test_no_scratch_at_all_is_an_error_and_calls_nothing(run, shared, left):
    answer, calls = run((4, 1, 1), shared=shared, threads=2, left=left)
    assert (answer["ok"], answer["raised"], len(calls)) == (0, 1, 0)


@pytest.mark.parametrize("grid", list(itertools.product((0, 2**31 - 1), (0, 65535), (0, 65535)))[:-1])
def test_an_empty_grid_calls_nothing(run, grid):
    answer, calls = run(grid, shared=2**62, threads=3)
    assert (answer["ok"], len(calls)) == (1, 0)


@pytest.mark.parametrize("language", ["c11", "c17", "c++17", "c++20"])
def test_the_block_is_for_c_and_for_cpp(tmp_path, language):
    """The header stands alone, and no warning comes out of it."""
    suffix, compiler = (".c", "cc") if "+" not in language else (".cc", "c++")
    source = tmp_path / f"kernel{suffix}"
    source.write_text(
        "#include <trunnion/block.h>\n"
        "void kernel(float* x, const trunnion_block_t* block);\n"
        "void kernel(float* x, const trunnion_block_t* block) { x[block->index[0]] = (float)block->shared_bytes; }\n"
    )
    command = [
        shutil.which(compiler) or compiler,
        f"-std={language}",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
    ]
    done = subprocess.run(
        [*command, f"-I{runtime_folder()}", "-c", source.name, "-o", "kernel.o"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
