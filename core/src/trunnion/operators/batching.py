"""`torch.vmap` of operators: by a rule of the author's, or by a call for each member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import UnsupportedFeatureError
from trunnion.messages import listed
from trunnion.operators.cut_out import as_declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trunnion.operators.schema import OperatorName, OperatorSchema

__all__ = ["register_batching"]


def register_batching(
    name: OperatorName,
    schema: OperatorSchema,
    fake: Callable[..., Any],
    rule: Callable[..., Any] | str | None,
    lib: Any,
) -> None:
    """Register what `torch.vmap` does with an operator.

    Parameters
    ----------
    name
        The operator's.
    schema
        Its schema.
    fake
        What a call of it gives back, of arguments without memory.
    rule
        ``"loop"``, a rule, or None.
    lib
        The `torch.library.Library` with which it goes; None: it stays.
    """
    if rule is None:
        return
    from torch.library import register_vmap  # noqa: PLC0415 - importing trunnion must not import torch

    looping = _refusing(name, schema) if schema.mutated else _Loop(name, schema, fake)
    register_vmap(str(name), looping if isinstance(rule, str) else rule, lib=lib)


def _refusing(name: OperatorName, schema: OperatorSchema) -> Callable[..., Any]:
    """Return the rule of an operator that writes into inputs, which may not have the batch's dimension."""

    def refuse(*_: Any) -> Any:
        names = listed(param.name for param in schema.mutated)
        hint = f"it writes into {names}; pass a rule for vmap=, or declare what it writes as an output"
        raise UnsupportedFeatureError(f"the operator {name}", ["torch.vmap"], hint)

    return refuse


class _Loop:
    """A call for each member of a batch.

    Parameters
    ----------
    name
        The operator's.
    schema
        Its schema.
    fake
        What a call of it gives back, of arguments without memory.
    """

    def __init__(self, name: OperatorName, schema: OperatorSchema, fake: Callable[..., Any]) -> None:
        self._name, self._params, self._fake = name, schema.signature.params, fake
        self._outputs = len(schema.signature.outputs)

    def __call__(self, info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        """Return results, and the dimension of each along which its members lie."""
        import torch  # noqa: PLC0415 - importing trunnion must not import torch

        operator = getattr(getattr(torch.ops, self._name.namespace), self._name.name).default
        members = range(info.batch_size)
        in_dims = tuple(None if isinstance(dim, list) else dim for dim in in_dims)  # of a struct, one a byte
        batches = [
            value if dim is None else value.movedim(dim, 0) for value, dim in zip(args, in_dims, strict=True)
        ]
        made = [operator(*self._member(batches, in_dims, index)) for index in members]
        if not made:
            return self._empty(batches, in_dims)
        if self._outputs > 1:
            return tuple(map(torch.stack, zip(*made, strict=True))), (0,) * self._outputs
        return (torch.stack(made), 0) if self._outputs else (None, None)

    def _member(self, batches: list[Any], in_dims: tuple[int | None, ...], index: int) -> Iterator[Any]:
        for param, one, dim in zip(self._params, batches, in_dims, strict=False):
            yield one if dim is None else as_declared(param, one[index])

    def _empty(self, batches: list[Any], in_dims: tuple[int | None, ...]) -> tuple[Any, Any]:
        """Return the results of a batch without members: of the shapes that members would have."""
        device = next(one.device for one, dim in zip(batches, in_dims, strict=True) if dim is not None)
        made = self._fake(*map(as_declared, self._params, map(_without_memory, batches, in_dims)))
        results = made if isinstance(made, tuple) else () if made is None else (made,)
        empty = tuple(one.new_empty((0, *one.shape), device=device) for one in results)
        if self._outputs > 1:
            return empty, (0,) * self._outputs
        return (empty[0], 0) if empty else (None, None)


def _without_memory(value: Any, dim: int | None) -> Any:
    """Return an argument, or a member of a batch along its first dimension: nowhere, of the strides that it has."""
    import torch  # noqa: PLC0415 - importing trunnion must not import torch

    if not isinstance(value, torch.Tensor):
        return value
    inner = slice(dim is not None, None)
    return torch.empty_strided(value.shape[inner], value.stride()[inner], dtype=value.dtype, device="meta")
