"""A lazy program is compiled when it is first needed, once; what can be said before is said before."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import trunnion
from trunnion.artifacts.store import ArtifactStore
from trunnion.contract.compiler import DeviceCompiler
from trunnion.contract.spec import CompilerSpec, Target
from trunnion.errors import (
    ArgumentTypeError,
    CompileError,
    DeviceRequirementError,
    LifecycleError,
    ProgramError,
    UnsupportedFeatureError,
)
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.registry import Registry, default_registry
from trunnion.testing.machine import synthetic_image

BACKEND = "nvrtc"


def fill():
    p = ProgramBuilder("p", DeviceCode("acme", "text"))
    x = p.input("x", "float32", (8,), access="read_write")
    p.launch("k", (x,), 1, 32)
    return p.build()


PROGRAM = fill()


class Compiler(DeviceCompiler):
    """Notes what it is asked for; each test has a class of its own."""

    asked: list[object]
    failures: list[Exception]
    device: Target | None

    def compile(self, request):
        self.asked.append(request.target)
        if self.failures:
            raise self.failures.pop()
        return synthetic_image(PROGRAM, request.target)

    def fingerprint(self):
        return "acme 1"

    def default_target(self):
        return self.device


@pytest.fixture
def compiler():
    members = {"asked": [], "failures": [], "device": Target("cuda", "sm_90a")}
    return type("AcmeCompiler", (Compiler,), members)


@pytest.fixture
def lazily(simulator, compiler):
    plugins = Registry(())
    plugins.register(default_registry().backend(BACKEND))
    plugins.register(
        CompilerSpec(
            name="acme",
            contract_version=3,
            languages=("acme",),
            targets=("cuda",),
            produces=("cubin",),
            load_compiler=lambda: compiler,
        )
    )
    made = []

    def compile_lazily(program=PROGRAM, **more):
        made.append(trunnion.compile(program, lazy=True, registry=plugins, **more))
        return made[-1]

    with simulator.torch_mode():
        yield compile_lazily
    for program in made:
        program.close()


def test_nothing_is_compiled_before_the_first_call(lazily, compiler):
    program = lazily()
    assert (program.backend, program.program, program.plan.hash) == (BACKEND, PROGRAM, PROGRAM.plan().hash)
    assert program.host_source.strip()
    assert "cuda, at its first call" in repr(program)
    assert compiler.asked == []
    program(torch.zeros(8, device="cuda"))
    program(torch.zeros(8, device="cuda"))
    assert compiler.asked == [Target("cuda", "sm_90a")]
    assert "cuda:sm_90a" in repr(program)


NEEDS = {
    "entry": lambda program: program.entry,
    "bind": lambda program: program.bind(torch.zeros(8, device="cuda")),
    "preload": lambda program: program.preload(0),
    "artifact": lambda program: program.artifact,
    "image": lambda program: program.image("cubin"),
    "target": lambda program: program.target,
    "log": lambda program: program.log,
}


@pytest.mark.parametrize("need", NEEDS)
def test_whoever_needs_what_is_built_has_it_built(lazily, compiler, need):
    program = lazily()
    NEEDS[need](program)
    NEEDS[need](program)
    assert len(compiler.asked) == 1


@pytest.mark.parametrize("kind", [None, 3, b"cubin"])
def test_a_kind_of_image_is_text(lazily, compiler, kind):
    with pytest.raises(ArgumentTypeError, match="argument 'kind'"):
        lazily().image(kind)
    assert compiler.asked == []


def test_closing_builds_nothing(lazily, compiler):
    program = lazily()
    program.close()
    with pytest.raises(LifecycleError):
        program(torch.zeros(8, device="cuda"))
    assert compiler.asked == []


def test_a_named_target_is_that_of_the_first_call(lazily, compiler):
    compiler.device = None
    program = lazily(target="sm_100a")
    assert program.target == Target("cuda", "sm_100a")
    assert compiler.asked == [Target("cuda", "sm_100a")]


def test_without_a_device_and_a_target_the_first_call_says_so(lazily, compiler):
    compiler.device = None
    program = lazily()
    with pytest.raises(DeviceRequirementError, match=r"target=.*or simulate a GPU: trunnion\.sim\.start\(\)"):
        program(torch.zeros(8, device="cuda"))
    compiler.device = Target("cuda", "sm_90a")
    program(torch.zeros(8, device="cuda"))


def test_a_target_of_another_kind_than_the_launcher_s_is_refused(lazily, compiler):
    compiler.device = Target("cpu")
    with pytest.raises(ProgramError, match="got cpu by itself, expected one for cuda"):
        lazily()(torch.zeros(8, device="cuda"))
    assert compiler.asked == []


def test_what_the_compiler_refuses_is_raised_by_each_call(lazily, compiler):
    compiler.failures += [CompileError("acme", "no"), CompileError("acme", "no")]
    program = lazily()
    for _ in range(2):
        with pytest.raises(CompileError):
            program(torch.zeros(8, device="cuda"))
    program(torch.zeros(8, device="cuda"))
    assert len(compiler.asked) == 3


def test_what_needs_no_compiler_is_refused_at_once(lazily):
    with pytest.raises(ProgramError, match="options"):
        lazily(options={"nobody": {}})
    with pytest.raises(UnsupportedFeatureError):
        lazily(target="cpu")


def test_threads_that_come_at_once_compile_once(lazily, compiler):
    program, together = lazily(), threading.Barrier(4)

    def call():
        together.wait()
        return program.artifact.digest

    with ThreadPoolExecutor(4) as pool:
        digests = {done.result() for done in [pool.submit(call) for _ in range(4)]}
    assert len(digests) == 1
    assert len(compiler.asked) == 1


def test_the_cache_is_asked_at_the_first_call(lazily, compiler, tmp_path):
    store = ArtifactStore(tmp_path / "cache")
    assert lazily(cache=store).target == lazily(cache=store).target
    assert len(compiler.asked) == 1


@pytest.mark.parametrize("name", ["self", "args", "named", "_"])
def test_any_name_is_refused_by_name(lazily, name):
    """Python itself would say of ``self`` that it got several values."""
    program = lazily()
    for call in (program, program.bind):
        with pytest.raises(ArgumentTypeError, match=f"argument '{name}': got it by name"):
            call(torch.zeros(8, device="cuda"), **{name: 1})
