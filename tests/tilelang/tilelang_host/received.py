"""What launches received on the simulated driver, told in the interpreter's words, so that `==` compares the two."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tilelang_host.values import Launch, MapRequest, Scalar, Scratch, Window

from trunnion.sim.tensormap import Im2colRequest, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trunnion.sim.trace import Launched

__all__ = ["moved", "placed", "received"]

_PERSISTING, _STREAMING = 2, 1
_ATTRIBUTES = ("priority", "scheduling_policy", "mem_sync_domain", "preferred_cluster", "carveout")


def received(launched: Launched, name: str, kernel: Any) -> Launch:
    """Return a launch as its parameters' bytes say it, every address a number.

    Parameters
    ----------
    launched
        What the driver saw.
    name
        What the host function calls the kernel: the driver knows it by its symbol.
    kernel
        The device function: of its parameters' types nothing is in the bytes.

    Raises
    ------
    AssertionError
        If it has an attribute that no host function asks for.
    """
    attributes, window = launched.attributes, launched.window
    assert not [name for name in _ATTRIBUTES if getattr(attributes, name) is not None]
    if window is not None:
        assert (window.hit_property, window.miss_property) == (_PERSISTING, _STREAMING)
    return Launch(
        kernel=name,
        parameters=tuple(
            _parameter(param, data) for param, data in zip(kernel.params, launched.parameters, strict=True)
        ),
        grid=launched.grid,
        block=launched.block,
        cluster=launched.cluster,
        shared=launched.dynamic_smem_bytes,
        cooperative=bool(attributes.cooperative),
        pdl=bool(attributes.programmatic_stream_serialization),
        window=window and Window(window.address, window.nbytes, window.hit_ratio),
    )


def _parameter(param: Any, data: bytes) -> Any:
    dtype = str(param.dtype)
    if dtype != "handle":
        (value,) = np.frombuffer(data, dtype=dtype).tolist()
        return Scalar(dtype, value)
    if "uint8x128" not in str(param.type_annotation):
        return int.from_bytes(
            data[:8], "little"
        )  # CuTeDSL's kernels take a view: the address, then the layout
    have = decode(data)
    modes = (int(have.interleave), int(have.swizzle), int(have.l2_promotion), int(have.oob_fill))
    fields = (int(have.data_type), have.address, have.dims, have.strides)
    if isinstance(have, Im2colRequest):
        box: tuple[Any, ...] = (have.lower, have.upper, have.channels, have.pixels)
        return MapRequest("im2col", *fields, box, have.element_strides, modes)
    return MapRequest("tiled", *fields, (have.box,), have.element_strides, modes)


def moved(launch: Launch, place: Callable[[Any], Any]) -> Launch:
    """Return a launch with every address replaced.

    Parameters
    ----------
    launch
        The launch.
    place
        Returns what stands for an address.
    """

    def parameter(value: Any) -> Any:
        if isinstance(value, MapRequest):
            return replace(value, address=place(value.address))
        return value if isinstance(value, Scalar) else place(value)

    window = launch.window and replace(launch.window, address=place(launch.window.address))
    return replace(launch, parameters=tuple(map(parameter, launch.parameters)), window=window)


def placed(expected: Sequence[Launch], got: Sequence[Launch]) -> Mapping[Scratch, int]:
    """Return where each allocation of the interpreter's lies: where the first launch that is given it has an address.

    Parameters
    ----------
    expected
        The interpreter's launches.
    got
        The driver's, as many.
    """
    found: dict[Scratch, int] = {}
    for want, have in zip(expected, got, strict=True):
        for one, other in zip(want.addresses(), have.addresses(), strict=False):
            if isinstance(one, Scratch) and isinstance(other, int):
                found.setdefault(one, other)
    return found
