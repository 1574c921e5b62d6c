"""Loaders of a spec that are text: imported when they are called, and not before."""

from __future__ import annotations

import collections
import sys

import pytest

from trunnion.contract.spec import BackendSpec, CompilerSpec
from trunnion.errors import BackendUnavailableError, ProgramError
from trunnion.selection import load_part


def spec(**changed: object) -> BackendSpec:
    said = {
        "name": "acme",
        "contract_version": 3,
        "targets": {"cuda": frozenset()},
        "accepts": ("cubin",),
        "load_wrapper": "collections:OrderedDict",
        "load_adapter": "colorsys:rgb_to_hls",
    }
    return BackendSpec(**{**said, **changed})


def test_text_names_what_is_loaded() -> None:
    sys.modules.pop("colorsys", None)
    one = spec()
    assert load_part(one, one.load_wrapper) is collections.OrderedDict
    assert "colorsys" not in sys.modules
    assert one == spec()
    assert spec(diagnose="platform:node").diagnose() == __import__("platform").node()
    compiler = CompilerSpec(
        name="acme",
        contract_version=3,
        languages=("cuda",),
        targets=("cuda",),
        produces=("cubin",),
        load_compiler="collections:Counter",
    )
    assert load_part(compiler, compiler.load_compiler) is collections.Counter


@pytest.mark.parametrize(
    "text", ["", "collections", "collections.OrderedDict", "a:b:c", "a b:c", "a:", ":b", "1a:b"]
)
@pytest.mark.parametrize("field", ["load_wrapper", "load_adapter", "diagnose"])
def test_what_names_nothing_is_refused_at_once(field: str, text: str) -> None:
    with pytest.raises(ProgramError, match=field):
        spec(**{field: text})


@pytest.mark.parametrize("text", ["nowhere_at_all:Class", "collections:Nothing"])
def test_what_is_not_there_is_the_plugin_s_failure(text: str) -> None:
    one = spec(load_wrapper=text)
    with pytest.raises(BackendUnavailableError, match="acme"):
        load_part(one, one.load_wrapper)


def test_no_plugin_is_called_as_what_means_any() -> None:
    """Whoever asks for it by name would get another."""
    with pytest.raises(ProgramError, match="got plugin name 'auto', expected another"):
        spec(name="auto")
