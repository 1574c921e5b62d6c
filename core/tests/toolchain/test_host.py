"""The parts of the toolchain, together."""

from __future__ import annotations

import subprocess

import pytest

from trunnion.errors import BackendUnavailableError
from trunnion.toolchain import host, host_headers
from trunnion.toolchain.host import find_host_toolchain


@pytest.fixture
def chosen(real, monkeypatch):
    monkeypatch.setenv("CXX", real)


def test_all_parts_are_found(chosen) -> None:
    found = find_host_toolchain("acme")
    assert set(found.versions) == {"host compiler", "tvm-ffi", "cuda.h"}
    assert found.versions["host compiler"] == found.compiler.name
    assert found.cuda is not None
    assert found.include_folders == (*found.ffi.folders, found.cuda.folder)


def test_without_cuda_its_headers_are_not_looked_for(chosen, monkeypatch) -> None:
    monkeypatch.setattr(host, "cuda_headers", None)
    found = find_host_toolchain("acme", cuda=False)
    assert found.include_folders == found.ffi.folders
    assert set(found.versions) == {"host compiler", "tvm-ffi"}


@pytest.mark.parametrize(
    "change",
    [
        lambda found: ("compiler", "identity", "gcc version 99.0.0"),
        lambda found: ("compiler", "target", "x86_64-other-linux-gnu"),
        lambda found: ("compiler", "command", (*found.compiler.command, "-O3")),
        lambda found: ("ffi", "version", (9, 9, 9)),
        lambda found: ("cuda", "version", (99, 0)),
    ],
)
def test_each_part_counts_in_the_fingerprint(chosen, change) -> None:
    from dataclasses import replace

    found = find_host_toolchain("acme")
    part, field, value = change(found)
    changed = replace(found, **{part: replace(getattr(found, part), **{field: value})})
    assert changed.fingerprint() != found.fingerprint()
    assert "\n" not in found.fingerprint()


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("compiler", "command", ("/elsewhere/g++",)),
        ("ffi", "folders", ("/elsewhere",)),
        ("ffi", "library", "/elsewhere/libtvm_ffi.so"),
        ("cuda", "folder", "/elsewhere"),
    ],
)
def test_places_do_not_count_in_the_fingerprint(chosen, part, field, value) -> None:
    from dataclasses import replace

    found = find_host_toolchain("acme")
    moved = replace(found, **{part: replace(getattr(found, part), **{field: value})})
    assert moved.fingerprint() == found.fingerprint()


def test_what_is_known_is_not_asked_for_again(chosen, monkeypatch) -> None:
    first = find_host_toolchain("acme").fingerprint()
    monkeypatch.setattr(subprocess, "Popen", None)
    assert find_host_toolchain("acme").fingerprint() == first


def test_a_part_that_is_missing_is_an_error_of_the_one_who_asks(chosen, monkeypatch) -> None:
    monkeypatch.setattr(host_headers, "cuda_places", lambda: iter(()))
    with pytest.raises(
        BackendUnavailableError, match=r"plugin 'acme' \(its toolchain\) is unavailable: there is no cuda.h"
    ):
        find_host_toolchain("acme")
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    with pytest.raises(BackendUnavailableError, match="no C\\+\\+ compiler can be used"):
        find_host_toolchain("acme")
