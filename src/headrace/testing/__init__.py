"""What proves a queue right: for Headrace's own tests and for anybody's backend."""

from .clock import VirtualClock

__all__ = ["VirtualClock"]
