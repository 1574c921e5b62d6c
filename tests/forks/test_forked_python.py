"""A text in a fork is told from one in a Python of its own by nothing that a test of trunnion asks."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

WARNS = (
    "import warnings\nfor kind in (UserWarning, ImportWarning, DeprecationWarning): warnings.warn('a', kind)"
)

ENDS = {
    "it ends": "print('out'); import sys; print('err', file=sys.stderr)",
    "it raises": "def f():\n    raise ValueError('a')\nprint('out', flush=True)\nf()",
    "it raises one of another": "try:\n    1 / 0\nexcept ArithmeticError as e:\n    raise ValueError from e",
    "it exits": "import sys; sys.exit(3)",
    "it exits with a text": "import sys; sys.exit('text')",
    "it is no Python": "a b",
    "it is killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "it aborts": "import os; print('out'); os.abort()",
    "it is interrupted": "raise KeyboardInterrupt",
    "it ends at once": "import os; print('out', flush=True); os._exit(4)",
    "something runs at its exit": "import atexit; atexit.register(print, 'exit'); raise ValueError",
    "its standard output fails": "import os; print('lost'); os.close(1)",
    "a thread of it ends later": (
        "import threading, time; threading.Thread(target=lambda: time.sleep(0.1) or print('late')).start()"
    ),
    "what it sees": (
        "import sys, os\n"
        "print(sys.argv, sys.path[0], sorted(set(sys.path)), __name__, sys.stdin.read())\n"
        "print(os.getcwd(), os.environ.get('GIVEN'))\n"
        "print(sys.warnoptions, sys.modules['__main__'].__dict__ is globals(), sys.stdout.isatty())\n"
        "print([m for m in sys.modules if m.startswith('trunnion')], sys.stdout.encoding)"
    ),
    "it warns": WARNS,
}


@pytest.mark.parametrize(
    ("text", "warnings"),
    [*((text, ("error",)) for text in ENDS.values()), (WARNS, ()), (WARNS, ("ignore",))],
    ids=[*ENDS, "it warns by default", "it warns nobody"],
)
def test_a_fork_ends_and_says_what_a_new_python_does(forked_python, text, warnings, tmp_path, monkeypatch):
    monkeypatch.setenv("GIVEN", "yes")
    words = [sys.executable, *(f"-W{action}" for action in warnings), "-c", text, "a", "1"]
    new = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    done = forked_python(text, "a", 1, warnings=warnings, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (new.returncode, new.stdout, new.stderr)


def test_its_environment_is_the_one_that_is_given(forked_python, tmp_path):
    (tmp_path / "given.py").write_text("value = 7\n")
    text = "import given, os; print(given.value, sorted(os.environ))"
    done = forked_python(text, env={"PYTHONPATH": str(tmp_path), "A": "1"})
    assert (done.returncode, done.stdout) == (0, "7 ['A', 'PYTHONPATH']\n"), done.stderr


def test_what_lasts_too_long_is_killed(forked_python):
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        forked_python("import time; print('out', flush=True); time.sleep(60)", timeout=0.2)
    assert caught.value.output == "out\n"
    assert forked_python("print(1)").stdout == "1\n"


def test_torch_computes_in_a_fork_and_no_fork_sees_what_another_did(forked_python):
    text = """
    import sys
    assert "torch" in sys.modules
    import torch
    assert not hasattr(torch, "mark")
    torch.mark = 1
    torch.manual_seed(0)
    a = torch.rand(300, 300, dtype=torch.float64)
    assert torch.equal(torch.linalg.inv(torch.eye(300).double()), torch.eye(300).double())
    print((a @ a).sum().item(), (torch.ones(2_000_000) * 2).sum().item(), torch.get_num_threads())
    """
    first, second = (forked_python(textwrap.dedent(text)) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert forked_python("import os; os.kill(os.getpid(), 11)").returncode == -signal.SIGSEGV
