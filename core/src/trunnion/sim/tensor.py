"""Tensors that present themselves as CUDA tensors, over host memory."""

from __future__ import annotations

import ctypes
import math
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final, cast

import torch

from trunnion.arguments import expect, unallocatable
from trunnion.errors import ArgumentValueError, LifecycleError, UnsupportedFeatureError
from trunnion.model.interval import INT64_MAX
from trunnion.sim.exchange import Exchange
from trunnion.sim.interception import ALLOCATE
from trunnion.sim.memory import POISON, allocation_error, compute, contiguous
from trunnion.sim.process import running
from trunnion.sim.status import Refusal
from trunnion.sim.trace import Allocated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from trunnion.sim.simulated_driver import SimulatedDriver

__all__ = ["EMPTY", "SimTensor", "allocate", "empty", "move", "place", "poison", "target_device"]


_DETACH: Final = "detach the tensor first; autograd is shown on the CPU"

# What makes a tensor take part in autograd once it is there: the method, the attribute.
_GRADIENT: Final = (torch.Tensor.requires_grad_, getattr_static(torch.Tensor, "requires_grad").__set__)


class SimTensor(torch.Tensor):
    """A CUDA tensor of a simulated device.

    Its storage is the simulator's device memory; views, operations and factories keep the device, tensors of
    two devices do not mix, and ``.cpu()`` is a plain tensor again. No autograd.
    """

    _ordinal: int
    _exchange: Any
    __dlpack_c_exchange_api__: Any

    @property
    def device(self) -> torch.device:  # type: ignore[override]  # torch declares an attribute, and has a property
        """``cuda:N``."""
        return torch.device("cuda", self._ordinal)

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]  # as above
        """True."""
        return True

    @property
    def is_cpu(self) -> bool:  # type: ignore[override]  # as above
        """False."""
        return False

    def get_device(self) -> int:
        """Return the ordinal of the device."""
        return self._ordinal

    def host(self) -> torch.Tensor:
        """Return a plain tensor over the same memory: what is written there is seen here."""
        return _plain(self)

    def numpy(self, *, force: bool = False) -> Any:
        """Return an array of a copy, if ``force``; without it, refuse as a CUDA tensor does.

        Raises
        ------
        TypeError
            If ``force`` is false.
        """
        if not force:
            message = f"can't convert {self.device} device type tensor to numpy; copy it with .cpu() first"
            raise TypeError(message)
        return self.cpu().numpy(force=True)

    def __array__(self, dtype: Any = None) -> Any:
        """Refuse as a CUDA tensor does."""
        return self.numpy()

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Return DLPack's name of the device: (2, N)."""
        return 2, self._ordinal

    def __dlpack__(self, **_: Any) -> Any:
        """Refuse: through a capsule, a consumer would ask the CUDA runtime about memory that it does not know.

        Raises
        ------
        BufferError
            Always, as the protocol says for what cannot be exported.
        """
        raise BufferError("a simulated tensor is exported through __dlpack_c_exchange_api__ only")

    def __deepcopy__(self, memo: dict[int, Any]) -> SimTensor:
        """Return a copy on the same device."""
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        copied: SimTensor = memo[id(self)]
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse.

        Raises
        ------
        TypeError
            Always: device memory does not outlive its process.
        """
        raise TypeError("a simulated tensor does not pickle; copy it with .cpu() first")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]  # untyped in torch
        """Return the host tensor's text with the device in it, as torch prints a CUDA tensor."""
        _simulator().state.operations.append("__repr__")  # it copies the elements, and waits
        text = repr(_plain(self)) if tensor_contents is None else tensor_contents
        return f"{text[:-1]}, device='{self.device}')"

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operation on the host, and put what comes out where it belongs."""
        if func in _LAYOUT:
            with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - documented for subclasses
                told = func(*args, **(kwargs or {}))
            return told  # noqa: RET504 - behind the block: the suite interrupts between a call and what follows it
        return _run(_simulator(), func, args, dict(kwargs or {}))


def _simulator() -> SimulatedDriver:
    simulator = running()
    if simulator is None:
        raise LifecycleError("no simulator runs in this process; call trunnion.sim.start()")
    return simulator


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - documented for subclasses
        return tensor.as_subclass(torch.Tensor)


def _wrap(tensor: torch.Tensor, ordinal: int) -> SimTensor:
    wrapped = tensor.as_subclass(SimTensor)
    wrapped._ordinal = ordinal  # noqa: SLF001 - the constructor of this module's own class
    return wrapped


def empty(
    simulator: SimulatedDriver,
    shape: Sequence[int],
    dtype: torch.dtype,
    ordinal: int,
    strides: Sequence[int] | None = None,
    *,
    poisoned: bool = True,
) -> SimTensor:
    """Return a tensor in fresh device memory, every byte of it 0xFF.

    Parameters
    ----------
    simulator
        Whose memory.
    shape
        Elements along each dimension.
    dtype
        The element type.
    ordinal
        The ordinal of the device.
    strides
        Elements from one index to the next along each dimension; None: contiguous, row-major.
    poisoned
        False: its bytes are zeros, and take no memory of the host before they are written to.

    Raises
    ------
    ArgumentValueError
        If there is no such device.
    torch.OutOfMemoryError
        If the device has too little memory.
    """
    simulator.device(ordinal)
    extents = tuple(shape)
    steps = contiguous(extents) if strides is None else tuple(strides)
    if 0 in extents:  # typed by a view: a factory warns about some of the types
        return _wrap(torch.empty(0, dtype=torch.uint8).view(dtype).as_strided(extents, steps), ordinal)
    reach = sum((extent - 1) * step for extent, step in zip(extents, steps, strict=True))
    try:
        _, buffer = simulator.memory.allocate((1 + reach) * dtype.itemsize, ordinal, poisoned=poisoned)
    except Refusal as refusal:
        raise allocation_error(refusal, "empty") from refusal
    flat = torch.frombuffer(buffer, dtype=torch.uint8).view(dtype)
    return _wrap(flat.as_strided(extents, steps), ordinal)


def allocate(
    simulator: SimulatedDriver,
    shape: Sequence[int],
    dtype: torch.dtype,
    ordinal: int,
    stream: int,
    strides: Sequence[int] | None = None,
) -> SimTensor:
    """Return a tensor in fresh device memory for a launcher, and trace it with its stream.

    Parameters
    ----------
    simulator
        Whose memory.
    shape
        Elements along each dimension.
    dtype
        The element type.
    ordinal
        The ordinal of the device.
    stream
        The stream that will use it first.
    strides
        As for `empty`.

    Raises
    ------
    ArgumentValueError
        If there is no such device, or no memory is that large.
    torch.OutOfMemoryError
        If the device has too little memory, or a planted fault says so.
    DriverError
        If a planted fault or an interceptor refuses for another reason.
    """
    made: list[SimTensor] = []
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > INT64_MAX:
        raise unallocatable(tuple(shape))
    try:
        simulator.state.interceptions.run(
            ALLOCATE,
            lambda *_: made.append(empty(simulator, shape, dtype, ordinal, strides)),
            nbytes,
            ordinal,
            stream,
        )
    except Refusal as refusal:
        raise allocation_error(refusal, ALLOCATE) from refusal
    simulator.state.trace.add(Allocated(made[0].data_ptr(), nbytes, ordinal, stream))
    simulator.state.keep_for_capture(stream, made[0])
    return made[0]


def place(simulator: SimulatedDriver, tensor: torch.Tensor, ordinal: int) -> SimTensor:
    """Return a copy of a tensor in a device's memory, with the same strides.

    Parameters
    ----------
    simulator
        Whose memory.
    tensor
        Any tensor with storage on the host; a simulated one is copied from its device.
    ordinal
        The ordinal of the device.

    Raises
    ------
    ArgumentTypeError
        If it is no tensor.
    ArgumentValueError
        If there is no such device.
    UnsupportedFeatureError
        If the tensor takes part in autograd.
    """
    expect(tensor, torch.Tensor, "host", "a torch.Tensor; make one of anything else with torch.as_tensor")
    if tensor.requires_grad:
        raise UnsupportedFeatureError("the simulated device", ("autograd",), _DETACH)
    source = _plain(tensor).resolve_conj().resolve_neg()
    if 0 in source.stride():  # an expanded dimension has no place of its own to copy to
        source = source.contiguous()
    placed = empty(simulator, source.shape, source.dtype, ordinal, source.stride())
    if source.numel():
        data = _bytes(source)  # which torch would share among threads that wait for each other, far longer
        ctypes.memmove(_plain(placed).data_ptr(), data.data_ptr(), data.numel())
    return placed


def poison(tensor: SimTensor) -> SimTensor:
    """Return a tensor after filling it as fresh device memory is: whoever takes it for zeros is found out."""
    if tensor.numel():
        _bytes(_plain(tensor)).fill_(POISON)
    return tensor


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes from a tensor's first element to its last; torch copies not every type, but any bytes."""
    reach = sum((extent - 1) * step for extent, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.as_strided((1 + reach,), (1,)).view(torch.uint8)


def target_device(simulator: SimulatedDriver, device: Any) -> Any:
    """Return the device that an argument means: an ordinal or a name counts as CUDA's if torch says so.

    Parameters
    ----------
    simulator
        Tells the current device: ``"cuda"`` is the device of the thread's current context, else 0.
    device
        What a user passed for ``device=``.

    Returns
    -------
    torch.device
        The device, with an index if it is CUDA's.
    """
    found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    if found.type == "cuda" and cast("int | None", found.index) is None:  # torch's annotation says int
        stack = simulator.state.stack()
        return torch.device("cuda", stack[-1].device.ordinal if stack else 0)
    return found


def _adopt(simulator: SimulatedDriver, result: Any, ordinal: int) -> Any:
    """Return what an operation returned, every host tensor in it as one of the device."""
    if isinstance(result, SimTensor):
        return result
    if isinstance(result, torch.Tensor):
        if result.layout is torch.strided and _in_device_memory(simulator, result):
            return _wrap(result, ordinal)
        return place(simulator, result, ordinal)
    if isinstance(result, (tuple, list)):
        items = [_adopt(simulator, item, ordinal) for item in result]
        if hasattr(
            result, "_fields"
        ):  # a named tuple takes its fields, torch's own return types one sequence
            return type(result)(*items)
        return type(result)(items)
    return result


def _in_device_memory(simulator: SimulatedDriver, tensor: torch.Tensor) -> bool:
    return tensor.numel() == 0 or simulator.memory.find(tensor.untyped_storage().data_ptr()) is not None


def _to_host(simulator: SimulatedDriver, result: Any) -> Any:
    """Return what an operation returned, no tensor in it over device memory."""
    if isinstance(result, torch.Tensor):
        plain = _plain(result)
        return plain.clone() if _in_device_memory(simulator, plain) else plain
    if isinstance(result, (tuple, list)):
        return type(result)([_to_host(simulator, item) for item in result])
    return result


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _version(args: tuple[Any, ...]) -> int:
    """Return how often the memory of an operation's first tensor was written to; 0 where torch does not count."""
    counted = args and isinstance(args[0], torch.Tensor) and not args[0].is_inference()
    return args[0]._version if counted else 0  # noqa: SLF001 - torch's name for it


def _is_new(simulator: SimulatedDriver, args: tuple[Any, ...], result: Any) -> bool:
    """Whether an operation returned a tensor that is no view of a device's memory, so that a GPU had to compute it."""
    given = args[0] if args else None
    return any(one is not given and not _in_device_memory(simulator, one) for one in _tensors(result))


def _run(
    simulator: SimulatedDriver, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if func in (torch.Tensor.to, torch.Tensor.type_as, torch.Tensor.cpu, torch.Tensor.cuda):
        return move(simulator, func, args, kwargs)
    if func is torch._has_compatible_shallow_copy_type:  # noqa: SLF001 - torch.nn.Module asks it of what it moved
        return len({one.device for one in _tensors(args)}) == 1
    if func in _GRADIENT and all(
        (*args[1:], kwargs.get("requires_grad", True))
    ):  # the flag, however it is given
        raise UnsupportedFeatureError("the simulated device", ("autograd",), _DETACH)
    given = kwargs.pop("device", None)
    ordinal = _common_ordinal(func, args, kwargs)
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - documented for subclasses
        before = _version(args)
        result = compute(func, args, kwargs)
        written = _version(args) != before
    if written or func in _READS or (func not in EMPTY and _is_new(simulator, args, result)):
        simulator.state.operations.append(getattr(func, "__name__", str(func)))
    if args and result is args[0]:  # in place, and be it a host tensor that took a copy
        return result
    if given is None:
        adopted = _adopt(simulator, result, ordinal)
        return poison(adopted) if func in EMPTY else adopted
    target = target_device(simulator, given)
    if target.type == "cuda":
        adopted = _adopt(simulator, result, target.index)
        return poison(adopted) if func in EMPTY else adopted
    return _to_host(simulator, result)


_KIND: Any = torch.Tensor  # of which torch's annotations tell what an instance has

_LAYOUT: Final = frozenset(
    (
        torch.Tensor.data_ptr,
        torch.Tensor.dim,
        _KIND.dtype.__get__,
        torch.Tensor.element_size,
        torch.Tensor.is_conj,
        torch.Tensor.is_contiguous,
        torch.Tensor.is_neg,
        _KIND.layout.__get__,
        torch.Tensor.numel,
        _KIND.shape.__get__,
        torch.Tensor.size,
        torch.Tensor.storage_offset,
        torch.Tensor.stride,
    )
)
"""What tells where a tensor lies and how, and makes none: nine in ten of what launchers and laws ask of tensors."""

EMPTY: Final = frozenset(
    (
        torch.empty,
        torch.empty_like,
        torch.empty_strided,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    )
)
"""The factories that promise nothing about what is in their memory."""

_READS: Final = frozenset(
    (
        torch.equal,
        torch.allclose,
        torch.is_nonzero,
        torch.Tensor.__bool__,
        torch.Tensor.__complex__,
        torch.Tensor.__contains__,
        torch.Tensor.__float__,
        torch.Tensor.__format__,
        torch.Tensor.__index__,
        torch.Tensor.__int__,
        torch.Tensor.allclose,
        torch.Tensor.equal,
        torch.Tensor.is_nonzero,
        torch.Tensor.item,
        torch.Tensor.tolist,
    )
)
"""What returns no tensor, and looks at elements all the same: on a GPU it copies them, and waits."""

# Where torch lets a host tensor meet a CUDA tensor.
_MIXING: Final = frozenset((torch.Tensor.copy_, torch.Tensor.__setitem__, torch.Tensor.__getitem__))


def _common_ordinal(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    ordinals: set[int] = set()
    strangers: set[str] = set()
    for tensor in _tensors([args, kwargs]):
        if isinstance(tensor, SimTensor):
            ordinals.add(tensor.get_device())
        elif tensor.dim() > 0:  # a host tensor without dimensions counts as a number
            strangers.add(str(tensor.device))
    if func is torch.Tensor.copy_:
        first = args[0]
        return first.get_device() if isinstance(first, SimTensor) else 0
    if len(ordinals) > 1 or (strangers and func not in _MIXING):
        devices = sorted({f"cuda:{ordinal}" for ordinal in ordinals} | strangers)
        name = getattr(func, "__name__", str(func))
        raise ArgumentValueError(
            "", f"tensors on {', '.join(devices)} in {name}", "all tensors on one device"
        )
    return ordinals.pop() if ordinals else 0


def move(
    simulator: SimulatedDriver, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run ``Tensor.to``, ``.type_as``, ``.cpu`` or ``.cuda``.

    Parameters
    ----------
    simulator
        Whose memory.
    func
        The method of `torch.Tensor`.
    args
        The tensor, plain or simulated, and what the caller passed behind it.
    kwargs
        What the caller passed by name.
    """
    tensor, rest = args[0], [kwargs.pop(word) for word in ("tensor", "other") if word in kwargs]
    rest += args[1:]
    host, given = _plain(tensor), kwargs.pop("device", None)
    if func is torch.Tensor.cpu:
        given = "cpu"
    elif rest and isinstance(rest[0], torch.Tensor):
        given, rest[0] = rest[0].device, rest[0].dtype
    elif rest and isinstance(rest[0], (str, int, torch.device)):
        given, rest[0] = rest[0], host.device
    elif func is torch.Tensor.cuda:
        given = "cuda" if given is None else given
    if func in (torch.Tensor.cpu, torch.Tensor.cuda):
        rest = []
    target = target_device(simulator, tensor.device if given is None else given)
    result = host.to(*rest, **kwargs) if rest or kwargs else host
    operations = simulator.state.operations
    if target.type == "cuda":
        stays = isinstance(tensor, SimTensor) and tensor.get_device() == target.index
        if stays and result is host:
            return tensor
        operations.append(func.__name__)
        return place(simulator, result, target.index)
    if target.type == "cpu":
        operations += [func.__name__] if isinstance(tensor, SimTensor) else []
        return _to_host(simulator, result)
    return result.to(target)


SimTensor._exchange = Exchange(_wrap, allocate)  # noqa: SLF001 - this module's own class
SimTensor.__dlpack_c_exchange_api__ = SimTensor._exchange.capsule()  # noqa: SLF001 - as above
