"""Records decode to what ptxas meant by them, and nothing else decodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.contract.compiler import ImageParameter
from trunnion.errors import CorruptArtifactError
from trunnion.image.nvinfo import (
    Attribute,
    Key,
    decode_dims,
    decode_parameter,
    decode_word,
    encode_attributes,
    encode_dims,
    encode_parameter,
    read_attributes,
)

VALUES = st.builds(Attribute, st.integers(1, 3), st.integers(0, 255), st.integers(0, 0xFFFF), st.just(b""))
PAYLOADS = st.builds(Attribute, st.just(4), st.integers(0, 255), st.just(0), st.binary(max_size=40))


@given(attributes=st.lists(VALUES | PAYLOADS, max_size=10))
def test_records_are_read_as_they_were_written(attributes: list[Attribute]) -> None:
    assert list(read_attributes(memoryview(encode_attributes(attributes)), "s")) == attributes


# The bytes are from ptxas 13.0, of a kernel (map, int, map, float*) with 128-byte maps by value, and of two
# with structs of 4348 and 5000 bytes.
@pytest.mark.parametrize(
    ("record", "parameter"),
    [
        ("04170c00 00000000 0200f000 00f00102", ImageParameter(2, 0xF0, 128)),
        ("04170c00 00000000 03004001 00f52100", ImageParameter(3, 0x140, 8)),
        ("04170c00 00000000 01000400 00f0f143", ImageParameter(1, 4, 4348)),
        ("04450c00 00000000 04001527 88130000", ImageParameter(4, 0x2715, 5000)),
        ("04450c00 00000000 0500a03a 08000005", ImageParameter(5, 0x3AA0, 8)),
    ],
)
def test_parameter_records_of_a_real_compiler(record: str, parameter: ImageParameter) -> None:
    (attribute,) = read_attributes(memoryview(bytes.fromhex(record)), "s")
    assert decode_parameter(attribute, "s") == parameter


@given(
    ordinal=st.integers(0, 0xFFFF),
    offset=st.integers(0, 0xFFFF),
    size=st.integers(0, 0x3FFF),
    wide=st.booleans(),
)
def test_parameters_are_read_as_they_were_written(ordinal: int, offset: int, size: int, wide: bool) -> None:
    parameter = ImageParameter(ordinal, offset, size)
    attribute = encode_parameter(parameter, wide=wide)
    assert attribute.key == (Key.KPARAM_INFO_WIDE if wide else Key.KPARAM_INFO)
    assert decode_parameter(attribute, "s") == parameter


def test_a_size_of_sixteen_bits_needs_the_wide_record() -> None:
    parameter = ImageParameter(0, 0, 0xFFFF)
    assert decode_parameter(encode_parameter(parameter, wide=True), "s") == parameter


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ("04", "no record"),
        ("041700", "no record"),
        ("00170000", "form 0"),
        ("05170000", "form 5"),
        ("04170c00 00000000", "needs 12 bytes at 4, of 8"),
        ("03190800 0417ffff", "needs 65535 bytes at 8, of 8"),
    ],
)
def test_malformed_records_are_refused_by_their_place(contents: str, problem: str) -> None:
    with pytest.raises(CorruptArtifactError, match=problem) as caught:
        read_attributes(memoryview(bytes.fromhex(contents)), ".nv.info.k")
    assert ".nv.info.k" in caught.value.what


def test_payloads_of_another_size_are_refused() -> None:
    short = Attribute(4, Key.KPARAM_INFO, 0, bytes(8))
    value = Attribute(3, Key.MAX_CLUSTER_RANK, 4, b"")
    for decode, attribute in ((decode_parameter, short), (decode_dims, short), (decode_word, value)):
        with pytest.raises(CorruptArtifactError, match="are allowed"):
            decode(attribute, "s")


def test_a_count_of_zero_is_refused() -> None:
    with pytest.raises(CorruptArtifactError, match=r"\(1, 0, 1\)"):
        decode_dims(encode_dims(Key.MAX_THREADS, (1, 0, 1)), "s")
