"""Rounds in which everything that can meet a program's first load meets it: ``first_load.py BACKEND ROUNDS SEED``.

Each round takes up a fresh program, and in its first load come eight threads, a signal's handler, finalizers that the
collector runs at any allocation, a fork and, at times, a close, all of which call that program. Each call ends in a
launch or in a typed error; the next one, when all is quiet, launches. A round that hangs shows where every thread is,
and ends the process.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import random
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections import Counter
from contextlib import nullcontext
from importlib.metadata import EntryPoint
from pathlib import Path

import torch

import trunnion
from trunnion.artifacts.store import ArtifactStore
from trunnion.errors import LifecycleError, TrunnionError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.registry import Registry

PATIENCE = 60.0  # seconds
THREADS = 8
ACME = Path(__file__).parents[1] / "third_party" / "acme_backend" / "src"
CUDA = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; }'
HOST = '#include <trunnion/block.h>\nextern "C" void k(float* x, const trunnion_block_t*) { x[0] = 1; }'


def program(language: str):
    builder = ProgramBuilder("ones", DeviceCode(language, CUDA if language == "cuda" else HOST))
    x = builder.input("x", "float32", (8,), access="write")
    builder.launch("k", (x,), 1, 8 if language == "cuda" else 1)
    return builder.build()


class Round:
    """One fresh program, and what came of every call of it."""

    def __init__(self, fresh, x, seed: int) -> None:
        self.program, self.x, self.seed = fresh, x, seed
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.handling = False

    def call(self, who: str, do=None) -> None:
        try:
            (do or self.launch)()
            outcome = "launched"
        except TrunnionError as error:
            outcome = type(error).__name__
        except BaseException as error:  # noqa: BLE001 - nothing else may come, and all of it is told
            self.wrong.append(f"{who}: {''.join(traceback.format_exception(error))}")
            return
        self.outcomes[f"{who} {outcome}"] += 1

    def launch(self) -> None:
        self.program(self.x)

    def handle(self, *_: object) -> None:
        if not self.handling:  # else slow handlers would keep all else from running
            self.handling = True
            self.call("handler")
            self.handling = False

    def litter(self) -> None:
        for _ in range(20):
            Litter(self)

    def work(self, number: int, start: threading.Barrier) -> None:
        start.wait(PATIENCE)
        self.litter()
        ways = (None, None, lambda: self.program.preload(0), lambda: self.program.entry(self.x))
        self.call("thread", ways[number % len(ways)])
        if number == THREADS - 1 and self.seed % 4 == 0:
            self.call("closing", self.program.close)

    def fork(self) -> int:
        # Python runs hooks around a fork that hold its own locks, such as logging's, over Python code. Whoever waits
        # for another thread in the middle of that may wait for one that logs: no library can help it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        gc.disable()
        child = os.fork()
        gc.enable()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        if child:
            return child
        try:
            # The watchdog's thread is not here, and to start another one waits for it.
            signal.setitimer(signal.ITIMER_REAL, PATIENCE / 2)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            faulthandler.register(signal.SIGALRM, chain=True)
            self.wrong.clear()
            self.call("child")
            self.call("child", self.program.close)
            for line in self.wrong:
                os.write(2, f"{line}\n".encode())
            os._exit(bool(self.wrong))
        finally:
            os._exit(9)

    def run(self) -> None:
        draw = random.Random(self.seed)  # noqa: S311 - no secret
        start = threading.Barrier(THREADS + 1)
        threads = [threading.Thread(target=self.work, args=(number, start)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        signal.signal(signal.SIGALRM, self.handle)
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0001, 0.004), 0.02)
        start.wait(PATIENCE)
        self.litter()
        child = self.fork() if self.seed % 3 == 0 else 0
        self.call("main")
        for thread in threads:
            thread.join()
        signal.setitimer(signal.ITIMER_REAL, 0)
        gc.collect()
        if child and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            self.wrong.append("the forked child failed")
        if self.seed % 4 == 0:
            self.closed()
        else:
            self.launch()
            self.program.close()

    def closed(self) -> None:
        try:
            self.launch()
        except LifecycleError:
            return
        self.wrong.append("a closed program launched")


class Litter:
    """A cycle, whose finalizer calls the program."""

    def __init__(self, round_: Round) -> None:
        self.round, self.itself = round_, self

    def __del__(self) -> None:
        self.round.call("finalizer")


def rounds(backend: str, count: int, seed: int) -> Counter[str]:
    name, _, kind = backend.partition(":")
    cpu = kind == "cpu"
    sys.path.insert(0, str(ACME))
    simulator = None if cpu else trunnion.sim.start()
    acme = Registry(
        [
            EntryPoint("acme", "trunnion_acme.hooks", "trunnion"),
            EntryPoint("nvrtc", "trunnion_nvrtc.hooks", "trunnion"),
        ]
    )
    plugins = {"registry": acme} if name == "acme" else {}
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, nullcontext() if cpu else simulator.torch_mode():
        x = torch.zeros(8, device="cpu" if cpu else "cuda:0")
        store = ArtifactStore(Path(folder, "store"))
        given = {"target": "cpu" if cpu else "sm_90", "cache": store, **plugins}
        subject = program("c++" if cpu else "cuda")
        with trunnion.compile(subject, name, **given) as first:
            artifact = first.artifact
            first(x)  # a module whose import a fork cuts off hangs in the child, by a lock of Python's
        for number in range(seed, seed + count):
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            if number % 2:
                fresh = trunnion.CompiledProgram.from_artifact(artifact, **plugins)
            else:
                fresh = trunnion.compile(subject, name, lazy=True, **given)
            one = Round(fresh, x, number)
            one.run()
            if one.wrong:
                sys.exit("\n".join((f"round {number}", *one.wrong)))
            total += one.outcomes
            if simulator is not None:
                simulator.clear_trace()
        faulthandler.cancel_dump_traceback_later()
    return total


if __name__ == "__main__":
    gc.set_threshold(100, 2, 2)
    warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on: of forking beside threads
    sys.stdout.write(
        json.dumps(rounds(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), sort_keys=True) + "\n"
    )
