"""Launch plans: what the host does at a call, and how a program becomes one."""

from __future__ import annotations

from trunnion.model.plan.launch_plan import (
    PLAN_VERSION,
    AddressArgument,
    ExprArgument,
    KernelParameter,
    KernelSignature,
    LaunchPlan,
    MapArgument,
    PlannedArgument,
    PlannedAttribute,
    PlannedLaunch,
    PlannedWindow,
    PointerArgument,
    ScalarArgument,
    StructArgument,
    ViewArgument,
)
from trunnion.model.plan.slots import (
    Binding,
    MemoryKind,
    MemoryRef,
    PointerSlot,
    ScalarSlot,
    Source,
    StructSlot,
    TensorSlot,
    WorkspaceSlot,
)
from trunnion.model.plan.steps import ConditionCheck, Encode, ValueCheck

__all__ = [
    "PLAN_VERSION",
    "AddressArgument",
    "Binding",
    "ConditionCheck",
    "Encode",
    "ExprArgument",
    "KernelParameter",
    "KernelSignature",
    "LaunchPlan",
    "MapArgument",
    "MemoryKind",
    "MemoryRef",
    "PlannedArgument",
    "PlannedAttribute",
    "PlannedLaunch",
    "PlannedWindow",
    "PointerArgument",
    "PointerSlot",
    "ScalarArgument",
    "ScalarSlot",
    "Source",
    "StructArgument",
    "StructSlot",
    "TensorSlot",
    "ValueCheck",
    "ViewArgument",
    "WorkspaceSlot",
]
