import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.errors import CorruptArtifactError
from trunnion.sim.tensormap import (
    Im2colRequest,
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    TensorMapDataType,
    TiledRequest,
    decode,
    encode,
)


@st.composite
def requests(draw):
    im2col = draw(st.booleans())
    rank = draw(st.integers(3 if im2col else 1, 5))

    def each(low, high, count=rank):
        return draw(st.tuples(*[st.integers(low, high)] * count))

    if im2col:
        kind, corner = Im2colRequest, {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}[rank]
        own = {"lower": each(-corner, corner - 1, rank - 2), "upper": each(-corner, corner - 1, rank - 2)}
        own |= {"channels": draw(st.integers(1, 256)), "pixels": draw(st.integers(1, 1024))}
    else:
        kind, own = TiledRequest, {"box": each(1, 256)}
    return kind(
        **own,
        address=draw(st.integers(0, (1 << 64) - 1)),
        data_type=draw(st.sampled_from(TensorMapDataType)),
        dims=each(1, 1 << 32),
        strides=each(0, (1 << 40) - 1, rank - 1),
        element_strides=each(1, 8),
        interleave=draw(st.sampled_from(Interleave)),
        swizzle=draw(st.sampled_from(Swizzle)),
        l2_promotion=draw(st.sampled_from(L2Promotion)),
        oob_fill=draw(st.sampled_from(OobFill)),
    )


@given(requests())
def test_a_request_survives_its_128_bytes(request):
    data = encode(request)
    assert len(data) == 128
    assert decode(data) == request


@given(requests(), st.integers(0, 127), st.integers(1, 255))
def test_a_changed_byte_is_seen(request, at, change):
    data = bytearray(encode(request))
    data[at] ^= change
    with pytest.raises(CorruptArtifactError):
        decode(bytes(data))


@pytest.mark.parametrize("data", [bytes(128), b"", b"x" * 64])
def test_other_bytes_are_no_map(data):
    with pytest.raises(CorruptArtifactError):
        decode(data)


def test_element_sizes():
    sizes = {kind.name: kind.bits for kind in TensorMapDataType}
    assert sizes["UINT8"] == 8
    assert sizes["BFLOAT16"] == sizes["FLOAT16"] == sizes["UINT16"] == 16
    assert sizes["FLOAT64"] == sizes["INT64"] == 64
    assert sizes["PACKED_16U6_ALIGN16B"] == 6
