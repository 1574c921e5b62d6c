"""`Convention`: how people write a call of a program."""

from __future__ import annotations

import inspect
import keyword
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import device_ordinal, output_list, stream_handle
from trunnion.errors import ArgumentError, ArgumentTypeError, shorten
from trunnion.messages import suggestion, type_name
from trunnion.model.expr_text import format_expr
from trunnion.model.params import PointerParam, ScalarParam, TensorParam

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from trunnion.model.params import Param, Signature

__all__ = ["WORDS", "Convention"]

WORDS: Final = ("out", "stream", "device")
"""What a call may say beside its arguments, by name."""


class Convention:
    """How a program is called: arguments by position or by name, and ``out=``, ``stream=`` and ``device=``.

    An argument called as one of those three, or by what is no identifier of Python's, goes by position, and so do those
    before it: as if a ``/`` stood behind it.

    Parameters
    ----------
    names
        The arguments' names, in their order.
    outputs
        How many outputs the program has.
    kind
        The kind of device that it runs on: ``"cuda"``, ``"cpu"``.
    """

    def __init__(self, names: Sequence[str], outputs: int, kind: str = "cuda") -> None:
        self.names = tuple(names)
        self._outputs = outputs
        self._kind = kind
        unnamed = [index for index, name in enumerate(names) if not _can_be_named(name)]
        self._first = unnamed[-1] + 1 if unnamed else 0
        self._tensor: type | None = None

    @classmethod
    def of(cls, signature: Signature, kind: str = "cuda") -> Self:
        """Return the convention of a program.

        Parameters
        ----------
        signature
            The program's.
        kind
            The kind of device that it runs on.
        """
        return cls([param.name for param in signature.params], len(signature.outputs), kind)

    @property
    def keywords(self) -> tuple[str | None, ...]:
        """The name under which each argument may be passed; None: it goes by position."""
        return tuple(name if index >= self._first else None for index, name in enumerate(self.names))

    def signature(self, program: Signature) -> inspect.Signature:
        """Return the call as Python tells it, with what each argument must be as its annotation.

        Parameters
        ----------
        program
            The program's signature.
        """
        kinds = inspect.Parameter
        params = [
            kinds(
                param.name if _can_be_named(param.name) else self._stand_in(index),
                kinds.POSITIONAL_OR_KEYWORD if index >= self._first else kinds.POSITIONAL_ONLY,
                annotation=_annotation(param),
            )
            for index, param in enumerate(program.params)
        ]
        words = [kinds(word, kinds.KEYWORD_ONLY, default=None) for word in WORDS]
        outputs = [_annotation(output) for output in program.outputs]
        returned = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})" if outputs else None
        return inspect.Signature([*params, *words], return_annotation=returned)

    def _stand_in(self, index: int) -> str:
        """Return a name that no argument has, for one that has none that Python could say."""
        name = f"argument{index}"
        while name in self.names:
            name += "_"
        return name

    def arguments(self, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of a call in their order.

        Parameters
        ----------
        given
            Those that it gives by position.
        named
            Those that it gives by name.

        Raises
        ------
        ArgumentTypeError
            If there is no such argument, or one is given twice or not at all.
        """
        places = {name: index for index, name in enumerate(self.names) if index >= self._first}
        for name in named:
            if name not in places:
                raise ArgumentTypeError(name, "it by name", self._nameable(name))
            if places[name] < len(given):
                raise ArgumentTypeError(name, "it twice, by position and by name", "it once")
        missing = [name for name in self.names[len(given) :] if name not in named]
        if missing:
            raise ArgumentTypeError(
                missing[0], "nothing", f"{len(self.names)} arguments, by position or name"
            )
        return (*given, *(named[name] for name in self.names[len(given) :]))

    def _nameable(self, name: str) -> str:
        if name in self.names:
            return "it by position, as all arguments up to one that cannot be named"
        known = (*self.names[self._first :], *WORDS)
        return f"one of {', '.join(map(shorten, known))}{suggestion(name, known)}"

    def words(
        self, out: Any, stream: Any, device: Any
    ) -> tuple[tuple[Any, ...] | None, int | None, int | None]:
        """Return what a call says beside its arguments, as `LoadedProgram.call` takes it.

        Parameters
        ----------
        out
            A tensor if there is one output, else a sequence; None.
        stream
            A driver's handle, an object with ``__cuda_stream__`` or ``cuda_stream``, or None.
        device
            An ordinal, an object or text that names a device, or None.

        Raises
        ------
        ArgumentError
            If one of them is something else.
        """
        ordinal = None if device is None else device_ordinal(device, self._kind)
        destinations = None if out is None else self.destinations(out)
        return destinations, None if stream is None else stream_handle(stream), ordinal

    def destinations(self, out: Any) -> tuple[Any, ...]:
        """Return what a call passes for ``out=`` as a tuple, which nobody can change meanwhile.

        Raises
        ------
        ArgumentTypeError
            If it is no sequence, where there is not one output.
        """
        if type(out) is self._tensor:
            return (out,)
        several = output_list(out)
        if several is not None:
            return tuple(several)
        if self._outputs == 1:
            self._tensor = type(out)  # which is no sequence, and of which most calls are
            return (out,)
        raise ArgumentTypeError("out", type_name(out), f"a sequence of {self._outputs} tensors, or None")

    def over(
        self, call: Callable[..., Any], refuse_closed: Callable[[], None] | None = None
    ) -> Callable[..., Any]:
        """Return what people call.

        Parameters
        ----------
        call
            What `LoadedProgram.call` is.
        refuse_closed
            Raises, if the program was closed: before anything else is told of a call. None: ``call`` alone does.
        """

        def entry(*args: Any, out: Any = None, stream: Any = None, device: Any = None, **named: Any) -> Any:
            try:
                given = self.arguments(args, named) if named else args
                out, stream, device = self.words(out, stream, device)
            except ArgumentError:
                if refuse_closed is not None:
                    refuse_closed()
                raise
            return call(given, out=out, stream=stream, device=device)

        return entry


def _annotation(param: Param) -> str:
    """Return what an argument must be, or an output is, for people."""
    match param:
        case TensorParam():
            shape = ", ".join(map(format_expr, param.shape))
            return f"{param.dtype.name}[{shape}]{' | None' if param.nullable else ''}"
        case ScalarParam():
            return param.dtype.name
        case PointerParam():
            return f"address{' | None' if param.nullable else ''}"
        case _:
            return f"{param.nbytes} bytes"


def _can_be_named(name: str) -> bool:
    """Whether Python's parser gives a call just that name: it normalises what is written (PEP 3131)."""
    written = name.isidentifier() and unicodedata.normalize("NFKC", name) == name
    return written and not keyword.iskeyword(name) and name not in (*WORDS, "__debug__")
