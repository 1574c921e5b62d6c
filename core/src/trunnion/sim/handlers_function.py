"""Kernels and functions: their names, parameters and attributes.

Source: CUDA Driver API, Library Management; Module Management; Execution Control.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.image.layout import arch_number
from trunnion.messages import quoted
from trunnion.sim.abi import DeviceAttribute, FunctionAttribute
from trunnion.sim.host import put
from trunnion.sim.objects import Function, Kernel
from trunnion.sim.occupancy import largest_block
from trunnion.sim.status import Refusal, Status
from trunnion.sim.trace import AttributeSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.sim.call import Call, Handler
    from trunnion.sim.devices import Device

__all__ = ["HANDLERS"]

_REQUIRED_CLUSTER: Final = (
    FunctionAttribute.REQUIRED_CLUSTER_WIDTH,
    FunctionAttribute.REQUIRED_CLUSTER_HEIGHT,
    FunctionAttribute.REQUIRED_CLUSTER_DEPTH,
)
_CLUSTERS_SINCE: Final = 11080  # the attributes from CLUSTER_SIZE_MUST_BE_SET on


def _function(call: Call, handle: int | None) -> tuple[Kernel, Device, Function | None]:
    """Return what a ``CUfunction`` or, in its place, a ``CUkernel`` means; the latter in the current context."""
    found = call.state.handled.get(handle or 0)
    if isinstance(found, Function):
        return found.kernel, found.device, found
    kernel, device = call.state.get(Kernel, handle), call.state.current().device
    kernel.library.check_runs_on(device)
    return kernel, device, None


def _get_function(call: Call, result: int | None, handle: int | None) -> None:
    kernel = call.state.get(Kernel, handle)
    device = call.state.current().device
    kernel.library.check_runs_on(device)
    with call.state.lock:
        function = kernel.functions.get(device.ordinal)
        if function is None:
            function = Function(call.state.new_handle(), kernel, device)
            kernel.functions[device.ordinal] = function
            call.state.add(function)
    put(ctypes.c_void_p, result, function.handle, "pFunc")


def _attribute(call: Call, attribute: int) -> FunctionAttribute:
    old = call.state.driver_version < _CLUSTERS_SINCE
    if attribute not in tuple(FunctionAttribute) or (
        old and attribute >= FunctionAttribute.CLUSTER_SIZE_MUST_BE_SET
    ):
        raise Refusal(
            Status.INVALID_VALUE, f"a driver of CUDA {call.state.driver_version} has no attribute {attribute}"
        )
    return FunctionAttribute(attribute)


def _settable(kernel: Kernel, attribute: FunctionAttribute, device: Device) -> range:
    """Return the values that an attribute may be set to."""
    if attribute is FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES:
        most = device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        return range(most - kernel.info.static_smem_bytes + 1)
    if attribute is FunctionAttribute.PREFERRED_SHARED_MEMORY_CARVEOUT:
        return range(-1, 101)
    if attribute is FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return range(1 << 31)
    if attribute is FunctionAttribute.CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return range(3)
    if attribute in _REQUIRED_CLUSTER:
        if kernel.info.cluster is not None:
            raise Refusal(Status.NOT_PERMITTED, f"{attribute.name} was set by the compiler")
        return range(1 << 31)
    raise Refusal(Status.INVALID_VALUE, f"{attribute.name} cannot be set")


def _checked(call: Call, kernel: Kernel, device: Device, attribute: int, value: int) -> FunctionAttribute:
    key = _attribute(call, attribute)
    allowed = _settable(kernel, key, device)
    if value not in allowed:
        raise Refusal(
            Status.INVALID_VALUE,
            f"{key.name} is {value}, from {allowed.start} to {allowed.stop - 1} is allowed",
        )
    call.state.trace.add(AttributeSet(kernel.info.name, device.ordinal, key, value))
    return key


def _set_attribute(call: Call, attribute: int, value: int, handle: int | None, ordinal: int) -> None:
    kernel = call.state.get(Kernel, handle)
    device = call.state.device(ordinal)
    kernel.library.check_runs_on(device)
    kernel.attributes[device.ordinal, _checked(call, kernel, device, attribute, value)] = value


def _set_function_attribute(call: Call, handle: int | None, attribute: int, value: int) -> None:
    kernel, device, function = _function(call, handle)
    key = _checked(call, kernel, device, attribute, value)
    if function is None:
        kernel.attributes[device.ordinal, key] = value
    else:
        function.attributes[key] = value


def _fixed(kernel: Kernel, device: Device) -> Mapping[FunctionAttribute, int]:
    """Return the attributes that the image decides."""
    library, cluster = kernel.library, kernel.info.cluster
    major, minor = device.compute_capability
    fixed = {
        FunctionAttribute.MAX_THREADS_PER_BLOCK: largest_block(kernel, device),
        FunctionAttribute.SHARED_SIZE_BYTES: kernel.info.static_smem_bytes,
        FunctionAttribute.LOCAL_SIZE_BYTES: kernel.info.local_bytes or 0,
        FunctionAttribute.NUM_REGS: kernel.info.registers or 0,
        # PTX is assembled for the device; a cubin is taken to come from PTX for its own architecture.
        FunctionAttribute.BINARY_VERSION: 10 * major + minor
        if library.target
        else arch_number(library.info.arch),
        FunctionAttribute.PTX_VERSION: arch_number(library.target or library.info.arch),
    }
    if cluster is not None:
        fixed |= {FunctionAttribute.CLUSTER_SIZE_MUST_BE_SET: 1}
        fixed |= dict(zip(_REQUIRED_CLUSTER, cluster, strict=True))
    return fixed


def _get_attribute(call: Call, result: int | None, attribute: int, handle: int | None, ordinal: int) -> None:
    kernel = call.state.get(Kernel, handle)
    device = call.state.device(ordinal)
    kernel.library.check_runs_on(device)
    key = _attribute(call, attribute)
    # the documentation: what cuKernelSetAttribute set, whatever cuFuncSetAttribute set
    held = kernel.attributes.get((device.ordinal, key))
    initial = kernel.initial(device, key) if held is None else held
    put(ctypes.c_int32, result, _fixed(kernel, device).get(key, initial), "pi")


def _get_function_attribute(call: Call, result: int | None, attribute: int, handle: int | None) -> None:
    kernel, device, _ = _function(call, handle)
    key = _attribute(call, attribute)
    put(ctypes.c_int32, result, _fixed(kernel, device).get(key, kernel.attribute(device, key)), "pi")


def _put_parameter(kernel: Kernel, index: int, offset: int | None, size: int | None) -> None:
    if index >= len(kernel.info.parameters):
        raise Refusal(
            Status.INVALID_VALUE,
            f"parameter {index} of {len(kernel.info.parameters)} in {quoted(kernel.info.name)}",
        )
    parameter = kernel.info.parameters[index]
    put(ctypes.c_size_t, offset, parameter.offset, "paramOffset")
    if size is not None:
        put(ctypes.c_size_t, size, parameter.size, "paramSize")


def _param_info(call: Call, handle: int | None, index: int, offset: int | None, size: int | None) -> None:
    kernel = call.state.get(Kernel, handle)
    call.state.current()  # measured on an H200: without a context it is refused
    _put_parameter(kernel, index, offset, size)


def _function_param_info(
    call: Call, handle: int | None, index: int, offset: int | None, size: int | None
) -> None:
    _put_parameter(_function(call, handle)[0], index, offset, size)


def _kernel_name(call: Call, result: int | None, handle: int | None) -> None:
    put(ctypes.c_void_p, result, call.state.get(Kernel, handle).c_name(), "name")


def _function_name(call: Call, result: int | None, handle: int | None) -> None:
    put(ctypes.c_void_p, result, _function(call, handle)[0].c_name(), "name")


def _kernel_library(call: Call, result: int | None, handle: int | None) -> None:
    put(ctypes.c_void_p, result, call.state.get(Kernel, handle).library.handle, "pLib")


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "cuKernelGetFunction": _get_function,
        "cuKernelGetLibrary": _kernel_library,
        "cuKernelGetName": _kernel_name,
        "cuKernelSetAttribute": _set_attribute,
        "cuKernelGetAttribute": _get_attribute,
        "cuKernelGetParamInfo": _param_info,
        "cuFuncGetName": _function_name,
        "cuFuncSetAttribute": _set_function_attribute,
        "cuFuncGetAttribute": _get_function_attribute,
        "cuFuncGetParamInfo": _function_param_info,
    }
)
"""The handlers, by exported symbol."""
