"""Python in processes that need not import torch: forks of one that has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

__all__ = ["ForkedPython"]


class ForkedPython:
    """Runs texts as ``python -c`` does, each in a fork of a process that has imported torch, and nothing of trunnion.

    For tests that need a process of their own, and torch. A test of what a process imports, of how it starts, of its
    flags, its threads or its memory starts Python itself.
    """

    def __enter__(self) -> Self:
        # numpy's library would start threads when it is imported, and a fork has one thread.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        words = [sys.executable, "-P", str(Path(__file__).with_name("server.py"))]
        self._server = subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate()

    def __call__(
        self,
        text: str,
        *arguments: object,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] = ".",
        warnings: tuple[str, ...] = (),
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Return how the process ended, and what it wrote, as ``subprocess.run`` does for a Python of its own.

        Parameters
        ----------
        text:
            What it runs as ``__main__``.
        arguments:
            What it finds behind ``-c`` in ``sys.argv``.
        env:
            All of its environment. None: that of this process, as it is now.
        cwd:
            The folder that it runs in.
        warnings:
            What ``-W`` says, but for the imports of torch: ``("error",)``.
        timeout:
            After how many seconds it is killed.

        Raises
        ------
        subprocess.TimeoutExpired
            It was.
        """
        environment = dict(os.environ if env is None else env)
        with tempfile.TemporaryDirectory() as folder:
            stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
            stdout.touch()
            stderr.touch()
            job = {
                "text": text,
                "arguments": list(map(str, arguments)),
                "environment": environment,
                "path": [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry],
                "cwd": str(Path(cwd).resolve()),
                "warnings": warnings,
                "timeout": timeout,
                "stdout": str(stdout),
                "stderr": str(stderr),
            }
            answer = self._ask(json.dumps(job))
            said, complained = stdout.read_text("utf-8"), stderr.read_text("utf-8")
        if answer["status"] is None:
            raise subprocess.TimeoutExpired(sys.executable, timeout, said, complained)
        return subprocess.CompletedProcess([sys.executable, "-c", text], answer["status"], said, complained)

    def _ask(self, job: str) -> dict[str, int | None]:
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(job + "\n")
        self._server.stdin.flush()
        answer: dict[str, int | None] = json.loads(self._server.stdout.readline())
        if "wrong" in answer:
            raise RuntimeError(f"the process that is forked cannot be: {answer['wrong']}")
        return answer
