"""Programs for the CPU, from C++ to a result: they truly run, without a GPU and beside a simulated one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    LifecycleError,
)
from trunnion.examples import CPU_EXAMPLES, load

if TYPE_CHECKING:
    from types import SimpleNamespace

    from trunnion.sim import Simulator

BLOCK = "#include <trunnion/block.h>\n"


@pytest.mark.parametrize("threads", [1, 3, 0])
@pytest.mark.parametrize("name", CPU_EXAMPLES)
def test_the_examples_are_right(name: str, threads: int) -> None:
    example = load(name)
    with trunnion.compile(example.program, options={"tvm_ffi": {"threads": threads}}) as program:
        assert (program.backend, str(program.target)) == ("tvm_ffi", "cpu")
        for seed, make in enumerate((example.inputs, *example.edges)):
            inputs = make(torch.Generator().manual_seed(seed), "cpu")
            assert example.largest_error(program(*inputs), inputs) <= example.tolerance
            assert example.largest_error(program.entry(*inputs), inputs) <= example.tolerance


def test_the_examples_run_beside_a_simulated_gpu(simulator: Simulator) -> None:
    example = load("cpu_softmax")
    with trunnion.compile(example.program) as program, simulator.torch_mode():
        inputs = example.inputs(torch.Generator().manual_seed(3), "cpu")
        assert example.largest_error(program(*inputs), inputs) <= example.tolerance
        elsewhere = (inputs[0].to("cuda:0"), *inputs[1:])
        for call in (program, program.entry, program.bind):
            with pytest.raises(ArgumentValueError) as caught:
                call(*elsewhere)
            assert caught.value.argument == "x"
            assert "cuda:0" in caught.value.got
            assert "the CPU" in caught.value.expected


# One call -----------------------------------------------------------------------------------------------------------


def test_a_call_can_say_what_it_can_on_a_gpu(scale: Any) -> None:
    x = torch.arange(10, dtype=torch.float32)
    out = torch.empty(10)
    for device in (None, 0, "cpu", torch.device("cpu"), "cpu:0"):
        assert torch.equal(scale(x, 2.0, device=device), 2 * x)
    assert scale(x, 3.0, out=out) is out
    assert torch.equal(out, 3 * x)
    bound = scale.bind(x, 0.5, out=out)
    assert bound() is out
    assert torch.equal(out, x / 2)
    x += 1
    assert torch.equal(bound(), x / 2)
    assert (bound.device, bound.stream) == (0, None)
    assert scale(torch.empty(0), 1.0).shape == (0,)
    assert scale.entry(x[3:], 2).tolist() == (2 * x[3:]).tolist()
    scale.preload(0)


@pytest.mark.parametrize(
    ("fields", "error", "argument"),
    [
        ({"device": 1}, ArgumentValueError, "device"),
        ({"device": -1}, ArgumentValueError, "device"),
        ({"device": "cuda:0"}, ArgumentTypeError, "device"),
        ({"device": "cpu:"}, ArgumentTypeError, "device"),
        ({"stream": 5}, ArgumentValueError, "stream"),
        ({"stream": "s"}, ArgumentTypeError, "stream"),
        ({"out": torch.empty(11)}, ArgumentValueError, "y"),
        ({"out": torch.empty(10, device="meta")}, ArgumentValueError, "y"),
    ],
)
def test_what_the_cpu_has_not_is_refused(
    scale: Any, fields: dict[str, Any], error: type, argument: str
) -> None:
    for use in (scale, scale.bind):
        with pytest.raises(error) as caught:
            use(torch.ones(10), 2.0, **fields)
        assert caught.value.argument == argument
    with pytest.raises(ArgumentValueError):
        scale.preload(1)


@pytest.mark.parametrize(
    ("args", "error", "argument"),
    [
        ((torch.ones(3, dtype=torch.float64), 1.0), ArgumentTypeError, "x"),
        ((torch.ones(3, 3), 1.0), ArgumentValueError, "x"),
        ((torch.ones(6)[::2], 1.0), ArgumentValueError, "x"),
        ((torch.ones(3, device="meta"), 1.0), ArgumentValueError, "x"),
        ((None, 1.0), ArgumentTypeError, "x"),
        ((torch.ones(3), "1"), ArgumentTypeError, "factor"),
        ((torch.ones(3), 1e39), ArgumentValueError, "factor"),
        ((torch.ones(3),), ArgumentTypeError, ""),
    ],
)
def test_arguments_are_checked(scale: Any, args: tuple[Any, ...], error: Any, argument: str) -> None:
    for use in (scale, scale.entry, scale.bind):
        with pytest.raises(error) as caught:
            use(*args)
        assert caught.value.argument == argument


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_are_refused(scale: Any, layout: torch.layout) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
    plain = torch.ones(5)
    for call in (scale, scale, scale.entry, scale.bind):
        scale(plain, 1.0)  # after which a tensor like it is recognized
        with pytest.raises(ArgumentTypeError, match=r"argument 'x'.* expected a dense tensor in memory"):
            call(nested, 1.0)
    for call in (scale, scale.bind):
        with pytest.raises(ArgumentTypeError, match=r"argument 'y'.* expected a dense tensor in memory"):
            call(plain, 1.0, out=nested)


def test_a_program_without_tensors_needs_no_device() -> None:
    p = ProgramBuilder(
        "count", DeviceCode("c++", BLOCK + "void k(int* y, int n, const trunnion_block_t*) { *y = n; }")
    )
    n = p.scalar("n", "int32")
    y = p.output("y", "int32", ())
    p.launch("k", args=(y, n), grid=1, block=1)
    with trunnion.compile(p.build()) as program:
        assert program(7).item() == 7
        assert program(8, device=0).item() == 8
        assert program.entry(9).item() == 9
        assert program.bind(10)().item() == 10
        with pytest.raises(ArgumentValueError) as caught:
            program(1, device=3)
        assert caught.value.argument == "device"


def test_a_call_may_leave_out_every_tensor() -> None:
    text = "void k(const float* x, int* y, const trunnion_block_t*) { *y = x == nullptr ? -1 : (int)*x; }"
    p = ProgramBuilder("maybe", DeviceCode("c++", BLOCK + text))
    x, y = p.input("x", "float32", (1,), nullable=True), p.output("y", "int32", ())
    p.launch("k", args=(x, y), grid=1, block=1)
    with trunnion.compile(p.build()) as program:
        assert program(None).item() == -1
        assert program.entry(None).item() == -1
        assert program(torch.tensor([4.0])).item() == 4


# Threads and lives --------------------------------------------------------------------------------------------------

WAITING = """
#include <time.h>
void scale(const float* x, float* y, int64_t n, float factor, const trunnion_block_t* block) {
  volatile float* flag = const_cast<float*>(x);
  const timespec pause{0, 100000};
  int patience = 200000;
  flag[n - 1] = 1;
  while (*flag == 0 && --patience != 0) nanosleep(&pause, nullptr);
  y[block->index[0]] = patience != 0 ? factor : -1;
}
"""


def test_other_python_threads_run_while_a_kernel_does(host: SimpleNamespace) -> None:
    with trunnion.compile(host.scaling(code=WAITING, grid=1)) as program:
        program.preload(0)
        x = torch.zeros(2)
        results: list[Any] = []
        worker = threading.Thread(target=lambda: results.append(program(x, 2.0)))
        worker.start()
        while x[1] == 0 and worker.is_alive():
            os.sched_yield()
        x[0] = 1
        worker.join()
        assert results[0][0] == 2


def test_close_waits_for_a_launch(host: SimpleNamespace) -> None:
    program = trunnion.compile(host.scaling(code=WAITING, grid=1))
    x = torch.zeros(2)
    results: list[Any] = []
    worker = threading.Thread(target=lambda: results.append(program(x, 2.0)))
    worker.start()
    while x[1] == 0 and worker.is_alive():
        os.sched_yield()
    closer = threading.Thread(target=program.close)
    closer.start()
    x[0] = 1
    worker.join()
    closer.join()
    assert results[0][0] == 2
    with pytest.raises(LifecycleError, match="closed"):
        program(x, 2.0)
    program.close()


def test_a_forked_child_launches_on() -> None:
    source = """
import os, torch, trunnion
from trunnion import examples
example = examples.load("cpu_axpy")
program = trunnion.compile(example.program, options={"tvm_ffi": {"threads": 2}})
inputs = example.inputs(torch.Generator().manual_seed(0), "cpu")

def right():
    return example.largest_error(program(*inputs), inputs) <= example.tolerance

assert right()
child = os.fork()
if child == 0:
    os._exit(0 if right() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert right()
"""
    subprocess.run([sys.executable, "-c", source], check=True, timeout=300)


def test_many_threads_call_one_program(scale: Any) -> None:
    wrong: list[int] = []

    def calls(number: int) -> None:
        x = torch.arange(100, dtype=torch.float32)
        good = [torch.equal(scale.entry(x, float(number)), x * number) for _ in range(200)]
        wrong.append(good.count(False))

    workers = [threading.Thread(target=calls, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == [0] * 4
