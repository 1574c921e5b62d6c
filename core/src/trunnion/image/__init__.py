"""Read device images with no driver, and write synthetic ones for tests."""

from trunnion.image.cubin import CubinInfo, KernelInfo, read_cubin
from trunnion.image.layout import pack_parameters, parameter_base
from trunnion.image.synthetic import SyntheticKernel, synthetic_cubin

__all__ = [
    "CubinInfo",
    "KernelInfo",
    "SyntheticKernel",
    "pack_parameters",
    "parameter_base",
    "read_cubin",
    "synthetic_cubin",
]
