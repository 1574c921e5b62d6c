"""trunnion: describe a GPU kernel program once; any installed backend compiles, binds and launches it.

Public names are resolved at their first use (PEP 562), so that importing the package costs next to nothing and
imports no torch, no driver, no toolchain and no plugin.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunnion import errors as errors
    from trunnion import examples as examples
    from trunnion import sim as sim
    from trunnion.artifacts.artifact import Artifact
    from trunnion.artifacts.store import ArtifactStore
    from trunnion.building import BuildJob, build_many
    from trunnion.bundles.bundle import Bundle
    from trunnion.bundles.provenance import Builder, provenance, write_provenance
    from trunnion.bundles.writing import write_bundle
    from trunnion.compilation import compile, load  # noqa: A004 - the verb of the field
    from trunnion.compiled import CompiledProgram
    from trunnion.contract.adapter import BoundLaunch, KernelAdapter, LoadedProgram
    from trunnion.contract.compiler import CompileRequest, DeviceCompiler, DeviceImage
    from trunnion.contract.source import GeneratedSource, SourceWrapper
    from trunnion.contract.spec import BackendSpec, Capability, CompilerSpec, Target
    from trunnion.errors import TrunnionError
    from trunnion.exporters.kernels_folder import export_kernels
    from trunnion.exporters.wheel import export_wheel
    from trunnion.hookspecs import hookimpl
    from trunnion.image.prebuilt import PrebuiltImage
    from trunnion.lock import Lock
    from trunnion.measuring import measured
    from trunnion.model.builder import ProgramBuilder
    from trunnion.model.code import DeviceCode
    from trunnion.model.constant import Constant, const
    from trunnion.model.dtypes import DType, dtype
    from trunnion.model.expr import (
        Expr,
        Symbol,
        ceildiv,
        eq,
        gcd,
        ge,
        gt,
        le,
        lt,
        maximum,
        minimum,
        ne,
        select,
        symbols,
    )
    from trunnion.model.facts import device, occupancy
    from trunnion.model.float_expr import FloatCast, FloatExpr, real, sqrt
    from trunnion.model.launch import KernelLaunch
    from trunnion.model.module_variable import CopyToVariable, ModuleVariable
    from trunnion.model.moved_address import MovedAddress
    from trunnion.model.params import Check, PointerParam, ScalarParam, Signature, StructParam, TensorParam
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram
    from trunnion.model.struct import array, struct
    from trunnion.model.tensormap import Im2colTensorMap, TiledTensorMap
    from trunnion.model.view import TensorView
    from trunnion.model.window import AccessPolicyWindow
    from trunnion.model.workspace import Workspace
    from trunnion.operators.jax_call import jax_call
    from trunnion.operators.library import export_torch_op
    from trunnion.operators.registration import torch_op
    from trunnion.operators.stub import torch_stub
    from trunnion.registry import Registry, default_registry
    from trunnion.selection import Choice, explain
    from trunnion.signed_files import Signed, sign, verify, verify_identity
    from trunnion.signing.identity import SigstoreIdentity
    from trunnion.signing.keys import PublicKey, SigningKey

__version__ = "0.1.0"

_HOMES = {
    "trunnion.artifacts.artifact": ("Artifact",),
    "trunnion.artifacts.store": ("ArtifactStore",),
    "trunnion.building": ("BuildJob", "build_many"),
    "trunnion.bundles.bundle": ("Bundle",),
    "trunnion.bundles.provenance": ("Builder", "provenance", "write_provenance"),
    "trunnion.bundles.writing": ("write_bundle",),
    "trunnion.compilation": ("compile", "load"),
    "trunnion.compiled": ("CompiledProgram",),
    "trunnion.contract.adapter": ("BoundLaunch", "KernelAdapter", "LoadedProgram"),
    "trunnion.contract.compiler": ("CompileRequest", "DeviceCompiler", "DeviceImage"),
    "trunnion.contract.source": ("GeneratedSource", "SourceWrapper"),
    "trunnion.contract.spec": ("BackendSpec", "Capability", "CompilerSpec", "Target"),
    "trunnion.errors": ("TrunnionError",),
    "trunnion.exporters.kernels_folder": ("export_kernels",),
    "trunnion.exporters.wheel": ("export_wheel",),
    "trunnion.hookspecs": ("hookimpl",),
    "trunnion.image.prebuilt": ("PrebuiltImage",),
    "trunnion.lock": ("Lock",),
    "trunnion.measuring": ("measured",),
    "trunnion.model.builder": ("ProgramBuilder",),
    "trunnion.model.dtypes": ("DType", "dtype"),
    "trunnion.model.expr": (
        "Expr",
        "Symbol",
        "ceildiv",
        "eq",
        "gcd",
        "ge",
        "gt",
        "le",
        "lt",
        "maximum",
        "minimum",
        "ne",
        "select",
        "symbols",
    ),
    "trunnion.model.facts": ("device", "occupancy"),
    "trunnion.model.launch": ("KernelLaunch",),
    "trunnion.model.module_variable": ("CopyToVariable", "ModuleVariable"),
    "trunnion.model.code": ("DeviceCode",),
    "trunnion.model.constant": ("Constant", "const"),
    "trunnion.model.float_expr": ("FloatCast", "FloatExpr", "real", "sqrt"),
    "trunnion.model.moved_address": ("MovedAddress",),
    "trunnion.model.params": (
        "Check",
        "PointerParam",
        "ScalarParam",
        "Signature",
        "StructParam",
        "TensorParam",
    ),
    "trunnion.model.plan": ("LaunchPlan",),
    "trunnion.model.program": ("KernelProgram",),
    "trunnion.model.struct": ("array", "struct"),
    "trunnion.model.tensormap": ("Im2colTensorMap", "TiledTensorMap"),
    "trunnion.model.view": ("TensorView",),
    "trunnion.model.window": ("AccessPolicyWindow",),
    "trunnion.model.workspace": ("Workspace",),
    "trunnion.operators.jax_call": ("jax_call",),
    "trunnion.operators.library": ("export_torch_op",),
    "trunnion.operators.registration": ("torch_op",),
    "trunnion.operators.stub": ("torch_stub",),
    "trunnion.registry": ("Registry", "default_registry"),
    "trunnion.selection": ("Choice", "explain"),
    "trunnion.signed_files": ("Signed", "sign", "verify", "verify_identity"),
    "trunnion.signing.identity": ("SigstoreIdentity",),
    "trunnion.signing.keys": ("PublicKey", "SigningKey"),
}
_PARTS = ("errors", "examples", "sim")  # modules that messages name; no star imports them
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AccessPolicyWindow",
    "Artifact",
    "ArtifactStore",
    "BackendSpec",
    "BoundLaunch",
    "BuildJob",
    "Builder",
    "Bundle",
    "Capability",
    "Check",
    "Choice",
    "CompileRequest",
    "CompiledProgram",
    "CompilerSpec",
    "Constant",
    "CopyToVariable",
    "DType",
    "DeviceCode",
    "DeviceCompiler",
    "DeviceImage",
    "Expr",
    "FloatCast",
    "FloatExpr",
    "GeneratedSource",
    "Im2colTensorMap",
    "KernelAdapter",
    "KernelLaunch",
    "KernelProgram",
    "LaunchPlan",
    "LoadedProgram",
    "Lock",
    "ModuleVariable",
    "MovedAddress",
    "PointerParam",
    "PrebuiltImage",
    "ProgramBuilder",
    "PublicKey",
    "Registry",
    "ScalarParam",
    "Signature",
    "Signed",
    "SigningKey",
    "SigstoreIdentity",
    "SourceWrapper",
    "StructParam",
    "Symbol",
    "Target",
    "TensorParam",
    "TensorView",
    "TiledTensorMap",
    "TrunnionError",
    "Workspace",
    "__version__",
    "array",
    "build_many",
    "ceildiv",
    "compile",
    "const",
    "default_registry",
    "device",
    "dtype",
    "eq",
    "explain",
    "export_kernels",
    "export_torch_op",
    "export_wheel",
    "gcd",
    "ge",
    "gt",
    "hookimpl",
    "jax_call",
    "le",
    "load",
    "lt",
    "maximum",
    "measured",
    "minimum",
    "ne",
    "occupancy",
    "provenance",
    "real",
    "select",
    "sign",
    "sqrt",
    "struct",
    "symbols",
    "torch_op",
    "torch_stub",
    "verify",
    "verify_identity",
    "write_bundle",
    "write_provenance",
]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")  # which sets the attribute
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_PARTS})
