"""The simulated driver against a real one's recorded answers, and against the model's tables on random requests."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from trunnion.model.tensormap.rules import Im2colFields, Origin, TiledFields, violations
from trunnion.sim.devices import ARCHITECTURES, Device, architecture
from trunnion.sim.tensormap import (
    Im2colRequest,
    Interleave,
    OobFill,
    Swizzle,
    TensorMapDataType,
    TiledRequest,
)
from trunnion.sim.tensormap_rules import _as_int32, broken_im2col_rules, broken_rules
from trunnion.testing.strategies import boundary_requests, map_requests, random_request

H200 = Device(0, architecture("sm_90a"))
ANSWERS = Path(__file__).parents[1] / "model" / "tensormap_answers_h200.json"


def refused(fields: TiledFields | Im2colFields, device: Device = H200) -> tuple[str, ...]:
    """Return what the simulated driver has against a request."""
    common: dict[str, Any] = {
        "address": fields.address,
        "data_type": TensorMapDataType(fields.data_type),
        "dims": fields.dims,
        "strides": fields.strides,
        "element_strides": fields.element_strides,
        "interleave": Interleave(fields.interleave),
        "swizzle": Swizzle(fields.swizzle),
        "oob_fill": OobFill(fields.oob_fill),
    }
    if isinstance(fields, TiledFields):
        return broken_rules(TiledRequest(**common, box=fields.box), device)
    request = Im2colRequest(
        **common,
        lower=fields.lower,
        upper=fields.upper,
        channels=fields.channels_per_pixel,
        pixels=fields.pixels_per_column,
    )
    return broken_im2col_rules(request, device)


def forbidden(fields: TiledFields | Im2colFields, device: Device = H200) -> set[str]:
    """Return the rules of the model, but those of our own, that a request breaks."""
    return {
        rule.text
        for rule, _ in violations(fields, device.compute_capability)
        if rule.origin is not Origin.OURS
    }


def test_the_recorded_answers() -> None:
    head, *rows = json.loads(ANSWERS.read_text("utf-8"))
    for kind, accepted, *members in rows:
        values: list[Any] = [tuple(member) if isinstance(member, list) else member for member in members]
        names = head["columns"][kind]
        fields = (TiledFields if kind == "tiled" else Im2colFields)(**dict(zip(names, values, strict=True)))
        # What is forbidden, though the driver lets it pass, the simulator refuses.
        assert bool(refused(fields)) is (not accepted or bool(forbidden(fields))), (fields, refused(fields))


def test_random_requests_are_refused_by_both_or_by_none() -> None:
    rng = random.Random(7)  # noqa: S311 - reproducible, not secret
    for fields in (*boundary_requests(), *(random_request(rng) for _ in range(20_000))):
        assert bool(refused(fields)) is bool(forbidden(fields)), (fields, refused(fields), forbidden(fields))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_devices_of_every_architecture(name: str) -> None:
    device = Device(0, architecture(name))
    rng = random.Random(name)  # noqa: S311 - reproducible, not secret
    for fields in (*boundary_requests(), *(random_request(rng) for _ in range(1000))):
        assert bool(refused(fields, device)) is bool(forbidden(fields, device)), (
            fields,
            forbidden(fields, device),
        )


@settings(max_examples=300)
@given(map_requests())
def test_drawn_requests_are_refused_by_both_or_by_none(fields: TiledFields | Im2colFields) -> None:
    assert bool(refused(fields)) is bool(forbidden(fields))


@pytest.mark.parametrize(
    ("end", "wrapped"), [(2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (2**32 - 1, -1), (2**32 + 3, 3)]
)
def test_the_end_of_a_bounding_box_is_counted_in_32_bits(end: int, wrapped: int) -> None:
    assert _as_int32(end) == wrapped
