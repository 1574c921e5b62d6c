"""Read device images with no driver, and write synthetic ones for tests."""

from trunnion.image.cubin import CubinInfo, KernelInfo, VariableInfo, read_cubin
from trunnion.image.host_object import HostObject, read_host_object
from trunnion.image.layout import (
    ParameterLayout,
    pack_parameters,
    pack_parameters_for,
    parameter_base,
    place_parameters,
)
from trunnion.image.ptx import PtxInfo, read_ptx
from trunnion.image.synthetic import SyntheticKernel, SyntheticVariable, synthetic_cubin

__all__ = [
    "CubinInfo",
    "HostObject",
    "KernelInfo",
    "ParameterLayout",
    "PtxInfo",
    "SyntheticKernel",
    "SyntheticVariable",
    "VariableInfo",
    "pack_parameters",
    "pack_parameters_for",
    "parameter_base",
    "place_parameters",
    "read_cubin",
    "read_host_object",
    "read_ptx",
    "synthetic_cubin",
]
