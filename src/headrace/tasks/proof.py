"""Does a value survive JSON? Two walks that name the first place where it does not.

``flaw`` looks for what JSON cannot hold: NaN, infinities, NUL, lone surrogates, a container inside itself.
``loss`` compares what went in with what came back: equal, or the same but for a tuple that became a list.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

Parts = Iterator[tuple[str, Any]]


def flaw(value: object, place: str, above: frozenset[int] = frozenset()) -> str | None:
    """``place: reason`` of the first thing that JSON cannot hold; None when there is none."""
    if isinstance(value, str):
        reason = _text_flaw(value)
    elif isinstance(value, float):
        reason = None if math.isfinite(value) else f"{value} is no number that JSON knows"
    elif isinstance(value, Decimal):
        reason = None if value.is_finite() else f"{value} is no number that JSON knows"
    else:
        reason = "contains itself" if id(value) in above else None
    if reason:
        return f"{place}: {reason}"
    if isinstance(value, dict):
        for key in value:
            if found := flaw(key, f"a key in {place}"):
                return found
    parts = _parts(value)
    if parts is None:
        return None
    inside = above | {id(value)}
    return next((found for step, part in parts if (found := flaw(part, place + step, inside))), None)


def loss(before: object, after: object, place: str) -> str | None:
    """``place: reason`` of the first thing that came back as something else; None when all is there."""
    if _equal(before, after):
        return None
    if isinstance(before, datetime) and isinstance(after, datetime):
        # In the hour that a clock change repeats, two zones never compare equal; the moment decides.
        if before.tzinfo and after.tzinfo and before.timestamp() == after.timestamp():
            return None
    elif isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        if len(before) == len(after):
            return _first_loss(_numbered(before), _numbered(after), place)
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                return f"{place}: a key of type {type(key).__name__} comes back as text; annotate the argument"
        if len(before) == len(after):
            return _first_loss(_keyed(before), _keyed({key: after[key] for key in before}), place)
    elif type(before) is type(after):
        mine, theirs = _parts(before), _parts(after)
        if mine is not None and theirs is not None and not isinstance(before, (set, frozenset)):
            return _first_loss(mine, theirs, place)
    if type(before) is type(after):
        return f"{place}: comes back changed"
    return f"{place}: {type(before).__name__} comes back as {type(after).__name__}; annotate the argument with its type"


def _first_loss(mine: Parts, theirs: Parts, place: str) -> str | None:
    pairs = zip(mine, theirs, strict=False)
    found = (loss(before, after, place + step) for (step, before), (_, after) in pairs)
    return next((reason for reason in found if reason), None)


def _equal(before: object, after: object) -> bool:
    try:
        return bool(before == after)
    except RecursionError:
        raise
    except Exception:  # somebody's __eq__; the parts will tell
        return False


def _parts(value: Any) -> Parts | None:
    """What a value is made of, with the way to each part; None for what has none."""
    if isinstance(value, dict):
        return _keyed(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return _numbered(value)
    if isinstance(value, Enum):
        return iter([("", value.value)])
    if isinstance(value, msgspec.Struct):
        return _named(value, value.__struct_fields__)
    if dataclasses.is_dataclass(value):
        return _named(value, [field.name for field in dataclasses.fields(value)])
    if hasattr(type(value), "__pydantic_validator__"):
        return ((f".{name}", part) for name, part in dict(value).items())
    return None


def _keyed(value: dict[Any, Any]) -> Parts:
    return ((f".{key}" if str(key).isidentifier() else f"[{key!r}]", part) for key, part in value.items())


def _numbered(value: Any) -> Parts:
    return ((f"[{index}]", part) for index, part in enumerate(value))


def _named(value: object, names: Any) -> Parts:
    return ((f".{name}", getattr(value, name)) for name in names if hasattr(value, name))


def _text_flaw(text: str) -> str | None:
    if "\0" in text:
        return "holds NUL (\\x00), which not every store can keep"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return "holds a lone surrogate, which is not text"
    return None
