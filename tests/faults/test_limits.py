"""Limits and places that are gone: a program that was compiled is returned, with a warning, though nothing is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

CHILD = """
    import os, resource, sys, warnings
    from pathlib import Path
    import trunnion
    from fault_injection.scenes import ARTIFACT, PROGRAM, REGISTRY
    from trunnion.errors import TrunnionError
    from trunnion.storage.refusals import NotKeptWarning

    here = Path.cwd()
    given = {"registry": REGISTRY, "target": "sm_90a"}
    cache = here / "cache"

    def compiled():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            files = trunnion.compile(PROGRAM, cache=cache, **given).artifact.files
        assert files == ARTIFACT.files
        assert [one.category for one in caught if one.category is NotKeptWarning], caught
        return str(caught[0].message)
"""

CASES = {
    "no file may have a byte": (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
        "ulimit -f",
    ),
    "no descriptor is left": (
        """
from fault_injection.scenes import Compiler
whole = Compiler.compile

def without(self, request):
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    return whole(self, request)

Compiler.compile = without
""",
        "ulimit -n",
    ),
    "the cache is in /proc": (
        "cache = Path('/proc/nowhere/cache')",
        "there can be no cache at '/proc/nowhere",
    ),
    "the working directory is gone": (
        "cache = Path('cache'); (here / 'gone').mkdir(); os.chdir(here / 'gone'); (here / 'gone').rmdir()",
        "there can be no cache at 'cache'",
    ),
}


def run(text: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD) + text],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("case", CASES)
def test_what_is_compiled_is_returned_with_a_warning(tmp_path: Path, case: str) -> None:
    limit, said = CASES[case]
    assert said in run(f"{limit}\nsys.stdout.write(compiled())", tmp_path)


TYPED = {
    "nowhere to save": "ARTIFACT.save('/proc/nowhere/saved')",
    "no path": "ARTIFACT.save('a' + chr(0))",
    "no text": "ARTIFACT.save(chr(0xd800))",
    "no folder for temporary files": (
        "import tempfile; tempfile.tempdir = '/nonexistent'; trunnion.compile(PROGRAM, **given)"
    ),
    "no descriptor to load with": (
        "ARTIFACT.save(here / 'saved'); resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); "
        "trunnion.load(here / 'saved', registry=REGISTRY)"
    ),
}


@pytest.mark.parametrize("case", TYPED)
def test_what_cannot_be_done_is_a_typed_error(tmp_path: Path, case: str) -> None:
    text = f"try:\n    {TYPED[case]}\nexcept TrunnionError as error:\n    sys.stdout.write(type(error).__name__)\n"
    assert run(text, tmp_path) in {"ArtifactError", "DeviceRequirementError"}
