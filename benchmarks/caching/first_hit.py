"""A process that compiles one program once, which a store has: ``python -m caching.first_hit STORE BACKEND MODULES``.

Prints what it took as JSON: of importing what such a process ends up with, of the first compilation, of taking what was
found (`CompiledProgram.artifact`), of reading the store's files, and of the second compilation. The file of modules is
written if it is not there.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from pathlib import Path

from caching.clock import spent

TARGET = "sm_90a"
"""What is compiled for."""


def main(store: Path, backend: str, modules: Path) -> None:
    """Measure, and print."""
    began = spent()
    if modules.exists():
        for name in json.loads(modules.read_bytes()):
            with contextlib.suppress(ImportError):  # parts of a package that only it imports
                importlib.import_module(name)
    import trunnion  # noqa: PLC0415 - what that takes is measured
    from trunnion import examples  # noqa: PLC0415 - likewise

    program = examples.load("vector_add").program
    imported = spent()
    found = trunnion.compile(program, backend, target=TARGET, cache=store)
    first = spent()
    artifact = found.artifact  # which writes the launcher once more, to compare them: as a first call would
    confirmed = spent()
    for file in (store / "entries" / artifact.manifest.key).iterdir():
        file.read_bytes()
    read = spent()
    trunnion.compile(program, backend, target=TARGET, cache=store)
    again = spent()
    if not modules.exists():
        modules.write_text(json.dumps([name for name in sys.modules if name != "__main__"]))
    seconds = {"imports": imported - began, "first": first - imported, "reading": read - confirmed}
    print(json.dumps(seconds | {"confirming": confirmed - first, "again": again - read}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
