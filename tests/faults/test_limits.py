"""Limits and places that are gone: a program that was compiled is returned, with a warning, though nothing is kept."""

from __future__ import annotations

import ast
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


COMPILING = """
    import os, resource, sys, warnings
    from pathlib import Path
    from trunnion import DeviceCode, ProgramBuilder, compile
    from trunnion.errors import DeviceRequirementError

    TEXT = "#include <trunnion/block.h>\\nvoid k(float*, const trunnion_block_t*) {}\\n//"
    SAID = []

    def compiled(number):
        p = ProgramBuilder("p", DeviceCode("c++", f"{TEXT} {number}"))
        p.launch("k", (p.input("x", "float32", (8,), access="read_write"),), 1, 1)
        return compile(p.build(), cache=Path("cache")).artifact.files

    def limited(which, limits):
        before, whole = resource.getrlimit(which), 0
        for limit in limits:
            resource.setrlimit(which, (limit, before[1]))
            try:
                whole += "launcher.so" in compiled(limit)
            except DeviceRequirementError as error:
                SAID.append(str(error))
            finally:
                resource.setrlimit(which, before)
        return whole

    warnings.simplefilter("ignore")
    compiled("with all that is shared")
"""


def limited(which: str, limits: str, folder: Path) -> tuple[int, list[str]]:
    """Compile C++ within limits; return how often it was compiled, and what was said where it was not."""
    asks = f"sys.stdout.write(repr((limited(resource.{which}, {limits}), SAID)))"
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "XDG_CACHE_HOME": str(folder / "home"),
    }
    done = subprocess.run(
        [sys.executable, "-c", f"{textwrap.dedent(COMPILING)}\n{asks}"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    whole, said = ast.literal_eval(done.stdout)
    return whole, said


def test_without_descriptors_it_is_compiled_or_the_error_says_so(tmp_path: Path) -> None:
    used = "len(os.listdir('/proc/self/fd'))"
    whole, said = limited(
        "RLIMIT_NOFILE", f"[{used} + more for more in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 40)]", tmp_path
    )
    assert whole
    assert said
    assert all("Too many open files" in one and "(ulimit -n)" in one for one in said), said
    assert len(said) + whole == 11


def test_without_room_in_a_file_the_error_says_so(tmp_path: Path) -> None:
    whole, said = limited("RLIMIT_FSIZE", "[0, 1000, 20_000, 1 << 30]", tmp_path)
    assert (whole, len(said)) == (1, 3)
    assert all("(ulimit -f)" in one and "TMPDIR" not in one for one in said), said
