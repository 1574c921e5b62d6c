"""What a Python launcher asks about tensors; the slow halves of its checks."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any

from trunnion.arguments import spanned_bytes
from trunnion.errors import ArgumentError
from trunnion.launcher import refusals
from trunnion.launcher.scalars import integer
from trunnion.messages import type_name
from trunnion.model.dtypes import dtype
from trunnion.model.plan import refusals as rows
from trunnion.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.contract.runtime import Runtime

__all__ = ["TensorChecks", "check_disjoint"]

_MOST_GOOD = 1024


class TensorChecks:
    """Checks over one tensor library.

    Parameters
    ----------
    runtime
        The tensor library.
    device_count
        The number of devices.
    """

    def __init__(self, runtime: Runtime, device_count: int) -> None:
        self.runtime = runtime
        self.device_count = device_count
        self.any_tensor: type[Any] = runtime.tensor_type
        self.tensor_type: type[Any] = runtime.exchanged_types[0]
        """The class of plain tensors, of which one look at their layout says that there is memory behind them."""
        self.strided = runtime.strided
        self.data_ptr = runtime.tensor_type.data_ptr  # type: ignore[attr-defined]  # every tensor has the method
        self._good: dict[int, set[int]] = {}
        self.current_stream = runtime.current_stream_getter()
        self.allocate = runtime.allocate
        self.byte = self.dtype("uint8")
        self._complex = {self.dtype(name) for name in ("complex32", "complex64", "complex128")}

    def dtype(self, name: str) -> Any:
        """Return the library's object for an element type."""
        return self.runtime.dtype(dtype(name))

    def check_argument(self, name: str, value: Any, *, output: bool = False) -> None:
        """Accept a plain tensor, and what `check_tensor` accepts; parameters and errors are those of it."""
        plain = type(value) is self.tensor_type and value.layout is self.strided
        if not plain or value.is_neg() or value.is_conj():
            self.check_tensor(name, value, output=output)

    def check_tensor(self, name: str, value: Any, *, output: bool = False) -> None:
        """Accept a tensor of a subclass, if there is memory behind it.

        Parameters
        ----------
        name
            The tensor's name.
        value
            What was passed.
        output
            Whether it is to be written into, which nothing cannot be.

        Raises
        ------
        ArgumentTypeError
            If ``value`` is no tensor, or one with no memory of its own.
        """
        if not is_a(value, self.any_tensor):
            raise refusals.no_tensor_error(name, value, output=output)
        if not self.runtime.has_storage(value):
            raise rows.NO_MEMORY(name, type_name(value))

    def check_storage(self, names: tuple[str, ...], tensors: tuple[Any, ...]) -> None:
        """Accept tensors whose elements all lie in their storages.

        Raises
        ------
        ArgumentError
            If one reaches beyond, or has no storage.
        """
        for name, tensor in zip(names, tensors, strict=True):
            if tensor is not None:
                try:
                    spanned = spanned_bytes(tensor)
                    room = self.runtime.room(tensor) if spanned else 0
                except RuntimeError as error:
                    raise refusals.unreadable_error((name,), (tensor,), error) from error
                if room < spanned and tensor.data_ptr():  # no address at all is another error
                    raise refusals.storage_error(name, room, spanned)

    def check_device(self, names: tuple[str, ...], tensors: tuple[Any, ...], given: int | None) -> int:
        """Return the ordinal of the device that a call runs on.

        Parameters
        ----------
        names
            The tensors' names.
        tensors
            The tensors of the call; None for one that it leaves out.
        given
            What the call says under ``device=``.

        Raises
        ------
        ArgumentValueError
            If a tensor lies elsewhere than the first one, or than ``device=`` says.
        DeviceRequirementError
            If there is neither a tensor nor a ``device=``.
        """
        live = [pair for pair in zip(names, tensors, strict=True) if pair[1] is not None]
        if not live:
            if given is None:
                raise rows.NO_DEVICE()
            return self.check_ordinal(given)
        for name, tensor in live:
            if not self.runtime.presents_device(tensor):
                raise refusals.place_error(name, tensor, "cuda")
        first = live[0][1].get_device()
        for name, tensor in live:
            if tensor.get_device() != first:
                raise rows.OTHER_DEVICE(name, tensor.get_device(), first, live[0][0])
        if given is not None and given != first:
            raise rows.DEVICE_DIFFERS(given, first)
        return int(first)

    def check_ordinal(self, device: Any) -> int:
        """Return a device's ordinal.

        Raises
        ------
        ArgumentValueError
            If there is no such device.
        """
        return integer("device", device, 0, self.device_count - 1)

    def good_addresses(self, alignment: int) -> set[int]:
        """Return the addresses that are known to be no null and aligned so: looking one up is less than judging it."""
        return self._good.setdefault(alignment, set())

    def check_pointer(self, name: str, tensor: Any, address: int, alignment: int) -> None:
        """Accept an address that is aligned and that the tensor's storage reaches, or of a tensor without elements.

        A storage that shrinks moves, as a rule, so a new address is when to ask for its size again.

        Raises
        ------
        ArgumentError
            If it is neither.
        """
        if address and address % alignment == 0:
            self.check_storage((name,), (tensor,))
            good = self.good_addresses(alignment)
            if len(good) >= _MOST_GOOD:
                good.clear()
            good.add(address)
            return
        if tensor.numel() == 0:
            return
        if not address:
            raise rows.NULL_TENSOR(name)
        raise refusals.alignment_error(name, address, alignment)

    def check_outputs(self, out: Any, wanted: tuple[OutputWanted, ...], device: int) -> None:
        """Accept the tensors that the caller gives for the outputs.

        Parameters
        ----------
        out
            The tensors.
        wanted
            For each output its name, its shape, that as the author wrote it, its element type and its alignment.
        device
            The device's ordinal.

        Raises
        ------
        ArgumentError
            If one does not fit, or two overlap; the output is named.
        """
        if len(out) == 1 == len(wanted) and self._is_known(out[0], wanted[0], device):
            return
        names = tuple(row[0] for row in wanted)
        if len(out) != len(wanted):
            raise refusals.out_count_error(out, names)
        for index, (tensor, row) in enumerate(zip(out, wanted, strict=True)):
            try:
                self._check_output(tensor, row, device)
            except ArgumentError as error:
                error.place = refusals.out_place(index, len(wanted))
                raise
            except RuntimeError as error:
                place = refusals.out_place(index, len(wanted))
                raise refusals.unreadable_error((row[0],), (tensor,), error, place) from error
        if len(out) == 1:
            return
        check_disjoint(out, names)

    def _is_known(self, tensor: Any, wanted: OutputWanted, device: int) -> bool:
        """Whether a tensor is as wanted, and plain, and lies where one was checked before: most are."""
        _, shape, _, kind, alignment = wanted
        if (
            type(tensor) is not self.tensor_type
            or tensor.layout is not self.strided
            or tensor.dtype is not kind
        ):
            return False
        try:
            if tensor.is_neg() or (kind in self._complex and tensor.is_conj()) or tensor.shape != shape:
                return False
            # Known addresses are of memory that is of the right kind.
            here = tensor.is_contiguous() and tensor.get_device() == device
            return here and tensor.data_ptr() in self.good_addresses(alignment)
        except RuntimeError:  # which the whole check explains
            return False

    def _check_output(self, tensor: Any, wanted: OutputWanted, device: int) -> None:
        if self._is_known(tensor, wanted, device):
            return
        name, shape, texts, kind, alignment = wanted
        elsewhere = is_a(tensor, self.any_tensor) and not self.runtime.presents_device(tensor)
        if elsewhere:
            raise rows.OUTPUT_DEVICE(name, tensor.device, device)
        self.check_tensor(name, tensor, output=True)
        if tensor.dtype is not kind:
            raise refusals.dtype_error(name, tensor, str(kind).removeprefix("torch."))
        if tensor.dim() != len(shape):
            raise refusals.rank_error(name, tensor, len(shape))
        for axis, (got, extent) in enumerate(zip(tensor.shape, shape, strict=True)):
            if got != extent:
                raise refusals.extent_error(name, axis, got, extent, texts[axis])
        if tensor.get_device() != device:
            raise rows.OUTPUT_DEVICE(name, tensor.device, device)
        if not tensor.is_contiguous():
            raise refusals.destination_error(name, tensor)
        self.check_storage((name,), (tensor,))
        self.check_pointer(name, tensor, tensor.data_ptr(), alignment)


OutputWanted = tuple[str, tuple[int, ...], tuple[str, ...], Any, int]
"""Name, shape, the shape as the author wrote it, element type, alignment in bytes."""


def check_disjoint(out: Sequence[Any], names: Sequence[str]) -> None:
    """Accept contiguous tensors for outputs unless two share memory.

    Parameters
    ----------
    out
        The tensors, of whatever library, or what stands for them: with ``data_ptr``, ``numel`` and ``element_size``.
    names
        The outputs' names.

    Raises
    ------
    ArgumentValueError
        It names the first of them in which another begins, and that one.
    """
    spans = [(t.data_ptr(), t.numel() * t.element_size(), index) for index, t in enumerate(out)]
    spans = [span for span in spans if span[1]]
    if all(one[0] + one[1] <= other[0] for one, other in pairwise(sorted(spans))):
        return
    first, second = next(
        (one[2], other[2]) for one, other in permutations(spans, 2) if one[0] <= other[0] < one[0] + one[1]
    )
    raise rows.OVERLAP.at(refusals.out_place(second, len(names)), names[second], names[first])
