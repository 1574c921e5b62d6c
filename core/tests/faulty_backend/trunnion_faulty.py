"""A backend like nvrtc's, but for mistakes: it drops priorities and checks of extents, crashes, and hangs if told to.

It is a distribution: whoever has this folder on the path has it installed.
"""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.contract.spec import Capability
from trunnion.hookspecs import hookimpl
from trunnion.model.plan import ValueCheck
from trunnion_nvrtc import hooks
from trunnion_nvrtc.backend.wrapper import NvrtcWrapper

if TYPE_CHECKING:
    from trunnion.contract.source import GeneratedSource
    from trunnion.contract.spec import BackendSpec
    from trunnion.model.plan import LaunchPlan


class FaultyWrapper(NvrtcWrapper):
    """Write a launcher with mistakes."""

    def emit(self, plan: LaunchPlan) -> GeneratedSource:
        """Return the text of a launcher; crash where there is a cluster and no priority."""
        if "TRUNNION_FAULTY_HANGS" in os.environ:
            threading.Event().wait()
        clusters = Capability.CLUSTER in plan.requires
        if clusters and Capability.PRIORITY not in plan.requires:
            os.write(2, b"about to crash\n")
            os.kill(os.getpid(), signal.SIGSEGV)
        dropped = (
            "" if clusters else "priority"
        )  # so that what has both is right, and a law of one shows one mistake
        launches = tuple(
            replace(one, attributes=tuple(x for x in one.attributes if x.field != dropped))
            for one in plan.launches
        )
        kept = (x for x in plan.checks if not (isinstance(x, ValueCheck) and x.source.kind == "shape"))
        return replace(super().emit(replace(plan, launches=launches, checks=tuple(kept))), plan=plan)


@hookimpl
def trunnion_register_backends() -> list[BackendSpec]:
    """Announce the backend."""
    (spec,) = hooks.trunnion_register_backends()
    declared = {"cuda": frozenset(Capability) - {Capability.GRAPH_CAPTURE, Capability.WORKSPACE}}
    faulty = replace(spec, name="faulty", targets=declared, auto_rank=-1, load_wrapper=lambda: FaultyWrapper)
    return [faulty]
