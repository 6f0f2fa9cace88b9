"""From a caller's job to what a store keeps, and back, by the core that was chosen: for stores that are in none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .chosen import module

if TYPE_CHECKING:
    from .admit import admit
    from .record import columns_of, jobs_of
else:
    admit = module("admit").admit
    columns_of = module("record").columns_of
    jobs_of = module("record").jobs_of

__all__ = ["admit", "columns_of", "jobs_of"]
