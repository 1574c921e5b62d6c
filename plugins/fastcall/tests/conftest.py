"""torch on the host: the same exchange API as on a GPU, and the same classes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
import torch

from trunnion.torch_runtime import HostRuntime

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    import_module("trunnion_fastcall")
    collect_ignore_glob = []
except ImportError:  # not built; the conftest.py at the root says so at the end of a run
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def exchange() -> int:
    return HostRuntime().exchange_api()


@pytest.fixture
def reader(exchange: int) -> Callable[..., Any]:
    """A function that makes a reader of torch's tensors, each of which is asked the same questions."""
    from trunnion_fastcall import tensor_reader

    def make(*tensors: torch.Tensor, questions: tuple[Any, ...] = ()) -> Any:
        return tensor_reader(exchange, torch.Tensor, tensors, (questions,) * len(tensors))

    return make
