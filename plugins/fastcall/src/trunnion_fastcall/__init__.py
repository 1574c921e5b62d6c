"""A compiled call helper: the slowest parts of a Python launcher's call, in C.

trunnion finds it by its entry point and calls nothing else of it; it is never required.
"""

from __future__ import annotations

from trunnion_fastcall._helper import caller, tensor_reader

__all__ = ["caller", "contract_version", "tensor_reader"]

contract_version = 1
"""The version of `trunnion.contract.call_helper.CallHelper` that this is written for."""
