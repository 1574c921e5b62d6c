"""Somebody else's module, built once, and arrays of libraries that need not be installed."""

from __future__ import annotations

from pathlib import Path

import pytest
import tvm_ffi

from trunnion.toolchain.host import find_host_toolchain
from trunnion.toolchain.host_compilation import HostCompilation, compile_host
from trunnion_tvm_ffi import from_module

SOURCE = Path(__file__).parent / "foreign" / "module.cc"


@pytest.fixture(scope="session")
def foreign(tmp_path_factory):
    """Return the path of the foreign module."""
    folder = tmp_path_factory.mktemp("foreign")
    toolchain = find_host_toolchain("the tests", cuda=False)
    options = (
        "-std=c++17",
        "-O2",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-missing-field-initializers",
    )
    includes = tuple(f"-I{place}" for place in toolchain.include_folders)
    wanted = HostCompilation(
        source="module.cc",
        text=SOURCE.read_text("utf-8"),
        output="module.so",
        options=(*options, *includes, "module.cc", toolchain.ffi.library),
    )
    compile_host(toolchain.compiler, wanted, folder, "the tests")
    return folder / "module.so"


@pytest.fixture
def function(foreign):
    """Return what takes up a function of the foreign module."""

    def take_up(name, signature=None, **form):
        return from_module(foreign, name, signature, **form)

    return take_up


class Producer:
    """An array of a library that is not installed: over the memory of a torch tensor, through DLPack alone.

    It notes which streams it was told.
    """

    def __init__(self, tensor):
        self.tensor = tvm_ffi.from_dlpack(tensor)
        self.streams = []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None, copy=None):
        self.streams.append(stream)
        return self.tensor.__dlpack__(max_version=max_version)


class OldProducer(Producer):
    """One from before DLPack 1.0."""

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.tensor.__dlpack__()


@pytest.fixture
def producer():
    """Return the class of arrays of a library that is not installed."""
    return Producer


@pytest.fixture
def old_producer():
    """Return the class of such arrays from before DLPack 1.0."""
    return OldProducer
