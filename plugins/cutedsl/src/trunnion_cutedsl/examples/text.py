"""The device code of the examples, which lies beside them."""

from __future__ import annotations

from importlib.resources import files

from trunnion.model.code import DeviceCode

__all__ = ["device_code"]


def device_code(name: str, target: str = "") -> DeviceCode:
    """Return the CuTeDSL text of ``kernels/<name>.cutedsl``, for a target if it needs one.

    It is Python, and nothing here imports it: only the compiling process runs it.
    """
    file = files("trunnion_cutedsl.examples").joinpath("kernels", f"{name}.cutedsl")
    return DeviceCode("cutedsl", file.read_text(encoding="utf-8"), name=f"{name}.py", target=target)
