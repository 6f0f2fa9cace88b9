"""Where handlers run: on the event loop, in threads, in processes."""

from __future__ import annotations

from .loop import LoopRunner
from .processes import ProcessRunner
from .threads import ThreadRunner

__all__ = ["LoopRunner", "ProcessRunner", "ThreadRunner"]
