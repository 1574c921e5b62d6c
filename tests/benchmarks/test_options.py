from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import compile_time
import import_time
import launch
import memory
import nvrtc_overhead
import window

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (compile_time.main, ["--rounds", "0"]),
        (compile_time.main, ["--json", "{missing}/report.json"]),
        (launch.main, ["--rounds", "0"]),
        (launch.main, ["--launches", "-1"]),
        (launch.main, ["--markdown", "{missing}/report.md"]),
        (memory.main, ["--launches", "5", "3"]),
        (memory.main, ["--launches", "3", "3"]),
        (memory.main, ["--launches", "0", "3"]),
        (memory.main, ["--json", "{missing}"]),
        (nvrtc_overhead.main, ["--processes", "0"]),
        (nvrtc_overhead.main, ["--later", "0"]),
        (window.main, ["--samples", "x"]),
        (import_time.main, ["--rounds", "0"]),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    main: Callable[[list[str]], int],
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = tmp_path / "missing" / "folder"
    with pytest.raises(SystemExit) as caught:
        main([word.format(missing=missing) for word in words])
    assert caught.value.code == 2
    assert "expected" in capsys.readouterr().err


def test_ascending_readings_are_taken() -> None:
    assert launch.parse(["--rounds", "3"]).rounds == 3
