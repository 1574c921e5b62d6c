"""NumPy's files, honest ones and hostile ones."""

from __future__ import annotations

import io
import os
import resource
import signal
import sys
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from trunnion.cli import arrays
from trunnion.cli.arrays import as_tensor, read_array, read_arrays, write_arrays
from trunnion.errors import ArgumentValueError, BackendUnavailableError, ProgramError
from trunnion.model.dtypes import DTYPES, dtype

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")  # torch's own word on one row
@pytest.mark.parametrize("name", sorted(DTYPES))
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_every_type_survives(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    row = dtype(name)
    count = int(np.prod(shape)) * row.itemsize
    data = torch.arange(count, dtype=torch.int64) % (2 if name == "bool" else 64)
    tensor = data.to(torch.uint8).view(row.in_torch(torch)).reshape(shape)
    names = write_arrays(tmp_path / "out.npz", {"y": tensor})
    assert names == {"y": "y"}
    again = as_tensor(read_arrays(str(tmp_path / "out.npz"))["y"], row, "y")
    assert (again.dtype, again.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(_bytes(again), _bytes(tensor))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def test_nothing_is_converted() -> None:
    assert as_tensor(np.zeros(2), dtype("float32"), "x").dtype == torch.float64
    assert as_tensor(np.zeros(2, dtype=np.int16), dtype("bfloat16"), "x").dtype == torch.int16


@pytest.mark.parametrize("kind", ["U4", "O", ">f4", "M8[s]"])
def test_what_torch_has_no_type_for_is_refused(kind: str) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        as_tensor(np.zeros(2, dtype=kind), dtype("float32"), "x")
    assert caught.value.argument == "x"


def test_an_array_is_writable_and_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(5))
    array = read_array(str(tmp_path / "a.npy"))
    array[0] = 7
    assert array.tolist() == [7, 1, 2, 3, 4]


def _npy(shape: str, kind: str = "'<f4'") -> bytes:
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


HOSTILE = {
    "empty": b"",
    "nonsense": b"nonsense",
    "text": b"\x93NUMPY",
    "longer than it is": _npy("(1000000000000,)") + b"1234",
    "beyond all memory": _npy("(4611686018427387904, 4)"),
    "negative": _npy("(-5,)"),
    "code": _npy("__import__('os').abort()"),
    "objects": _npy("(1,)", "'|O'") + b"cos\nsystem\n(S'true'\ntR.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_array_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(HOSTILE[name])
    with pytest.raises(ProgramError, match="cannot read"):
        read_array(str(tmp_path / "a.npy"))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", HOSTILE[name])
    with pytest.raises(ProgramError, match="cannot read"):
        read_arrays(str(tmp_path / "a.npz"))


def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", _npy("(1048576,)") + bytes(4 << 20))
    assert (tmp_path / "a.npz").stat().st_size < 1 << 20
    monkeypatch.setattr(arrays, "_MOST_BYTES", 1 << 20)
    with pytest.raises(ProgramError, match="unpacks to"):
        read_arrays(str(tmp_path / "a.npz"))


@pytest.mark.parametrize("cut", [10, 100, -30, -1])
def test_a_damaged_archive_is_refused(tmp_path: Path, cut: int) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, x=np.arange(100))
    (tmp_path / "a.npz").write_bytes(buffer.getvalue()[:cut])
    with pytest.raises(ProgramError, match="cannot read"):
        read_arrays(str(tmp_path / "a.npz"))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_is_refused_whatever_an_archive_is_packed_by(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.writestr("x.npy", _npy("(64,)") + bytes(range(256)))
    data, refused = (tmp_path / "a.npz").read_bytes(), 0
    for place in range(30, 80):  # the member's name, and where what is packed begins
        (tmp_path / "a.npz").write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            read_arrays(str(tmp_path / "a.npz"))
        except ProgramError as error:  # no other error gets out; a few bytes say nothing
            refused += str(error).startswith("cannot read")
    assert refused > 40


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4, ",  # tokenize.TokenError
        "{'descr': '<f4', b'fortran_order': False, 'shape': (4,)}",  # TypeError
        "{'descr': ',f4', 'fortran_order': False, 'shape': (4,)}",  # SyntaxError
        "{'descr': (), 'fortran_order': False, 'shape': (4,)}",  # IndexError
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 30},)}}",  # OverflowError
        "-" * 3000,  # RecursionError
    ],
)
def test_a_damaged_header_is_refused(tmp_path: Path, header: str) -> None:
    for refused in refusals_of(tmp_path, header):
        assert "cannot read" in refused


def test_a_type_that_ends_numpy_s_process_is_refused_before_it_is_read(tmp_path: Path) -> None:
    header = "{'descr': '<M8[s/0]', 'fortran_order': False, 'shape': (1,), }"
    for refused in refusals_of(tmp_path, header):
        assert "expected plain numbers" in refused


def refusals_of(folder: Path, header: str) -> list[str]:
    """Return how a file with that header is refused, alone and in an archive."""
    text = f"{header}\n".encode()
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)
    (folder / "a.npy").write_bytes(data)
    with zipfile.ZipFile(folder / "a.npz", "w") as archive:
        archive.writestr("x.npy", data)
    told = []
    for read, name in ((read_array, "a.npy"), (read_arrays, "a.npz")):
        with pytest.raises(ProgramError) as caught:
            read(str(folder / name))
        told.append(str(caught.value))
    return told


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path), str(tmp_path / "pipe"), str(tmp_path / "nothing"), "x" * 5000, "a\0b", ""):
        for read in (read_array, read_arrays):
            with pytest.raises(ProgramError, match="cannot read"):
                read(path)


def test_names_that_are_no_file_names_are_numbered(tmp_path: Path) -> None:
    tensors = {
        "../../x": torch.zeros(1),
        "good name": torch.ones(1),
        "file": torch.ones(2),
        "": torch.ones(3),
    }
    names = write_arrays(tmp_path / "out.npz", tensors)
    assert list(names.values()) == ["output0", "good name", "file", "output3"]
    clash = write_arrays(tmp_path / "out.npz", {"output1": torch.zeros(1), "\x1b": torch.zeros(1)})
    assert len(set(clash.values())) == 2
    assert set(read_arrays(str(tmp_path / "out.npz"))) == set(clash.values())


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError) as caught:
        write_arrays(tmp_path / "no" / "out.npz", {"y": torch.zeros(1)})
    assert caught.value.field == "--outputs"


class _Interrupted:
    """A tensor in the middle of which somebody presses Ctrl-C."""

    dtype = torch.float32

    def numpy(self) -> None:
        raise KeyboardInterrupt


def test_what_was_there_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "out.npz"
    write_arrays(file, {"a": torch.zeros(1)})
    before = file.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_arrays(file, {"a": torch.ones(1), "b": _Interrupted()})
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limit[1]))
        with pytest.raises(
            ProgramError, match=r"cannot write '.*out\.npz'( \(\d+ characters\))?: File too large"
        ):
            write_arrays(file, {"a": torch.ones(1), "b": torch.ones(10000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert (file.read_bytes(), [*tmp_path.iterdir()]) == (before, [file])


def test_without_numpy_the_message_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(BackendUnavailableError, match=r"^'numpy' is unavailable: it .* pip install numpy$"):
        read_array(str(tmp_path / "a.npy"))


def test_a_limit_has_its_unit(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"nope\.npy'( \(\d+ characters\))?: there is no plain file"):
        read_array(str(tmp_path / "nope.npy"))
    with (tmp_path / "large.npy").open("wb") as file:
        file.truncate((1 << 34) + 1)  # sparse
    with pytest.raises(
        ProgramError, match=r"17179869185 bytes, expected at most 17179869184 bytes \(16 GiB\)"
    ):
        read_array(str(tmp_path / "large.npy"))
