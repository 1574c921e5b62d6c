"""`torch_op`: register programs as an operator of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.arguments import expect, expect_text
from trunnion.compiled import CompiledProgram
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ProgramError,
    UnsupportedFeatureError,
    shorten,
)
from trunnion.messages import describe, listed, type_name
from trunnion.operators.batching import register_batching
from trunnion.operators.fake import fake_of, fake_out_of
from trunnion.operators.gradients import expect_backward, register_backward
from trunnion.operators.kernels import count_writes_of, kernel, out_kernel
from trunnion.operators.library import load_operator, operator_files
from trunnion.operators.schema import OperatorName, OperatorSchema
from trunnion.plain import is_a, is_exactly
from trunnion.toolchain.torch_files import refuse_torch_without_operators

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["PLACES", "torch_op"]

PLACES = (
    "CPU",
    "CUDA",
    "HIP",
    "XPU",
    "MPS",
    "HPU",
    "IPU",
    "XLA",
    "MTIA",
    "MAIA",
    "VE",
    "Lazy",
    "PrivateUse1",
    "PrivateUse2",
    "PrivateUse3",
    "CompositeExplicitAutograd",
)
"""The dispatch keys under which a program may run: those of torch's backends, and that of all of them.

Others are what torch does on the way (gradients, casts, batches, shapes), where the operator has rules of its own.
"""


def torch_op(  # noqa: PLR0913 - one call with everything that it can say
    program: CompiledProgram | Sequence[CompiledProgram],
    name: str,
    *,
    defaults: Mapping[str, Any] | None = None,
    backward: CompiledProgram | Callable[..., Any] | None = None,
    setup_context: Callable[..., None] | None = None,
    vmap: Callable[..., Any] | str | None = "loop",
    autocast: Any = None,
    tags: Sequence[Any] = (),
    cpp: bool = False,
    dispatch_key: str | None = None,
    lib: Any = None,
) -> Any:
    """Register a program as an operator of torch, which `torch.compile`, `torch.export` and others know.

    There are two overloads: one that allocates what the program gives back, and ``out``, which is given what to write
    to by name and returns nothing. Tensors are tensors, integers ``SymInt``, an address is an integer, and a struct the
    list of its bytes. What comes back is known from the program's own expressions, so nothing runs while torch traces.

    Parameters
    ----------
    program
        The program; or one for each kind of device, of equal signatures.
    name
        What the operator is called, such as ``"mine::scale"``.
    defaults
        What an argument is that a call leaves out, by the parameter's name: numbers, and None for what may be None.
    backward
        The gradient: a function of torch's own form, ``backward(ctx, *gradients)``; or a program, whose parameters are
        called as inputs and outputs of this one are, or as an output with ``grad_`` before it, and whose outputs are
        called as inputs with ``grad_`` before them.
    setup_context
        ``setup_context(ctx, inputs, output)``, which keeps what a function for ``backward`` needs.
    vmap
        ``"loop"``: `torch.vmap` calls the operator for each member; or a rule ``(info, in_dims, *args)`` that returns
        results and their dimensions; None: torch's own way, which warns.
    autocast
        The dtype to which floating-point tensors are cast where autocast is on; None: they stay what they are.
    tags
        More of ``torch.Tag``.
    cpp
        Whether the operator is a library of C++, which calls the launcher without Python. For launchers that are C++.
    dispatch_key
        Where torch looks the program up: the key of a backend, or ``"CompositeExplicitAutograd"`` for all of them;
        None: that of its kind of device. A simulated tensor's is ``"CPU"``.
    lib
        A `torch.library.Library`, with which the operator goes; None: it stays as long as the process.

    Returns
    -------
    torch._ops.OpOverloadPacket
        What ``torch.ops.<namespace>.<name>`` is.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is none of these, torch has an operator of that name, or the gradient's names do not fit.
    ProgramError
        If no argument is a tensor, by whose device torch could find the program; or the signatures differ.
    UnsupportedFeatureError
        If a gradient or autocast is asked for of what writes into its inputs, or C++ of a launcher that is Python.
    BackendUnavailableError
        If torch is missing or too old.
    """
    programs = _programs(program, dispatch_key)
    named, schema = OperatorName.of(name), OperatorSchema.of(programs[0].program.signature, defaults)
    torch = _torch()
    _expect_new(torch, named)
    _expect_options(torch, vmap, tags)
    _expect_place(torch, named, dispatch_key, lib)
    expect(cpp, bool, "cpp", "True or False")
    _expect_castable(torch, autocast, schema)
    if not schema.signature.tensors:
        message = "has no tensor among its parameters, by whose device torch could find it; give it one"
        raise ProgramError(message, field=programs[0].program.name)
    gradient = None
    if backward is not None:
        gradient = expect_backward(schema, backward, setup_context, [one.kind for one in programs])
        _expect_new(torch, named.beside("backward"))
    elif setup_context is not None:
        raise ArgumentTypeError("setup_context", type_name(setup_context), "None where there is no backward=")
    operator = _Operator(torch, named, schema, programs, lib)
    if cpp:
        _expect_cpp(programs, tags, lib)
        operator.load_library(dispatch_key)
    else:
        operator.define(tags)
        operator.implement(dispatch_key)
    operator.describe()
    if gradient is not None:
        register_backward(named, schema, gradient, lib)
    register_batching(named, schema, operator.fake, vmap, lib)
    if autocast is not None:
        for one in operator.kinds:
            torch.library.register_autocast(str(named), one, autocast, lib=lib)
    return operator.packet


class _Operator:
    """What is registered for one name."""

    def __init__(
        self,
        torch: Any,
        name: OperatorName,
        schema: OperatorSchema,
        programs: tuple[CompiledProgram, ...],
        lib: Any,
    ) -> None:
        self._library, self._torch = torch.library, torch
        self._name, self._schema, self._programs, self._lib = name, schema, programs, lib
        self.kinds = tuple(one.kind for one in programs)
        plan = programs[0].program.plan()
        self.fake = fake_of(plan, self.kinds, schema)
        self._fake_out = fake_out_of(plan, self.kinds, schema)
        self._overloads = [str(name), *([f"{name}.out"] if schema.signature.outputs else [])]

    @property
    def packet(self) -> Any:
        """What torch has under the name."""
        return getattr(getattr(self._torch.ops, self._name.namespace), self._name.name)

    def define(self, tags: Sequence[Any]) -> None:
        """Tell torch the schemas."""
        own = self._torch.Tag
        every = (own.pt2_compliant_tag, own.needs_exact_strides, *tags)
        texts = (self._schema.functional(), self._schema.out())
        for overload, text in zip(self._overloads, texts, strict=False):
            self._library.define(overload, text, lib=self._lib, tags=every)

    def implement(self, dispatch_key: str | None) -> None:
        """Register the programs themselves."""
        for program in self._programs:
            key = dispatch_key or program.kind.upper()
            made = kernel(program, self._schema), out_kernel(program, self._schema)
            for overload, function in zip(self._overloads, made, strict=False):
                self._library.impl(overload, key, function, lib=self._lib)

    def load_library(self, dispatch_key: str | None) -> None:
        """Build and load the library of C++ that defines and implements the operator, and count what it writes."""
        (program,) = self._programs
        key = dispatch_key or program.kind.upper()
        load_operator(operator_files(program, self._name, self._schema, key), self._name, program.backend)
        if self._schema.mutated:
            count_writes_of(self._torch, self.packet.default, self._schema)
        if self._schema.signature.outputs:
            count_writes_of(self._torch, self.packet.out, self._schema)

    def describe(self) -> None:
        """Register what comes back, and whether a call does what its schema does not say."""
        for overload, function in zip(self._overloads, (self.fake, self._fake_out), strict=False):
            self._library.register_fake(overload, function, lib=self._lib)
        if (
            self._schema.signature.pointers
        ):  # else torch's compiler would leave out a call whose results nobody reads
            ordered = self._library.EffectType.ORDERED
            self._library._register_effectful_op(str(self._name), ordered, lib=self._lib)  # noqa: SLF001 - no public name


def _expect_cpp(programs: tuple[CompiledProgram, ...], tags: Any, lib: Any) -> None:
    for name, given in (("tags", tags), ("lib", lib)):
        if given:
            expected = "none for an operator in C++, which stays as long as the process, and defines itself"
            raise ArgumentValueError(name, describe(given), expected)
    if len(programs) > 1:
        raise ArgumentValueError("program", f"{len(programs)} programs", "one, for an operator in C++")


def _torch() -> Any:
    refuse_torch_without_operators()
    import torch  # noqa: PLC0415 - importing trunnion must not import torch

    return torch


def _programs(given: Any, dispatch_key: str | None) -> tuple[CompiledProgram, ...]:
    words = "a CompiledProgram, as trunnion.compile returns it, or a list of one for each kind of device"
    programs = tuple(given) if is_exactly(given, list, tuple) else (given,)
    for one in programs:
        expect(one, CompiledProgram, "program", words)
    kinds = [one.kind for one in programs]
    if not programs or len({*kinds}) < len(kinds) or (dispatch_key is not None and len(programs) > 1):
        got = f"{len(programs)} programs for {' and '.join(kinds) or 'nothing'}"
        raise ArgumentValueError("program", got, f"{words}; under a dispatch key one alone")
    for one in programs[1:]:
        if one.program.signature != programs[0].program.signature:
            got = f"{shorten(one.program.name)} for {one.kind}, whose signature differs from the first one's"
            raise ProgramError(
                f"got {got}, expected equal signatures: an operator has one schema", field="program"
            )
    return programs


def _expect_new(torch: Any, name: OperatorName) -> None:
    operators = getattr(torch.ops, name.namespace)
    if type(operators) is not torch._ops._OpNamespace:  # noqa: SLF001 - no public name
        raise ArgumentValueError("name", shorten(str(name)), "a namespace of your own: that one is torch's")
    if hasattr(operators, name.name):
        expected = "a name that torch has no operator of; one is kept as long as the process, or as its lib="
        raise ArgumentValueError("name", shorten(str(name)), expected)


def _expect_castable(torch: Any, autocast: Any, schema: OperatorSchema) -> None:
    if autocast is None:
        return
    if not is_a(autocast, torch.dtype):
        raise ArgumentTypeError("autocast", describe(autocast), "a torch.dtype, or None")
    if not autocast.is_floating_point:  # a call would be refused for a dtype that nobody passed
        words = "a dtype of floats, to which torch may cast floats"
        raise ArgumentValueError("autocast", str(autocast), words)
    if schema.mutated:  # torch would cast these as well, and what is written into the copies would be lost
        names = listed(param.name for param in schema.mutated)
        hint = f"the program writes into {names}; leave autocast= out, and cast what it reads"
        raise UnsupportedFeatureError("an operator of torch", ["autocast of what it writes into"], hint)


def _expect_options(torch: Any, vmap: Any, tags: Any) -> None:
    if vmap is not None and vmap != "loop" and not callable(vmap):
        raise ArgumentTypeError("vmap", describe(vmap), "'loop', a rule (info, in_dims, *args), or None")
    if not is_exactly(tags, list, tuple):
        raise ArgumentTypeError("tags", describe(tags), "a list of torch.Tag's")
    for one in tags:
        if not is_a(one, torch.Tag):
            raise ArgumentTypeError("tags", f"{describe(one)} in a list", "a list of torch.Tag's")


def _expect_place(torch: Any, name: OperatorName, dispatch_key: Any, lib: Any) -> None:
    """Accept where the operator is registered: what torch refuses of it, it refuses when half is done."""
    words = f"a dispatch key of a backend of torch's ({', '.join(PLACES)}), or None"
    if dispatch_key is not None:
        key = expect_text(dispatch_key, "dispatch_key", words)
        if key not in PLACES or torch._C._parse_dispatch_key(key) is None:  # noqa: SLF001 - no public name
            raise ArgumentValueError("dispatch_key", shorten(key), words)
    if lib is not None:
        expect(lib, torch.library.Library, "lib", "a torch.library.Library, or None")
        if lib.ns != name.namespace:
            raise ArgumentValueError("lib", f"a library of {shorten(lib.ns)}", f"one of {name.namespace}")
