"""A program while it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypothesis import strategies as st

    from trunnion.model.capability import Capability
    from trunnion.model.code import DeviceCode
    from trunnion.model.expr import Symbol
    from trunnion.model.facts import DeviceFact
    from trunnion.model.module_variable import ModuleVariable
    from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam
    from trunnion.model.passed_memory import PassedMemory
    from trunnion.model.workspace import Workspace

__all__ = ["Draft"]


@dataclass
class Draft:
    """The parts of a program while it is drawn."""

    draw: st.DrawFn
    """Hypothesis's."""

    code: tuple[DeviceCode, ...]
    """The parts of the device code."""

    features: frozenset[Capability]
    """What the program shall require."""

    names: list[str] = field(default_factory=list)
    """Names not yet given away."""

    facts: list[DeviceFact] = field(default_factory=list)
    """Facts of the device."""

    extent_symbols: list[Symbol] = field(default_factory=list)
    """Symbols that extents bind."""

    free_symbols: list[Symbol] = field(default_factory=list)
    """Symbols that strides or scalars bind."""

    inputs: list[TensorParam] = field(default_factory=list)
    """Input tensors."""

    mapped: list[PassedMemory] = field(default_factory=list)
    """The tensors and workspaces that tiled maps can read."""

    images: list[PassedMemory] = field(default_factory=list)
    """The tensors and workspaces that im2col maps can read."""

    scalars: list[ScalarParam] = field(default_factory=list)
    """Scalars."""

    pointers: list[PointerParam] = field(default_factory=list)
    """Addresses."""

    structs: list[StructParam] = field(default_factory=list)
    """Structs."""

    outputs: list[TensorParam] = field(default_factory=list)
    """Outputs."""

    workspaces: list[Workspace] = field(default_factory=list)
    """Workspaces."""

    variables: list[ModuleVariable] = field(default_factory=list)
    """Module variables."""

    copied: list[tuple[ModuleVariable, TensorParam]] = field(default_factory=list)
    """Which of them are copied to, and from which of the inputs."""

    def name(self) -> str:
        """Return a name that nothing else has."""
        return self.names.pop()

    @property
    def symbols(self) -> list[Symbol]:
        """Every symbol."""
        return [*self.extent_symbols, *self.free_symbols]

    @property
    def numbers(self) -> list[Symbol | DeviceFact]:
        """What is known once the device is: every symbol, and facts."""
        return [*self.symbols, *self.facts]

    @property
    def memories(self) -> list[PassedMemory]:
        """Everything that a launch can be given by pointer."""
        return [*self.inputs, *self.outputs, *self.workspaces]

    def wants(self, capability: Capability) -> bool:
        """Whether the program shall require a capability."""
        return capability in self.features
