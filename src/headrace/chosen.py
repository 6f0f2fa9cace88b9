"""Which copy of the memory core runs: the compiled one where it was built, else the source as it stands.

Both come from the same files. ``HEADRACE_CORE=interpreted`` asks for the source, and ``HEADRACE_CORE=compiled``
refuses to start without the other; nothing else in this package knows, or asks, which one it is.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

from .errors import ConfigError

INTERPRETED, COMPILED = "interpreted", "compiled"
HERE, THERE = "headrace", "headrace._compiled"


def wanted() -> str:
    """What ``HEADRACE_CORE`` says; empty: whatever there is."""
    core = os.environ.get("HEADRACE_CORE", "")
    if core not in ("", INTERPRETED, COMPILED):
        raise ConfigError(f"HEADRACE_CORE: {core!r} is neither {INTERPRETED} nor {COMPILED}")
    return core


def module(name: str, core: str | None = None) -> ModuleType:
    """The module of that name in ``core``; not named, in the one that was asked for. ConfigError when that is the
    compiled one and it is not there."""
    core = wanted() if core is None else core
    if core != INTERPRETED:
        try:
            return import_module(f"{THERE}.{'ids' if name == 'ids' else 'core'}")
        except ImportError as error:
            if core == COMPILED:
                raise ConfigError(
                    f"HEADRACE_CORE: the compiled core cannot be used ({error}): install headrace anew where there "
                    f"is a C compiler, or ask for {INTERPRETED}"
                ) from error
    return import_module(f"{HERE}.{name}")


def built() -> list[str]:
    """The cores that can be had here."""
    try:
        module("memory.direct", COMPILED)
    except ConfigError:
        return [INTERPRETED]
    return [INTERPRETED, COMPILED]


def running() -> str:
    """``compiled`` or ``interpreted``: what queues in memory are made of here."""
    return COMPILED if module("memory.direct").__name__.startswith(THERE) else INTERPRETED
