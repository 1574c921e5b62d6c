"""Mistakes that only another process shows: of the manual's small backend, which the processes find by its entry point.

Each is caught by a law that starts processes of its own, B4 or Z4, or by B2, which asks one process twice.
"""

from __future__ import annotations

import functools
import importlib
import re
import textwrap
from pathlib import Path

import pytest

from trunnion.testing import lone_device
from trunnion.testing.harness import Harness
from trunnion.testing.laws import LawViolation, catalogue

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "from-nothing-to-green.md").read_text("utf-8")
CODE = "\n\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

BUILDS = 'files = {source.filename: source.text.encode(), f"image.{image.kind}": image.data}'
TAKES = '(image,) = (data for name, data in artifact.files.items() if name.startswith("image."))'
LOADED = "self.room, self.devices = {}, set()"
CLOSED = "            self.closed = True\n"

MISTAKES = {
    "its image stays in the process that built": (
        (
            (
                BUILDS,
                'files = {source.filename: source.text.encode(), "image.key": b"key"}; KEPT[b"key"] = image.data',
            ),
            (TAKES, TAKES + "\n        image = KEPT[image]"),
        ),
        "KEPT = {}",
        "Z4",
        "what another process built and saved: KeyError",
    ),
    "a thread that only close ends": (
        (
            (LOADED, LOADED + "\n        self.end = threading.Event()"
             "\n        threading.Thread(target=self.end.wait).start()"),
            (CLOSED, CLOSED + "            self.end.set()\n"),
        ),
        "",
        "Z4",
        r"after all was checked, the process ended with status 1: a program was left open(?s:.*)Timeout",
    ),
    "aborts with a program open": (
        ((LOADED, LOADED + "\n        OPEN.add(self)"), (CLOSED, CLOSED + "            OPEN.discard(self)\n")),
        "import atexit\nOPEN = set()\natexit.register(lambda: OPEN and os.abort())",
        "Z4",
        r"after all was checked, the process ended with status -6: a program was left open",
    ),
    "an assertion of the type": (
        (("if tensor.dtype is not runtime.dtype(slot.dtype):",
          "if __debug__ and tensor.dtype is not runtime.dtype(slot.dtype):"),),
        "",
        "Z4",
        "by python -O",
    ),
    "an assertion of the alignment": (
        (("if tensor.data_ptr() % slot.alignment:", "if __debug__ and tensor.data_ptr() % slot.alignment:"),),
        "",
        "Z4",
        "by python -O",
    ),
    **{
        f"keeps {what}": (
            ((BUILDS, BUILDS + f"\n        files['place'] = str({what}).encode()"),),
            "import datetime, getpass, socket, tempfile, time",
            "B4",
            r"other bytes were built: \['', 'place'\]",
        )
        for what in (
            *("os.getcwd()", "tempfile.gettempdir()", "os.environ.get('XDG_CACHE_HOME', 'none')"),
            *("time.strftime('%Y-%m-%d')", "datetime.datetime.now().date()"),
            *("getpass.getuser()", "socket.gethostname()", "os.cpu_count()"),
            "os.environ.get('LC_ALL')",
        )
    },
    "a fingerprint of the day": (
        (('return f"bare 1, cuda', 'return f"bare 1 {time.time() // 86400}, cuda'),),
        "import time",
        "B4",
        r"other bytes were built: \[\"the adapter's fingerprint\(\)\"\]",
    ),
    "a fingerprint of the adapter itself": (
        (('return f"bare 1, cuda', 'return f"bare 1 {id(self)}, cuda'),),
        "",
        "B2",
        r"the adapter's fingerprint\(\) is 'bare 1 \d+, cuda-bindings [\d.]+', and of a second one 'bare 1",
    ),
    **{
        f"being imported changes {what}": ((), line, "B4", f"importing changes for the whole process: {what}")
        for what, line in {
            "BARE in the environment": "os.environ['BARE'] = 'EAGER'",
            "the filters of all warnings": "import warnings; warnings.filterwarnings('ignore')",
            "the places of modules": "sys.path.append('/tmp')",
            "the random numbers": "import random; random.seed(0)",
            "the root logger's level": "import logging; logging.root.setLevel(logging.ERROR)",
            "the root logger's handlers": "import logging; logging.root.addHandler(logging.NullHandler())",
        }.items()
    },
    "being imported imports torch": ((), "import torch", "B4", "wrapper's module, imports torch"),
    **{
        f"a probe that {what}": (
            (("            load_adapter=", "            probe=probe,\n            load_adapter="),),
            (f"def probe():\n    {does}\n    return Availability(True, '')\n"
            "from trunnion.contract.spec import Availability"),
            "B4",
            told,
        )
        for what, does, told in (
            ("asks the driver", "os.path.exists('/tmp') and said('cuInit', 0)", r"probe\(\) asked the driver: cuInit"),
            ("raises", "open('/nowhere') if os.environ.get('USER') == 'somebody' else 0", "raised FileNotFound"),
        )
    },
}  # fmt: skip


@pytest.fixture
def installed(harness, tmp_path, monkeypatch):
    """Return a function that installs the page's backend, with pieces of its text replaced and lines added."""

    def install(pieces=(), more=""):
        code = CODE
        for old, new in pieces:
            assert code.count(old) == 1
            code = code.replace(old, new)
        name = f"trunnion_bare_{tmp_path.name}"
        code = f"{code}\n\n{textwrap.dedent(more)}\n".replace("trunnion_bare:", f"{name}:")
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
        info = tmp_path / f"{name}-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[trunnion]\nbare = {name}\n", "utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        (spec,) = importlib.import_module(name).trunnion_register_backends()
        return Harness(spec=spec, machine=harness.machine)

    return install


@pytest.mark.law
@pytest.mark.parametrize("law", ["B2", "B4", "Z4"])
def test_without_a_mistake_it_holds(installed, law):
    catalogue()[law].check(installed(), shrink=False)


@pytest.mark.law
@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_caught_by_its_law(installed, mistake, monkeypatch):
    pieces, more, law, told = MISTAKES[mistake]
    monkeypatch.setattr(lone_device, "_END", 3.0)
    monkeypatch.setenv(
        "BARE", ""
    )  # what the mistake sets it to, this process has too, until the test has ended
    bad = installed(pieces, more)
    # Z4 is asked once: a search would try its example again.
    once = functools.partial(catalogue()[law].body, bad.under(law), 12000)
    with pytest.raises(LawViolation, match=told):
        once() if law == "Z4" else catalogue()[law].check(bad, shrink=False)
