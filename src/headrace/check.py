"""Checks of settings and arguments: each names the setting, the value and the allowed range."""

from __future__ import annotations

import re

from .clock import SECOND
from .errors import ConfigError

LONGEST = 100 * 365 * 86_400
"""The longest duration anyone may ask for: 100 years, in seconds."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``; True and 1.0 are none."""
    if type(value) is not int or not low <= value <= high:
        raise ConfigError(f"{name}: {value!r} is not a whole number from {low:,} to {high:,}")
    return value


def duration(name: str, value: object, *, zero: bool = True) -> int:
    """Seconds, as a number >= 0 (or > 0) and at most 100 years; returned in microseconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LONGEST:
        micros = round(value * SECOND)
        if zero or micros > 0:
            return micros
    least = "0" if zero else "0.000001"
    raise ConfigError(f"{name}: {value!r} is not a number of seconds from {least} to {LONGEST:,}")


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{name}: {value!r} is neither True nor False")
    return value


def identifier(name: str, value: object) -> str:
    """A name that may stand in SQL, in a metric and in a URL: letters, digits and _, at most 63."""
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value):
        raise ConfigError(
            f"{name}: {value!r} is not a name: use 1 to 63 ASCII letters, digits and _, not beginning with a digit"
        )
    return value
