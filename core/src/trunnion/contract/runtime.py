"""What a launcher asks of the tensor library, so that generated text names no tensor library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from trunnion.errors import ArgumentTypeError
from trunnion.messages import type_name
from trunnion.plain import ForeignError, asked

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from trunnion.model.dtypes import DType

__all__ = ["Runtime", "expect_runtime"]


class Runtime(Protocol):
    """The tensor library's side of a launch.

    Attributes
    ----------
    tensor_type
        The class that tensors are instances of.
    strided
        The value of ``tensor.layout`` for a dense tensor.
    exchanged_types
        The two classes of tensors that `exchange_api` converts, of neither a subclass; those that are allocated first.
    stream_type
        The class of streams whose ``cuda_stream`` is the driver's handle.
    only_device
        The ordinal of the one device that there is: on the CPU, where tensors tell none, 0. None: tensors have an
        ordinal, and a call that has no tensor must name one.
    """

    tensor_type: type
    strided: Any
    only_device: int | None
    exchanged_types: tuple[type, type]
    stream_type: type

    def dtype(self, dtype: DType) -> Any:
        """Return the library's object for an element type, to be compared by identity with ``tensor.dtype``.

        Raises
        ------
        DeviceRequirementError
            If the installed library is too old to have the type.
        """

    def current_stream(self, device: int) -> int:
        """Return the handle of the current stream of a device."""

    def current_stream_getter(self) -> Callable[[int], int]:
        """Return the fastest callable that does what `current_stream` does."""

    def allocate(self, shape: tuple[int, ...], dtype: Any, device: int, stream: int) -> Any:
        """Return a new tensor of uninitialised device memory, allocated under ``stream``.

        On a GPU it begins at a multiple of 256 bytes; whoever needs more allocates more, and begins within it.

        Parameters
        ----------
        shape
            Elements along each dimension.
        dtype
            What `dtype` returned.
        device
            The device's ordinal.
        stream
            The handle of the stream that will use it first. An allocator that recycles memory must know it: memory
            recycled on another stream may still be in use there.
        """

    def quick_allocator(self) -> Callable[[tuple[int, ...], tuple[int, ...], Any], Any] | None:
        """Return a faster `allocate`, of shape, strides in elements and element type; None: the library has none.

        It allocates under the calling thread's current stream of the only device there is. It may raise anything:
        `allocate` is asked then.
        """

    def on_stream(self, device: int, stream: int) -> AbstractContextManager[None]:
        """Return a context in which a device, and that stream of it, are the tensor library's current ones.

        So is code called that asks the library where to run and where to allocate, instead of being told.

        Parameters
        ----------
        device
            The device's ordinal.
        stream
            The stream's handle.

        Raises
        ------
        ArgumentValueError
            If the stream cannot be the library's current one.
        """

    def memory_error(self, message: str) -> Exception:
        """Return what the library raises where a device has too little memory.

        Parameters
        ----------
        message
            What the error says.
        """

    def exchange_api(self) -> int:
        """Return the address of the ``DLPackExchangeAPI`` (dlpack.h) of `exchanged_types`; 0 if there is none.

        Those classes have ``is_neg`` and ``is_conj``: whether a tensor, or a complex one, is negated or conjugated
        lazily, which DLPack does not show.
        """

    def guard(self, tensors: tuple[Any, ...]) -> Callable[..., bool] | None:
        """Return what tells whether tensors are like the given ones; None: the library has no quick way to tell.

        Parameters
        ----------
        tensors
            Tensors that a launcher has checked.

        Returns
        -------
        Callable[..., bool] or None
            Called with as many tensors, in the same order: True only if each is of the same class, element type,
            device, layout, extents and strides as its model, and has memory as it is (`has_storage`); what
            differs in nothing else passes. It holds no tensor. It is called with anything but nested tensors.
        """

    def reader(self, tensors: tuple[Any, ...]) -> Callable[..., tuple[int, ...] | None] | None:
        """Return what tells whether tensors are like the given ones and where they lie; None: nothing here does both.

        Parameters
        ----------
        tensors
            Tensors that a launcher has checked.

        Returns
        -------
        Callable[..., tuple[int, ...] or None] or None
            Called with as many objects of any kind, in the same order, returns the tensors' addresses if `guard` would
            let them pass, else None.
        """

    def caller(
        self, function: int, addresses: tuple[int, int, int, int], kept: object
    ) -> Callable[[], int] | None:
        """Return what calls a C function faster than Python can; None: nothing here does.

        Parameters
        ----------
        function, addresses, kept
            As `CallHelper.caller` takes them.
        """

    def guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return what is to be called in place of a launcher; on real devices the launcher itself.

        A simulated driver that runs in Python can only return a status to a launcher, as a driver does; here it gets
        the chance to raise what really happened. Whoever loads a program through trunnion has this done for `entry`,
        `call` and `bind`; a backend need not.
        """

    def presents_device(self, tensor: Any) -> bool:
        """Whether a tensor lies on the kind of device that this runtime launches on."""

    def has_storage(self, tensor: Any) -> bool:
        """Whether there is memory behind a tensor, as it is: not a fake, not a lazily conjugated or negated view."""

    def room(self, tensor: Any) -> int:
        """Return the bytes from a tensor's first element to the end of its storage, which may be less than it spans.

        Libraries let a storage shrink under its tensors. A `RuntimeError` says that the tensor has none.
        """


_MEMBERS: Final = (*Runtime.__annotations__, *(name for name in vars(Runtime) if not name.startswith("_")))


def expect_runtime(runtime: Runtime | None) -> Runtime | None:
    """Return what was passed as a runtime, if it can be one.

    Parameters
    ----------
    runtime
        What was passed; None: the default one is meant.

    Raises
    ------
    ArgumentTypeError
        If it lacks something that launchers ask of a runtime.
    """
    if runtime is None:
        return None
    for name in _MEMBERS:
        try:
            lacks = not asked(lambda name=name: hasattr(runtime, name))  # type: ignore[misc]  # of the loop's own name
        except ForeignError:
            lacks = True
        if lacks:
            raise ArgumentTypeError("runtime", type_name(runtime), f"a Runtime, or None: it has no {name}")
    return runtime
