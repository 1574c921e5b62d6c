"""``nvdisasm``, which turns a cubin's machine code into text.

``cuobjdump --dump-sass`` is no second way: it runs ``nvdisasm`` itself, and fails without one (tried: CUDA 13.5).
"""

from __future__ import annotations

import os
from typing import Final

from trunnion.storage.refusals import refusals
from trunnion.storage.scratch import scratch_folder
from trunnion.toolchain.binary_utility import BinaryUtility

__all__ = ["NVDISASM", "disassembled"]

NVDISASM: Final = BinaryUtility("nvdisasm")
"""The program."""


def disassembled(cubin: bytes, symbol: int) -> str:
    """Return the machine code of one function as text, in a process of its own.

    Parameters
    ----------
    cubin
        The whole file.
    symbol
        The function's place in its symbol table, counted from 0.

    Raises
    ------
    BackendUnavailableError
        If there is no ``nvdisasm``, or it does not read this file: one that is older than the architecture does not.
    DeviceRequirementError
        If this machine has no folder for temporary files.
    """
    NVDISASM.path()
    with scratch_folder() as folder:
        file = folder / "image.cubin"
        with refusals("a file for nvdisasm"):
            file.write_bytes(cubin)
        # "CUDA Binary Utilities", nvdisasm: code alone, of the function at that index.
        return NVDISASM.ask(["--print-code", "--cuda-function-index", str(symbol), os.fspath(file)], folder)
