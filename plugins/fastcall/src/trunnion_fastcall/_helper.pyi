from collections.abc import Callable
from typing import Any

# What they do, take, return and raise is said in trunnion.contract.call_helper.

def tensor_reader(
    exchange: int,
    tensor_type: type,
    tensors: tuple[Any, ...],
    questions: tuple[tuple[Callable[[Any], object], ...], ...],
    /,
) -> Callable[..., tuple[int, ...] | None]: ...
def caller(function: int, addresses: tuple[int, int, int, int], kept: object, /) -> Callable[[], int]: ...
