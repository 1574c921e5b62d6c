from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.codegen.python.facade import EncodedMap
from trunnion.codegen.python.maps import MapSpec, TiledEncoder
from trunnion.errors import DriverError, TensorMapError

if TYPE_CHECKING:
    from trunnion.model.tensormap_rules import TiledFields

SPEC = MapSpec(
    itemsize=2,
    dtype_code=6,
    box=(64, 8),
    element_strides=(1, 1),
    interleave=0,
    swizzle=3,
    l2_promotion=2,
    oob_fill=0,
    name="a'b",
)
KEY: dict[str, Any] = {
    "device": 0,
    "address": 1 << 20,
    "dims": (64, 100),
    "strides": (128,),
    "innermost_stride": 1,
}


class Encoder:
    def __init__(self) -> None:
        self.calls: list[tuple[TiledFields, int]] = []

    def encode_tiled(self, fields: TiledFields, l2_promotion: int) -> EncodedMap:
        self.calls.append((fields, l2_promotion))
        return EncodedMap(len(self.calls), object())


def test_the_driver_is_told_everything() -> None:
    driver = Encoder()
    TiledEncoder(SPEC, driver)(**KEY)
    ((fields, promotion),) = driver.calls
    assert promotion == 2
    assert (fields.address, fields.dims, fields.strides, fields.innermost_stride) == (
        1 << 20,
        (64, 100),
        (128,),
        1,
    )
    for name in ("itemsize", "dtype_code", "box", "element_strides", "interleave", "swizzle", "oob_fill"):
        assert getattr(fields, name) == getattr(SPEC, name)


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
    encode = TiledEncoder(SPEC, driver)
    first = encode(**KEY)
    assert encode(**KEY) is first
    other = encode(**{**KEY, **change})
    assert other is not first
    assert encode(**{**KEY, **change}) is other
    assert encode(**KEY) is first
    assert len(driver.calls) == 2


def test_what_is_kept_is_bounded() -> None:
    driver = Encoder()
    encode = TiledEncoder(SPEC, driver)
    for index in range(1000):
        encode(**{**KEY, "dims": (64, index + 1)})
        assert len(encode._kept) <= 64
    assert len(driver.calls) == 1000


def test_all_broken_rules_are_named_and_nothing_is_kept() -> None:
    driver = Encoder()
    encode = TiledEncoder(SPEC, driver)
    for _ in range(2):
        with pytest.raises(TensorMapError) as caught:
            encode(**{**KEY, "address": 8, "dims": (0, 100), "strides": (100,)})
        assert len(caught.value.broken) == 3
        assert caught.value.field == 'tensor map over "a\'b"'
    assert driver.calls == []
    assert not encode._kept


def test_a_refusal_of_the_driver_says_which_map() -> None:
    class Refusing:
        def encode_tiled(self, fields: object, l2_promotion: int) -> EncodedMap:
            raise DriverError("cuTensorMapEncodeTiled", 1, "CUDA_ERROR_INVALID_VALUE")

    with pytest.raises(DriverError) as caught:
        TiledEncoder(SPEC, Refusing())(**KEY)
    assert 'tensor map over "a\'b"' in caught.value.__notes__[0]
