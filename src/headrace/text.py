"""Errors as text that any store can keep and any page can show."""

from __future__ import annotations

LONGEST = 8192
"""Characters of an error that are kept."""


def describe(error: BaseException | str | None) -> str | None:
    """``TypeName: message``, safe whatever the exception does: its ``__str__`` may raise, be huge, or hold
    NUL and lone surrogates, which no database takes. None stays None."""
    if error is None:
        return None
    return storable(error if isinstance(error, str) else f"{type(error).__name__}: {_message(error)}")


def storable(text: str) -> str:
    """``text`` with NUL and lone surrogates escaped, cut at ``LONGEST`` characters and flagged if cut."""
    total = len(text)
    text = text[:LONGEST].replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
    if total > LONGEST or len(text) > LONGEST:
        return f"{text[:LONGEST]}… (cut: {total:,} characters in all)"
    return text


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as second:  # a broken __str__ may raise anything; a job must still fail in peace
        return f"(its message cannot be shown: {type(second).__name__})"
