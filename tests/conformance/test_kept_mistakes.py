"""Mistakes in what a backend keeps of earlier calls, or has room for, planted in parts of nvrtc's and of core's."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from trunnion.launcher import maps
from trunnion.launcher.walk import Walk
from trunnion.testing.laws import LawViolation, catalogue
from trunnion_nvrtc.backend.driver import CudaDriver, calls


def _remember_variables(monkeypatch):
    look_up, kept = CudaDriver.variable, {}

    def variable(self, library, symbol):
        _, context = calls.cuCtxGetCurrent()
        key = int(library), symbol, int(context)
        if key not in kept:
            kept[key] = look_up(self, library, symbol)
        return kept[key]

    monkeypatch.setattr(CudaDriver, "variable", variable)


def _remember_attributes(monkeypatch):
    really, done = CudaDriver.set_kernel_attribute, {}

    def set_attribute(self, kernel, device, attribute, value):
        key = int(kernel), device, attribute
        if done.get(key) != value:
            really(self, kernel, device, attribute, value)
            done[key] = value

    monkeypatch.setattr(CudaDriver, "set_kernel_attribute", set_attribute)


class _Low(dict):
    """Tells addresses apart by their low 32 bits."""

    def get(self, address):
        return super().get(address & 0xFFFFFFFF)

    def __setitem__(self, address, value):
        super().__setitem__(address & 0xFFFFFFFF, value)


_ENTRIES = 256


class _Full(dict):
    """A table of so many entries: once it is full, the last is overwritten, under its old key."""

    def __setitem__(self, key, value):
        last = key if len(self) < _ENTRIES else next(reversed(self))
        super().__setitem__(last, value)


def _keep_maps_in(table):
    def plant(monkeypatch):
        class Layout(maps.MapLayout):
            def __init__(self, *args):
                super().__init__(*args)
                self.kept = table()

        monkeypatch.setattr(maps, "MapLayout", Layout)
        monkeypatch.setattr(maps, "_MOST_KEPT", 1 << 20)  # the table is never emptied instead

    return plant


def _pass_five_attributes(monkeypatch):
    make = CudaDriver.new_config

    def new_config(self, spec):
        return make(self, replace(spec, attributes=spec.attributes[:5]))

    monkeypatch.setattr(CudaDriver, "new_config", new_config)


MISTAKES = {
    "variables by the library's handle": (_remember_variables, "C1"),
    "attributes by the kernel's handle": (_remember_attributes, "C1"),
    "maps by half of an address": (_keep_maps_in(_Low), "X9"),
    "a full table of maps": (_keep_maps_in(_Full), "T2"),
    "five attributes": (_pass_five_attributes, "L5"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_is_caught_by_its_law(harnesses, monkeypatch, mistake):
    plant, law = MISTAKES[mistake]
    plant(monkeypatch)
    with pytest.raises(LawViolation) as caught:
        catalogue()[law].check(harnesses["nvrtc"], examples=3, shrink=False)
    assert caught.value.law_id == law


def _keep_extents(monkeypatch, key_of, table=dict):
    """Have the interpreter keep what extents were, in a table of each program, under a key of the whole shape."""
    really, tables = Walk._number, {}

    def number(self, source):
        if source.kind != "shape":
            return really(self, source)
        tensor, kept = self.tensors[source.slot], tables.setdefault(self.plan.hash, table())
        key = source, tensor.data_ptr(), key_of(tensor.shape)
        if kept.get(key) is None:
            kept[key] = really(self, source)
        return kept.get(key, really(self, source))

    monkeypatch.setattr(Walk, "_number", number)


SHAPES = {
    "digits side by side": ("Y1", lambda shape: "".join(map(str, shape)), dict),
    "extents in order of size": ("Y1", lambda shape: tuple(sorted(shape)), dict),
    "the number of elements": ("Y1", math.prod, dict),
    "a full table": ("L2", tuple, _Full),
}


@pytest.mark.parametrize("mistake", SHAPES)
def test_each_in_what_is_kept_of_shapes_is_caught_by_its_law(harnesses, monkeypatch, mistake):
    law, key_of, table = SHAPES[mistake]
    _keep_extents(monkeypatch, key_of, table)
    with pytest.raises(LawViolation) as caught:
        catalogue()[law].check(harnesses["interpreted"], examples=3, shrink=False)
    assert caught.value.law_id == law
