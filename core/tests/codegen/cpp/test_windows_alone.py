"""What a C++ launcher with windows does by itself, and what it holds: no hook, no owner, a forked process."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import torch
import tvm_ffi

from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.codegen.cpp.program import CppProgram
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import symbols
from trunnion.model.program import DeviceCode
from trunnion.sim.trace import Launched, LimitSet, PersistingLinesReset, StreamAttributeSet
from trunnion.testing.symbols import kernel_symbol

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.model.program import KernelProgram

pytestmark = pytest.mark.tvm_ffi_abi

CODE = DeviceCode("cuda", "//")
LIMITS = ("persisting_limit", "set_persisting_limit")


def windowed(policy: str = "launch") -> KernelProgram:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    p.launch("k", (x,), 1, 32, window=x.window(hit_ratio=0.75, policy=policy))
    return p.build()


def plain() -> KernelProgram:
    p = ProgramBuilder("p", CODE)
    p.launch("k", (p.input("x", "float32", symbols("n")),), 1, 32)
    return p.build()


def on(device: int, *shape: int) -> Any:
    return torch.zeros(*shape, dtype=torch.float32, device=f"cuda:{device}")


def events(simulator: Any, *kinds: type) -> list[Any]:
    return [event for event in simulator.trace if isinstance(event, kinds)]


@pytest.fixture
def module(simulator: Any, built: Any, tmp_path: Path) -> Any:
    """Load modules as anybody would who has no trunnion; they are closed after the test."""
    made = []

    def load(program: KernelProgram) -> Any:
        file = tmp_path / f"{len(made)}.so"
        file.write_bytes(built(program))
        made.append(tvm_ffi.load_module(str(file)))
        return made[-1]

    with simulator.torch_mode():
        yield load
        for one in made:
            one.get_function("close")()


def test_a_module_alone_sets_its_windows_and_touches_no_limit(simulator: Any, module: Any) -> None:
    launch, stream = module(windowed()), module(windowed("stream"))
    for one in (launch, stream):
        one.get_function("preload")(0)
        one.get_function("main")(on(0, 1000))
    assert [event.window.nbytes for event in events(simulator, Launched)] == [4000, 4000]
    kinds = (LimitSet, StreamAttributeSet, PersistingLinesReset)
    assert [type(event).__name__ for event in events(simulator, *kinds)] == [
        "StreamAttributeSet",
        "StreamAttributeSet",
        "PersistingLinesReset",
    ]
    x = on(0, 1000)
    launch.get_function("main")(x)
    with simulator.capture(device=0) as graph:
        launch.get_function("main")(x)
    simulator.clear_trace()
    graph.launch()
    assert [event.window.nbytes for event in events(simulator, Launched)] == [4000]


def test_whoever_has_a_module_alone_may_give_it_a_hook(simulator: Any, module: Any) -> None:
    one, asked = module(windowed()), []

    def hook(*question: Any) -> int:
        asked.append(question)
        return 4000

    main, set_hook = one.get_function("main"), one.get_function("set_hook")
    set_hook(hook)
    for extent in (1000, 900, 1001):
        main(on(1, extent))
    with simulator.capture(device=1):
        main(on(1, 2000))
    one.get_function("preload")(1)
    most = simulator.device(1).attribute(108)  # CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE
    assert asked[:2] == [("launch", 1, 4000, most), ("launch", 1, 4004, most)]
    assert asked[2] == ("captured", 1, 8000, 4000, kernel_symbol(0))
    assert asked[3] == ("preload", 1, simulator.device(1).attribute(109), most)
    set_hook(lambda *_: "no number")
    with pytest.raises(
        TypeError, match="argument 'hook': got str, expected a function that answers integers"
    ):
        main(on(1, 3000))
    set_hook(lambda *_: -7)
    with pytest.raises(RuntimeError, match="no cache could be set aside for an access-policy window"):
        main(on(1, 3000))


@pytest.mark.parametrize("given", [(), (1,), (None,), (print, print)])
def test_a_hook_is_one_function(module: Any, given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        module(windowed()).get_function("set_hook")(*given)


def test_a_program_without_windows_has_no_such_functions(module: Any) -> None:
    one = module(plain())
    for name in (*LIMITS, "set_hook"):
        with pytest.raises(AttributeError):
            one.get_function(name)


def test_the_limit_is_that_of_the_device_that_is_named(simulator: Any, module: Any) -> None:
    one = module(windowed())
    read, write = (one.get_function(name) for name in LIMITS)
    with pytest.raises(RuntimeError, match="the program was not loaded yet"):
        read(0)
    one.get_function("load")()
    write(1, 4096)
    assert (read(0), read(1)) == (0, 4096)
    one.get_function("close")()
    write(1, 0)
    assert read(1) == 0
    assert [(event.device, event.asked) for event in events(simulator, LimitSet)] == [(1, 4096), (1, 0)]
    for wrong in ((), (0, 0), ("0",)):
        with pytest.raises(TypeError):
            read(*wrong)
    for wrong in ((0,), (0, "1"), ("0", 1)):
        with pytest.raises(TypeError):
            write(*wrong)
    with pytest.raises(ValueError, match="argument 'device': got 9, expected an integer, 0 to "):
        read(9)


def test_a_launcher_lets_its_hook_go_when_it_is_closed(simulator: Any, built: Any) -> None:
    program = CppProgram(built(windowed()), CallSignature.of(windowed().plan()), simulator.runtime, "test")
    hook = weakref.ref(program._set_aside)
    with simulator.torch_mode():
        program.entry(on(0, 10))
    program.close()
    del program
    gc.collect()
    assert hook() is None


_FORKS = """
import os, sys
from pathlib import Path
from trunnion import sim
simulator = sim.start()
import torch
from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.codegen.cpp.program import CppProgram
from trunnion.sim.trace import LimitSet

library, facts = (Path(name).read_bytes() for name in sys.argv[1:])
program = CppProgram(library, CallSignature.from_json(facts), simulator.runtime, "test")
with simulator.torch_mode():
    program.entry(torch.zeros(1000, device="cuda"))
child = os.fork()
simulator.clear_trace()
program.close()
asked = [event.asked for event in simulator.trace if isinstance(event, LimitSet)]
if child == 0:
    os._exit(10 + len(simulator.trace))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), asked)
"""


def test_a_forked_child_leaves_the_cache_that_its_parent_set_aside(built: Any, tmp_path: Path) -> None:
    library, facts = tmp_path / "launcher.so", tmp_path / "call.json"
    library.write_bytes(built(windowed()))
    facts.write_text(CallSignature.of(windowed().plan()).to_json(), "utf-8")
    command = [sys.executable, "-W", "ignore", "-c", _FORKS, library, facts]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("10 [0]\n", "")
