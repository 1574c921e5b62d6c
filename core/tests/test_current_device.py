"""The current device, with a driver that answers as it is told; torch is not in use."""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType, SimpleNamespace

from trunnion.current_device import current_device


def test_the_current_device_is_that_of_the_current_context(monkeypatch):
    def found(answer):
        def load(name):
            assert name == "libcuda.so.1"
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(ctypes, "CDLL", load)

    def current(number, status=0):
        def get(device):
            device._obj.value = number
            return status

        return SimpleNamespace(cuCtxGetDevice=get)

    found(current(2))
    assert current_device() == 2
    for answer in (current(7, status=201), OSError("no libcuda")):  # CUDA_ERROR_INVALID_CONTEXT
        found(answer)
        assert current_device() == 0


def test_a_torch_that_another_thread_is_still_importing_is_not_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setattr(
        ctypes, "CDLL", lambda _: SimpleNamespace(cuCtxGetDevice=lambda _: 201)
    )  # CUDA_ERROR_INVALID_CONTEXT
    assert current_device() == 0
