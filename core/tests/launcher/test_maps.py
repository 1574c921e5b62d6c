from __future__ import annotations

from typing import Any

import pytest

from trunnion.errors import DriverError, TensorMapError
from trunnion.launcher.facade import EncodedMap
from trunnion.launcher.maps import MapEncoder, MapSpec
from trunnion.model.tensormap.rules import Im2colFields, TiledFields

CONSTANTS: dict[str, Any] = {
    "address": None,
    "element_bits": 16,
    "data_type": 6,
    "interleave": 0,
    "swizzle": 3,
    "l2_promotion": 2,
    "oob_fill": 0,
    "innermost_stride": None,
}
TILED = TiledFields(box=(64, 8), dims=(None, None), strides=(None,), element_strides=(1, 1), **CONSTANTS)
SPEC = MapSpec("a'b", TILED)
KEY: dict[str, Any] = {
    "device": 0,
    "dims": (64, 100),
    "strides": (128,),
    "innermost_stride": 1,
}
ADDRESS = 1 << 20


def encoder_of(driver: Any, spec: MapSpec = SPEC) -> MapEncoder:
    return MapEncoder(spec, driver, lambda _: (9, 0))


def encode(encoder: MapEncoder, address: int = ADDRESS, **change: Any) -> EncodedMap:
    """As a launcher does: what is kept first."""
    layout = encoder.layout(**{**KEY, **change})
    return layout.kept.get(address) or encoder(layout, address)


class Encoder:
    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.entered: list[int] = []

    def enter(self, device: int) -> bool:
        self.entered.append(device)
        return False

    def encode(self, fields: Any) -> EncodedMap:
        self.calls.append(fields)
        return EncodedMap(len(self.calls), object())


def test_the_driver_is_told_everything() -> None:
    driver = Encoder()
    encode(encoder_of(driver))
    (fields,) = driver.calls
    assert driver.entered == [0]
    assert (fields.address, fields.dims, fields.strides, fields.innermost_stride, fields.box) == (
        1 << 20,
        (64, 100),
        (128,),
        1,
        (64, 8),
    )
    assert fields.constant == TILED


def test_the_driver_is_told_everything_of_an_im2col_map() -> None:
    driver = Encoder()
    known = Im2colFields(
        lower=(-1, -2),
        upper=(1, 2),
        channels_per_pixel=64,
        pixels_per_column=32,
        dims=(None,) * 4,
        strides=(None,) * 3,
        element_strides=(1, 1, 1, 1),
        **CONSTANTS,
    )
    spec = MapSpec("a'b", known)
    encode(encoder_of(driver, spec), dims=(64, 9, 8, 2), strides=(128, 1152, 9216))
    (fields,) = driver.calls
    assert (fields.lower, fields.upper) == ((-1, -2), (1, 2))
    assert (fields.channels_per_pixel, fields.pixels_per_column) == (64, 32)
    assert (fields.dims, fields.strides) == ((64, 9, 8, 2), (128, 1152, 9216))


@pytest.mark.parametrize(
    "change",
    [
        {"device": 1},
        {"address": 2 << 20},
        {"dims": (64, 101)},
        {"strides": (256,)},
        {"dims": (1, 100), "innermost_stride": 2},
    ],
)
def test_a_map_is_kept_under_its_full_key(change: dict[str, Any]) -> None:
    driver = Encoder()
    encoder = encoder_of(driver)
    first = encode(encoder)
    assert encode(encoder) is first
    other = encode(encoder, **change)
    assert other is not first
    assert encode(encoder, **change) is other
    assert encode(encoder) is first
    assert len(driver.calls) == 2


def test_what_is_kept_is_bounded() -> None:
    driver = Encoder()
    encoder = encoder_of(driver)
    for index in range(300):
        encode(encoder, dims=(64, index + 1))
        assert len(encoder._layouts) <= 16
    for index in range(700):
        encode(encoder, ADDRESS + 16 * index)
        assert len(encoder.layout(**KEY).kept) <= 64
    assert len(driver.calls) == 1000


def test_all_broken_rules_are_named_and_nothing_is_kept() -> None:
    driver = Encoder()
    encoder = encoder_of(driver)
    for _ in range(2):
        with pytest.raises(TensorMapError) as caught:
            encode(encoder, 8, dims=(0, 100), strides=(100,))
        assert len(caught.value.broken) == 3
        assert caught.value.field == 'tensor map over "a\'b"'
    assert driver.calls == []
    assert not encoder.layout(0, (0, 100), (100,), 1).kept


@pytest.mark.parametrize(
    ("offset", "limit", "fits"),
    [(0, 12800, True), (0, 12799, False), (128, 12928, True), (-16, 12800, False)],
)
def test_a_map_with_a_shape_of_its_own_lies_within_its_memory(offset: int, limit: int, *, fits: bool) -> None:
    encoder = encoder_of(Encoder())
    layout = encoder.layout(**KEY)
    if fits:
        encoder.within(layout, offset, limit)
    else:
        with pytest.raises(TensorMapError, match="lies within its memory"):
            encoder.within(layout, offset, limit)


def test_a_refusal_of_the_driver_says_which_map() -> None:
    class Refusing(Encoder):
        def encode(self, fields: object) -> EncodedMap:
            raise DriverError("cuTensorMapEncodeTiled", 1, "CUDA_ERROR_INVALID_VALUE")

    with pytest.raises(DriverError) as caught:
        encode(encoder_of(Refusing()))
    assert 'tensor map over "a\'b"' in caught.value.__notes__[0]


def test_the_arguments_are_those_of_cuda_h_in_its_order() -> None:
    driver = Encoder()
    encode(encoder_of(driver))
    (fields,) = driver.calls
    assert fields.call == "cuTensorMapEncodeTiled"
    kinds, values = zip(*fields.arguments(), strict=True)
    assert kinds[:6] == ("CUtensorMapDataType", "cuuint32_t", "void*", *["cuuint64_t[]"] * 2, "cuuint32_t[]")
    assert values[1:6] == (2, 1 << 20, (64, 100), (128,), fields.box)
    assert [kind.removeprefix("CUtensorMap") for kind in kinds[7:]] == [
        "Interleave",
        "Swizzle",
        "L2promotion",
        "FloatOOBfill",
    ]
    with pytest.raises(ValueError, match="before all of it is known"):
        fields.constant.arguments()
