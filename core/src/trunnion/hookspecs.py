"""The two hooks through which a distribution announces what it brings.

A plugin is a module (or any object) behind an entry point of the group ``"trunnion"``. It marks its functions
with `hookimpl`; the entry point's name is the name of what they may announce::

    # pyproject.toml                       # acme_backend/hooks.py
    [project.entry-points.trunnion]        from trunnion.hookspecs import hookimpl
    acme = "acme_backend.hooks"
                                           @hookimpl
                                           def trunnion_register_backends():
                                               return [BackendSpec(name="acme", ...)]

Only the declarations are here; who calls them, and what happens to a plugin that fails, is in
`trunnion.registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.contract.spec import BackendSpec, CompilerSpec

__all__ = ["PROJECT", "hookimpl", "hookspec", "trunnion_register_backends", "trunnion_register_compilers"]

PROJECT = "trunnion"
"""The name of the hooks' project, and of the entry-point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
"""Marks the declarations below."""

hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's implementation of one of the hooks."""


@hookspec
def trunnion_register_backends() -> Iterable[BackendSpec]:
    """Announce the backend of this plugin.

    Called once for each registry, when the plugin is first asked for. Import nothing heavy: a spec's loaders
    are called only when the backend is used.

    Returns
    -------
    Iterable[BackendSpec]
        Specs whose name is the entry point's name: one, or none.
    """
    raise NotImplementedError


@hookspec
def trunnion_register_compilers() -> Iterable[CompilerSpec]:
    """Announce the device compiler of this plugin.

    Called once for each registry, when the plugin is first asked for. Import nothing heavy: a spec's loader
    is called only when the compiler is used.

    Returns
    -------
    Iterable[CompilerSpec]
        Specs whose name is the entry point's name: one, or none.
    """
    raise NotImplementedError
