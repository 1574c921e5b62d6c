"""Arrays of other libraries, as they are read: NumPy's, and stand-ins for libraries that are not installed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import tvm_ffi
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from trunnion import errors, symbols
from trunnion.dlpack import CUDA, Versioned, address_in
from trunnion.model.dtypes import DTYPES, dtype
from trunnion.model.params import Signature, TensorParam
from trunnion_tvm_ffi.foreign.arrays import Arrays, ForeignArray, Purpose
from trunnion_tvm_ffi.foreign.dlpack import read_capsule
from trunnion_tvm_ffi.foreign.fills import fill

pytestmark = pytest.mark.tvm_ffi_abi

(N,) = symbols("n")
READ = Purpose("x")
WRITE = Purpose("x", written=True)
NUMPY = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMPY += ("float16", "float32", "float64", "complex64", "complex128")


def elements(array):
    """Return an array's strides in elements."""
    return tuple(stride // array.itemsize for stride in array.strides)


@given(
    arrays_of.arrays(st.sampled_from(NUMPY), arrays_of.array_shapes(min_dims=0, min_side=0, max_side=4)),
    st.data(),
)
def test_numpy_arrays_are_read_as_they_lie(array, data):
    axes = data.draw(st.permutations(range(array.ndim)))
    slices = [slice(None, None, data.draw(st.sampled_from((1, 2)))) for _ in axes]
    view = array.transpose(axes)[(*slices, ...)]
    view.flags.writeable = data.draw(st.booleans())
    read = Arrays().read(view, READ)
    assert type(read) is ForeignArray
    assert read.value is view
    assert (read.shape, read.dim(), read.numel()) == (view.shape, view.ndim, view.size)
    assert (read.dtype, read.element_size()) == (view.dtype.name, view.itemsize)
    assert read.facts.read_only is not view.flags.writeable
    assert (
        read.is_contiguous() is torch.empty_strided(view.shape, elements(view), device="meta").is_contiguous()
    )
    if view.size:
        assert read.data_ptr() == view.__array_interface__["data"][0]
        lively = [axis for axis, extent in enumerate(view.shape) if extent > 1]
        assert [read.stride()[axis] for axis in lively] == [elements(view)[axis] for axis in lively]
    assert tuple(read.handed.shape) == view.shape
    assert Arrays().device_of(read) == (1, 0)


@pytest.mark.parametrize("name", NUMPY)
def test_types_are_compared(name):
    array = Arrays().read(np.zeros(2, name), READ)
    for row in DTYPES.values():
        if row.name == name:
            Arrays().check_type("x", array, row)
        else:
            with pytest.raises(errors.ArgumentTypeError, match=name):
                Arrays().check_type("x", array, row)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("row", DTYPES.values(), ids=str)
def test_every_type_of_torch_is_taken(function, row):
    signature = Signature((TensorParam("x", row, (N,)),), (TensorParam("y", row, (N,)),))
    nothing = function("nothing", signature)
    x = torch.zeros(6 * row.itemsize, dtype=torch.uint8).view(row.in_torch(torch))
    assert nothing(x).dtype is x.dtype
    assert nothing(x).shape == (6,)
    other = dtype("int8" if row.name != "int8" else "uint8")
    with pytest.raises(errors.ArgumentTypeError):
        nothing(torch.zeros(6, dtype=other.in_torch(torch)))


def read_only():
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    return array


def of_jax(base):
    """Return a stand-in for an array of JAX, whose capsules do not say that nobody may write."""

    class ArrayImpl(base):
        __module__ = "jaxlib._jax"

    return ArrayImpl(np.zeros(3, np.float32))


def copying(base):
    """Return an array that exports a copy, and says so."""

    class Copying(base):
        def __dlpack__(self, **_):
            return np.zeros(3, np.float32).__dlpack__(max_version=(1, 1), copy=True)

    return Copying(np.zeros(3, np.float32))


@pytest.mark.parametrize(("make", "said"), [(of_jax, "jaxlib"), (copying, "copy")])
def test_what_nobody_may_write_is_no_destination(function, producer, make, said):
    signature = Signature((TensorParam("x", "float32", (3,), access="read_write"),))
    assert type(Arrays().read(make(producer), READ)) is ForeignArray
    with pytest.raises(errors.ArgumentValueError, match=said):
        function("nothing", signature)(make(producer))
    out = Signature(outputs=(TensorParam("y", "float32", (3,)),))
    with pytest.raises(errors.ArgumentValueError, match=said) as caught:
        function("nothing", out)(out=make(producer), device="cpu")
    assert caught.value.argument == "y"


def test_a_read_only_array_is_read(function):
    read = Signature((TensorParam("x", "float32", (3,)),), (TensorParam("y", "int64", (5,)),))
    assert function("dims", read)(read_only()).tolist()[:2] == [1, 3]
    for access in ("write", "read_write"):
        written = Signature((TensorParam("x", "float32", (3,), access=access),))
        with pytest.raises(errors.ArgumentValueError, match="read-only") as caught:
            function("nothing", written)(read_only())
        assert caught.value.argument == "x"


def elsewhere(base):
    class Elsewhere(base):
        def __dlpack_device__(self):
            return 8, 1

    return Elsewhere(torch.zeros(3))


def gone(base):
    class Gone(base):
        def __dlpack_device__(self):
            raise RuntimeError("the array was deleted\nlong ago")

    return Gone(torch.zeros(3))


def odd(base):
    class Odd(base):
        def __dlpack__(self, **_):
            return object()

    return Odd(torch.zeros(3))


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (elsewhere, errors.ArgumentValueError, r"DLPack device \(8, 1\)"),
        (gone, errors.ArgumentTypeError, "deleted"),
        (odd, errors.ArgumentTypeError, "capsule"),
        (lambda _: np.zeros(3, ">f4"), errors.ArgumentTypeError, "byte order"),
        (lambda _: np.array(["a", "b"]), errors.ArgumentTypeError, "DLPack"),
        (lambda _: np.zeros(3, "f4,i1")["f0"], errors.ArgumentTypeError, "multiple"),
        (lambda _: np.zeros(3, "datetime64[s]"), errors.ArgumentTypeError, "DLPack"),
        (lambda _: np.float32(3), errors.ArgumentTypeError, "float32"),
        (lambda _: np.ndarray, errors.ArgumentTypeError, "type"),
        (lambda _: [1.0], errors.ArgumentTypeError, "list"),
    ],
)
def test_what_cannot_be_carried_is_refused(producer, make, kind, said):
    for purpose in (READ, WRITE):
        with pytest.raises(kind, match=said) as caught:
            Arrays().read(make(producer), purpose)
        assert caught.value.argument == "x"


def test_without_a_signature_odd_arrays_are_refused_too(function, producer):
    with pytest.raises(errors.ArgumentTypeError, match="deleted") as caught:
        function("nothing")(3, [gone(producer)])
    assert caught.value.argument == "argument 1"


def test_a_tvm_ffi_tensor_is_an_array():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    read = Arrays().read(tvm_ffi.from_dlpack(array), WRITE)
    assert (read.shape, read.stride(), read.dtype) == ((2, 3), (3, 1), "int32")
    assert read.data_ptr() == array.__array_interface__["data"][0]


def test_torch_is_not_needed_for_arrays_of_others(monkeypatch):
    def missing():
        raise errors.BackendUnavailableError("torch", "", "it is not installed; pip install torch")

    monkeypatch.setattr("trunnion_tvm_ffi.foreign.arrays.default_runtime", missing)
    monkeypatch.setattr("trunnion_tvm_ffi.foreign.arrays.HostRuntime", missing)
    arrays = Arrays()
    read = arrays.read(np.zeros(3, np.float32), WRITE)
    assert arrays.device_of(read) == (1, 0)
    arrays.check_type("x", read, dtype("float32"))
    assert arrays.guarded(len) is len
    assert not arrays.is_torch(read)
    for part in ("host", "runtime"):
        with pytest.raises(errors.BackendUnavailableError):
            getattr(arrays, part)


# Capsules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, (1, 0), (1, 1), (9, 0)])
def test_a_capsule_may_have_a_version_or_none(version):
    array = np.zeros((3, 4), np.int16)[:, ::2]
    capsule = array.__dlpack__() if version is None else array.__dlpack__(max_version=version)
    described = read_capsule(capsule)
    assert (described.dtype, described.shape, described.strides) == ((0, 16, 1), (3, 2), (4, 2))
    assert (described.device, described.read_only, described.copied) == ((1, 0), False, False)
    tvm_ffi.from_dlpack(capsule)
    with pytest.raises(BufferError, match="nobody took over"):
        read_capsule(capsule)


def test_a_capsule_says_whether_it_is_a_copy():
    assert read_capsule(np.zeros(3).__dlpack__(max_version=(1, 0), copy=True)).copied


@pytest.mark.parametrize(
    "thing", [None, 3, b"dltensor", torch.Tensor.__dict__.get("__dlpack_c_exchange_api__")]
)
def test_what_is_no_capsule_is_refused(thing):
    with pytest.raises(BufferError):
        read_capsule(thing)


def test_a_version_that_is_not_known_is_refused():
    capsule = np.zeros(3).__dlpack__(max_version=(1, 0))
    managed = Versioned.from_address(address_in(capsule, b"dltensor_versioned"))
    managed.major = 2
    with pytest.raises(BufferError, match=r"2\.\d"):
        read_capsule(capsule)
    managed.major = 1  # whoever frees it looks, too


@pytest.mark.parametrize("pattern", [b"\x07" * 8, bytes(range(8))])
def test_a_destination_of_one_element_is_filled_whatever_its_stride(simulator, pattern):
    """Of one element, any stride counts as contiguous; torch takes no such tensor for bytes."""
    memory = simulator.tensor(torch.zeros(9, dtype=torch.int64), 0)
    with simulator.reraise():
        fill(Arrays(), memory.as_strided((1,), (5,), 2), pattern, (CUDA, 0))
    assert memory.cpu().tolist() == [0, 0, int.from_bytes(pattern, "little"), *[0] * 6]
