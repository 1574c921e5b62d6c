"""The switch: a program that was written for TileLang is trunnion's while it is on, and TileLang's again afterwards."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import tilelang
import tilelang.language as T
import torch
from tilelang.jit import JITImpl

from trunnion.errors import ProgramError, UnknownBackendError
from trunnion_tilelang import install
from trunnion_tilelang.jit_kernel import Kernel, KernelMaker

TARGET = {"kind": "cuda", "arch": "sm_90a"}
NAMES = ("jit", "compile", "par_compile")
MODULES = ("tilelang", "tilelang.jit")


def held():
    """All that TileLang's modules say, and what they are."""
    return [
        (type(sys.modules[module]), *(getattr(sys.modules[module], name) for name in NAMES))
        for module in MODULES
    ]


@pytest.fixture(autouse=True)
def restored():
    before = held()
    yield
    assert held() == before


@T.prim_func
def doubled(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(128):
            B[i] = A[i] * 2


def make(n):
    @T.prim_func
    def added(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
            for i in T.Parallel(128):
                B[bx * 128 + i] = A[bx * 128 + i] + 1

    return added


def ours(maker):
    return isinstance(maker, KernelMaker)


# What is switched ---------------------------------------------------------------------------------------------------


def test_every_way_to_import_the_decorator_is_switched():
    with install():
        from tilelang import jit
        from tilelang.jit import jit as same

        everything: dict[str, object] = {}
        exec("from tilelang.jit import *", everything)
        assert jit is same is tilelang.jit is everything["jit"] is getattr(tilelang, "jit")  # noqa: B009 - as people do
        assert ours(jit(make))
        assert not ours(vars(tilelang)["jit"](make))
    assert tilelang.jit is vars(tilelang)["jit"]


def test_it_decorates_bare_and_with_arguments():
    with install(backend="tvm_ffi"):
        bare, called, with_arguments = (
            tilelang.jit(make),
            tilelang.jit()(make),
            tilelang.jit(out_idx=[-1], target=TARGET, pass_configs={"tl.enable_fast_math": True})(make),
        )
    assert all(map(ours, (bare, called, with_arguments)))
    assert (with_arguments.out_idx, with_arguments.settings.backend) == ([-1], "tvm_ffi")
    assert with_arguments(128).compiled.backend == "tvm_ffi"
    with pytest.raises(TypeError, match="unexpected keyword argument 'no_such'"), install():
        tilelang.jit(no_such=1)


def test_a_function_is_compiled_without_a_decorator():
    with install(backend="nvrtc"):
        kernel = tilelang.compile(doubled, [-1], target=TARGET)
        several = tilelang.par_compile([doubled, make(256)], out_idx=[-1], target=TARGET, num_workers=1)
    assert all(isinstance(one, Kernel) for one in (kernel, *several))
    assert (kernel.compiled.backend, kernel.out_idx) == ("nvrtc", [1])
    assert several[1].compiled.program.launches[0].grid[0].value == 2


def test_what_cannot_be_compiled_is_left_out_if_it_may_be(caplog):
    with install():
        assert tilelang.par_compile([doubled], [9], target=TARGET, ignore_error=True) == [None]
        with pytest.raises(ProgramError, match="out_idx"):
            tilelang.par_compile([doubled], [9], target=TARGET)
    assert "a configuration was left out" in caplog.text


@pytest.mark.parametrize("choice", [{"execution_backend": "cython"}, {"target_host": "c"}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_tilelang_s_own_launchers_are_refused(name, choice):
    with install(), pytest.raises(ProgramError, match="one of TileLang's own launchers"):
        getattr(tilelang, name)([doubled] if name == "par_compile" else doubled, **choice)


@pytest.mark.parametrize("name", NAMES)
def test_they_say_what_tilelang_s_say_and_are_pickled_by_name(name):
    own = getattr(tilelang, name)
    with install():
        switched = getattr(tilelang, name)
        assert switched is not own
        assert (switched.__doc__, inspect.signature(switched)) == (own.__doc__, inspect.signature(own))
        pickled = pickle.dumps(switched)
        assert pickle.loads(pickled) is switched  # noqa: S301 - pickled a line before
    assert pickle.loads(pickled) is own  # noqa: S301 - as above


# Before, afterwards, one within another -----------------------------------------------------------------------------


def test_what_was_decorated_before_stays_tilelang_s(monkeypatch):
    """TileLang's object compiles by TileLang's function, which is asked by its modules' own names."""
    asked = []
    monkeypatch.setitem(vars(sys.modules["tilelang.jit"]), "cached", lambda **said: asked.append(said))
    before, decorator = tilelang.jit(make), tilelang.jit
    with install():
        before.compile(128)
        before.par_compile([(128,)])
        assert type(decorator(make)) is JITImpl
    assert len(asked) == 2


def test_what_was_decorated_while_it_was_on_stays_ours():
    with install(backend="nvrtc"):
        maker, decorator = tilelang.jit(make, target=TARGET), tilelang.jit
    assert isinstance(maker(128), Kernel)
    assert ours(decorator(make))
    assert type(tilelang.jit(make)) is JITImpl


def test_it_is_on_without_a_with_statement_until_it_is_uninstalled():
    switch = install()
    try:
        assert ours(tilelang.jit(make))
    finally:
        switch.uninstall()
    assert not ours(tilelang.jit(make))
    switch.uninstall()


@pytest.mark.parametrize("first", [0, 1])
def test_of_several_the_last_one_counts_in_whatever_order_they_end(first):
    switches = [install(backend="nvrtc"), install(backend="tvm_ffi")]
    assert tilelang.jit(make).settings.backend == "tvm_ffi"
    switches[first].uninstall()
    assert tilelang.jit(make).settings.backend == ("tvm_ffi", "nvrtc")[first]
    switches[1 - first].uninstall()
    assert not ours(tilelang.jit(make))


def test_an_exception_ends_it_and_leaves_as_it_is():
    with pytest.raises(KeyError, match="mine"), install():
        raise KeyError("mine")


def test_what_stood_in_a_name_before_stands_there_again(monkeypatch):
    mine = object()
    monkeypatch.setattr(tilelang, "jit", mine)
    with install():
        assert ours(tilelang.jit(make))
    assert tilelang.jit is mine


def test_nothing_else_can_be_put_in_its_place_while_it_is_on():
    """It would be lost without a word: what is put there is not what is found there."""
    with (
        install(),
        pytest.raises(AttributeError, match=r"assign it before install\(\), or after uninstall\(\)"),
    ):
        tilelang.jit = make
    tilelang.jit = tilelang.jit  # afterwards it can


def test_every_thread_is_switched_and_many_may_switch():
    with install(), ThreadPoolExecutor(1) as pool:
        assert ours(pool.submit(lambda: tilelang.jit(make)).result())

    def switching():
        for _ in range(200):
            with install():
                assert tilelang.jit is not vars(tilelang)["jit"]

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(switching) for _ in range(4)]:
            done.result()


def test_modules_that_somebody_forgets_are_given_back_their_own(monkeypatch):
    with monkeypatch.context() as patch, install():
        patch.delitem(sys.modules, "tilelang.jit")
    assert not ours(tilelang.jit(make))


@pytest.mark.parametrize("options", [7, "nvrtc", ["nvrtc"]], ids=str)
def test_options_that_are_none_are_refused_when_the_first_kernel_is_compiled(options):
    with (
        install(options=options),
        pytest.raises(ProgramError, match=r"expected \{plugin: \{option: value\}\}"),
    ):
        tilelang.compile(doubled, target=TARGET)


@pytest.mark.parametrize("unknown", [{"backend": "acme"}, {"compiler": "acme"}], ids=str)
def test_an_unknown_plugin_is_refused_when_the_first_kernel_is_compiled(unknown):
    with install(**unknown), pytest.raises(UnknownBackendError, match="acme"):
        tilelang.compile(doubled, target=TARGET)


def test_without_tilelang_the_command_says_how_to_install_it(tmp_path):
    (tmp_path / "program.py").touch()
    source = (
        "import sys\n"
        "sys.modules['tilelang'] = None\n"
        "from trunnion_tilelang.__main__ import main\n"
        f"main([{str(tmp_path / 'program.py')!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'trunnion-tilelang[tilelang]'" in done.stderr


def test_a_module_that_is_imported_later_is_switched(tmp_path, monkeypatch):
    (tmp_path / "kernels_of_somebody.py").write_text(
        "from tilelang import jit\nimport tilelang as tl\n\n\n@jit\ndef one(n): ...\n\n\n"
        "@tl.jit(out_idx=0)\ndef two(n): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with install():
        module = importlib.import_module("kernels_of_somebody")
    monkeypatch.delitem(sys.modules, "kernels_of_somebody")
    assert ours(module.one)
    assert ours(module.two)


def test_a_switched_kernel_launches(simulator):
    def body(call):
        a, b = (call.memory.view(call.pointer(i), "float32", (128,)) for i in range(2))
        b.copy_(a * 2)

    simulator.register_body("doubled_kernel", body)
    with simulator.torch_mode():
        given = torch.arange(128.0, device="cuda")
        with install(backend="tvm_ffi"):
            assert torch.equal(tilelang.compile(doubled, out_idx=-1, target=TARGET)(given), given * 2)


def test_tilelang_is_loaded_again_while_a_switch_is_on():
    """It imports its own names from its own modules, where it finds ours; they must not stay when the switch is off."""
    theirs = {name: vars(tilelang)[name] for name in NAMES}
    first = install("nvrtc")
    importlib.reload(tilelang)
    with install("tvm_ffi") as second:
        first.uninstall()
        importlib.reload(tilelang)
        for module in map(sys.modules.__getitem__, MODULES):
            assert {name: getattr(module, name) for name in NAMES} == dict(second.functions)
        assert ours(tilelang.jit(make))
    assert {name: vars(tilelang)[name] for name in NAMES} == theirs
    assert not ours(tilelang.jit(make))
    importlib.reload(tilelang)
    assert {name: vars(tilelang)[name] for name in NAMES} == theirs


def test_the_module_of_the_functions_is_loaded_again_while_a_switch_is_on():
    """In a process of its own: whoever compares TileLang's classes has those of the first load."""
    done = subprocess.run([sys.executable, "-c", AGAIN], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.returncode) == (["True"] * 6, 0), done.stderr


AGAIN = """
import importlib, sys, tilelang
from trunnion_tilelang import install
module = sys.modules["tilelang.jit"]
before = vars(module)["jit"]
with install("nvrtc") as on:
    importlib.reload(module)
    importlib.reload(tilelang)
    print(tilelang.jit is on.functions["jit"], module.jit is on.functions["jit"])
theirs = vars(module)["jit"]
print(theirs is not before, module.jit is theirs, tilelang.jit is theirs, tilelang.compile is vars(module)["compile"])
"""
