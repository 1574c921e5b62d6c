"""``trunnion run`` with every kind of argument: made up, given, left out, and wrong."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pytest

from trunnion import DeviceCode, ProgramBuilder, symbols
from trunnion.cli import main, place

if TYPE_CHECKING:
    from pathlib import Path

_SOURCE = """
struct S { int a; float b; };
extern "C" __global__ void every_kind(const float* x, const float* maybe, float alpha, void* p, S s, float* y, int n) {
  y[0] = 1;
}
"""


pytestmark = pytest.mark.usefixtures("simulator")  # of two devices, which `trunnion run` takes as it finds it


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words that run a program with every kind of parameter."""
    (n,) = symbols("n")
    p = ProgramBuilder("every_kind", DeviceCode("cuda", _SOURCE))
    x, maybe = p.input("x", "float32", (n,)), p.input("maybe", "float32", (n,), nullable=True)
    alpha, address = p.scalar("alpha", "float32"), p.pointer("p", alignment=512)
    s, y = p.struct("s", 8, 4), p.output("y", "float32", (n,), fill=3.0)
    p.launch("every_kind", args=(x, maybe, alpha, address, s, y, n.cast("int32")), grid=1, block=32)
    path = tmp_path_factory.mktemp("program") / "every_kind.json"
    path.write_text(p.build().to_json(), "utf-8")
    return ["run", str(path), "--simulate", "--target", "sm_90a", "--json"]


def run(words: list[str], *more: str) -> tuple[int, dict[str, Any]]:
    """Run in this process, without a GPU even if there is one."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()), patch.object(place, "gpu_name", str):
        status = main([*words, *more])
    return status, json.loads(out.getvalue())


def parameters(report: dict[str, Any]) -> list[bytes]:
    (launch,) = report["launches"]
    return [bytes.fromhex(one) for one in launch["parameters"]]


def test_everything_is_made_up(words: list[str]) -> None:
    status, report = run(words, "--size", "n=5")
    assert status == 0, report
    x, maybe, alpha, address, s, _, n = parameters(report)
    assert any(x)
    assert any(maybe)
    assert alpha == np.float32(1).tobytes()
    assert int.from_bytes(address, "little") % 512 == 0 < int.from_bytes(address, "little")
    assert s == bytes(8)
    assert int.from_bytes(n, "little") == 5


def test_everything_is_given(words: list[str], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(7, dtype=np.float32))
    given = [f"x={tmp_path / 'x.npy'}", "maybe=none", "alpha=0.5", "p=0x200", "s=hex:0102030405060708"]
    options = [word for one in given for word in ("--arg", one)]
    status, report = run(words, *options, "--outputs", str(tmp_path / "out.npz"))
    assert status == 0, report
    _, maybe, alpha, address, s, _, n = parameters(report)
    assert not any(maybe)
    assert alpha == np.float32(0.5).tobytes()
    assert int.from_bytes(address, "little") == 0x200
    assert s == bytes(range(1, 9))
    assert int.from_bytes(n, "little") == 7
    assert np.load(tmp_path / "out.npz")["y"].tolist() == [3.0] * 7, "filled, and no body ran"


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("p=none", "p"),
        ("p=0", "p"),
        ("p=0x201", "p"),
        ("s=hex:01", "s"),
        ("x=none", "x"),
        ("alpha=fast", "alpha"),
    ],
)
def test_what_does_not_fit_names_the_argument(words: list[str], text: str, argument: str) -> None:
    status, document = run(words, "--arg", text)
    assert status == 1
    assert document["error"]["attributes"]["argument"] == argument
