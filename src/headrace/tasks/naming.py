"""What a task is called where its name is not given. Jobs wait under that name, so every process must agree on it."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import ConfigError


def default_name(function: object) -> str:
    """``module:qualname``; ConfigError for what has none and must be given one."""
    qualname = getattr(function, "__qualname__", None)
    if qualname is None:
        raise ConfigError(f"name: a {type(function).__name__} has no name of its own; say @app.task(name=…)")
    return f"{_module(getattr(function, '__module__', None) or '__main__')}:{qualname}"


def _module(name: str) -> str:
    """The name by which a worker imports the module, also where it is the script that runs now."""
    if name != "__main__":
        return name
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return str(spec.name)  # python -m package.module
    stem = Path(getattr(main, "__file__", None) or "").stem
    # A script's own folder is the first place that imports look at, so its stem is its name.
    return stem if stem.isidentifier() else name
