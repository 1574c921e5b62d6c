"""What every test of the workspace shares: the simulated driver of its process, which each test leaves as it found it.

A process has one simulator, so what one test leaves in it, another finds: which one, depends on their order. A test
that leaves something fails, with what it left. No test fails because a machine is slow. What Hypothesis draws is the
same in every run, unless a run is told to explore (``make explore``).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from trunnion import sim
from trunnion.artifacts.location import VARIABLE
from trunnion.testing.draws import drawn_by_seed_alone
from trunnion.testing.machine import start_simulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forked_python.client import ForkedPython

    from trunnion.sim import Simulator


EXPLORED = Path(__file__).parent / ".hypothesis-explore"
"""Where runs that explore keep what they find, and nobody else looks."""

# How long an example takes says how busy the machine is. What a test of examples needs is that all of them are tried.
_NO_FAULT = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile(
    "gate", deadline=None, suppress_health_check=_NO_FAULT, derandomize=True, database=None
)
settings.register_profile(
    "explore",
    deadline=None,
    suppress_health_check=_NO_FAULT,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(EXPLORED / "examples"),
)
settings.load_profile("gate")


def pytest_configure(config: pytest.Config) -> None:
    """Have Hypothesis draw nothing that it reads in modules: which are imported depends on what ran before.

    And let Ctrl-C interrupt: whoever starts a run in the background has it ignored, by every process of the run.

    And keep no program in the user's cache, nor take one from there, here and in every process that a test starts: what
    is tested is what is compiled now. A test of the cache names a folder of its own.
    """
    os.environ[VARIABLE] = "0"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    drawing = contextlib.ExitStack()
    drawing.enter_context(drawn_by_seed_alone())
    config.add_cleanup(drawing.close)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests were left out because what they test is optional, and not built here."""
    try:
        importlib.import_module("trunnion_fastcall")
    except ImportError as error:
        terminalreporter.write_line(
            f"left out: plugins/fastcall/tests, trunnion-fastcall is not built: {error}"
        )


pytest_plugins = ["pytester"]  # only here can a plugin be asked for; tests of tests need it


REFUSING = """
import sys
from importlib.abc import MetaPathFinder

class Refusing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise AssertionError(f"{{name}} is imported")

sys.meta_path.insert(0, Refusing())
"""


@pytest.fixture(scope="session")
def words_without() -> Callable[..., list[str]]:
    """Return a function that runs Python in a new process, in which some packages cannot be imported.

    It takes the packages, the text and its arguments, and returns the words that the text printed. The process finds
    every other module that this one finds.
    """

    def run(packages: tuple[str, ...], text: str, *arguments: object) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", REFUSING.format(packages=packages) + text, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if done.returncode:
            pytest.fail(done.stderr)
        return done.stdout.split()

    return run


@pytest.fixture(scope="session")
def forked_python() -> Iterator[ForkedPython]:
    """Yield what runs a text as ``python -c`` does, in a process that has torch imported already."""
    client = importlib.import_module("forked_python.client")  # which a run with other options need not find
    with client.ForkedPython() as run:
        yield run


DISCOVER = """
import sys
from importlib.metadata import EntryPoint
from trunnion.registry import Registry
(info,) = Registry([EntryPoint(sys.argv[1], sys.argv[2], "trunnion")]).plugins()
assert info.failure is None, info.failure
assert info.backend_availability and info.compiler_availability
with open("/proc/self/maps") as maps:
    print(*sys.modules, *{line.split()[-1] for line in maps})
"""


@pytest.fixture(scope="session")
def loaded_by_discovery(words_without: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Return a function that has a new process discover a plugin, which probes all that it announces.

    It takes the plugin's name and its module, and returns the names of all modules and the paths of all files that the
    process has loaded then.
    """
    return lambda name, module: words_without((), DISCOVER, name, module)


@pytest.fixture(scope="session")
def explored(request: pytest.FixtureRequest) -> Path | None:
    """Return where a run that explores keeps what it finds; None: this run does not explore."""
    exploring = request.config.getoption("--hypothesis-profile") == "explore"
    return EXPLORED if exploring else None


@pytest.fixture(scope="session")
def running_simulator() -> Simulator:
    """Return the simulator of this process, with the devices that laws need, as whoever came before left it."""
    return start_simulator()


@pytest.fixture
def simulator(running_simulator: Simulator) -> Iterator[Simulator]:
    """Yield the simulator with no context current and nothing traced; take back bodies, and raise what is pending."""
    state = running_simulator.state
    bodies = dict(state.bodies)
    running_simulator.forget_pending()
    running_simulator.clear_trace()
    state.stack().clear()
    yield running_simulator
    state.stack().clear()
    running_simulator.clear_trace()
    state.bodies.clear()
    state.bodies.update(bodies)
    running_simulator.raise_pending()


@pytest.fixture(autouse=True)
def _leaves_no_exception_behind() -> Iterator[None]:
    """Fail a test after which its thread still handles an exception: whatever asks for one then is told of that."""
    before = sys.exc_info()[1]
    yield
    left = sys.exc_info()[1]
    if left is not before:
        pytest.fail(f"the test left {type(left).__name__} behind, as the exception that its thread handles")


@pytest.fixture(autouse=True)
def _leaves_the_simulator_as_it_was() -> Iterator[None]:
    before = _settings(sim.active())
    yield
    running = sim.active()
    if running is not None:
        running.clear_trace()  # what one test launched is nothing that the next one finds
    after = _settings(running)
    left = {name: value for name, value in after.items() if value != before.get(name, {})}
    if left:
        pytest.fail(f"the test left {left} in the simulator of its process, and found {before}")


def _settings(simulator: Simulator | None) -> dict[str, object]:
    """Return all that a test may set for as long as it runs; what is as at the start is ``{}``."""
    if simulator is None:
        return {}
    state = simulator.state
    limits = {
        context.device.ordinal: {limit: value for limit, value in context.limits.items() if value}
        for context in state.contexts
    }
    streams = {device: state.current_stream(device) for device in range(simulator.devices)}
    return {
        "limits of contexts": {device: some for device, some in limits.items() if some},
        "current contexts": {depth: context.device.ordinal for depth, context in enumerate(state.stack())},
        "current streams": {device: stream for device, stream in streams.items() if stream},
        "bodies": dict(state.bodies),
        "interceptors": state.interceptions.standing,
        "limits of memory": state.memory.limits,
        "captures": state.captures.standing,
    }
