"""A file before it is loaded: a broken one is an error, and never ends the process."""

from __future__ import annotations

import struct

import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion import errors
from trunnion.image.shared_object import exported_functions
from trunnion_tvm_ffi import from_module

pytestmark = pytest.mark.tvm_ffi_abi


def test_exported_functions_are_found(foreign):
    found = exported_functions(foreign)
    assert {"axpy", "split", "stream", "nothing"} <= set(found)
    assert list(found) == sorted(found)
    assert all(tvm_ffi.load_module(str(foreign)).get_function(name) for name in found)


def test_a_function_that_is_not_there_is_named_with_those_that_are(foreign):
    for name in ("main", "axpy\n", ""):
        with pytest.raises(errors.ArgumentValueError) as caught:
            from_module(foreign, name)
        assert caught.value.argument == "function"
        assert "'axpy'" in caught.value.expected
        assert repr(name) in caught.value.got
    with pytest.raises(errors.ArgumentValueError) as caught:
        from_module(tvm_ffi.load_module(str(foreign)), "main")
    assert caught.value.expected == "the name of a function of the module"


@pytest.mark.parametrize("module", [None, 3, b"x.so", object()])
def test_what_is_no_module_is_refused(module):
    with pytest.raises(errors.ArgumentTypeError) as caught:
        from_module(module)
    assert caught.value.argument == "module"


def test_a_function_s_name_is_text(foreign):
    with pytest.raises(errors.ArgumentTypeError) as caught:
        from_module(foreign, 3)
    assert caught.value.argument == "function"


def test_a_missing_file_is_refused(tmp_path):
    for path in (tmp_path / "none.so", tmp_path, str(tmp_path / "a" / "b.so"), "", "a\0.so"):
        with pytest.raises(errors.ArtifactError):
            from_module(path)


def test_a_file_of_another_name_is_refused(foreign, tmp_path):
    other = tmp_path / "module.bin"
    other.write_bytes(foreign.read_bytes())
    with pytest.raises(errors.ArtifactError, match=r"\.so"):
        from_module(other, "axpy")


@settings(max_examples=60)
@given(st.data())
def test_a_truncated_file_is_refused(foreign, tmp_path, data):
    whole = foreign.read_bytes()
    length = data.draw(st.integers(0, 200) | st.integers(0, len(whole) - 1))
    path = tmp_path / "short.so"
    path.write_bytes(whole[:length])
    with pytest.raises(errors.CorruptArtifactError) as caught:
        from_module(path, "axpy")
    assert caught.value.what == str(path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF",
        b"#!/bin/sh\n",
        b"\x7fELF\x01\x01" + bytes(100),
        struct.pack(
            "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 1 << 62, 0, 64, 56, 9, 64, 9, 0
        ),
        struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 1, 62, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0),
    ],
)
def test_what_is_no_shared_library_is_refused(tmp_path, data):
    path = tmp_path / "odd.so"
    path.write_bytes(data)
    with pytest.raises(errors.CorruptArtifactError):
        from_module(path)


def test_a_library_that_the_loader_refuses_is_refused(tmp_path, foreign):
    broken = bytearray(foreign.read_bytes())
    broken[18:20] = struct.pack("<H", 0xFFFF)  # e_machine: of no machine
    path = tmp_path / "other.so"
    path.write_bytes(broken)
    with pytest.raises(errors.ArtifactError, match="cannot be loaded"):
        from_module(path, "axpy")


def test_a_library_without_section_headers_can_be_called(tmp_path, foreign):
    stripped = bytearray(foreign.read_bytes())
    stripped[40:48] = bytes(8)  # e_shoff
    stripped[58:64] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx
    path = tmp_path / "stripped.so"
    path.write_bytes(stripped)
    assert exported_functions(path) == ()
    assert from_module(path, "seven")() == 7
    with pytest.raises(errors.ArgumentValueError, match="the name of a function"):
        from_module(path, "eight")
    short = tmp_path / "short.so"
    short.write_bytes(stripped[:4096])
    with pytest.raises(errors.CorruptArtifactError, match="truncated"):
        from_module(short, "seven")


def test_a_relative_path_means_the_file_here(foreign, tmp_path, monkeypatch):
    (tmp_path / "libc.so").write_bytes(foreign.read_bytes())  # a name that the loader knows elsewhere
    monkeypatch.chdir(tmp_path)
    assert from_module("libc.so", "seven")() == 7
