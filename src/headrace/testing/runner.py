"""Runs a subject of the suite without pytest: to see whether a broken queue is rejected, in a moment."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from .bench import Maker, bench
from .contract import SUBJECTS


def cases(subject: type) -> Iterator[tuple[str, Callable[..., None], dict[str, Any]]]:
    """Each test of a subject, with each set of its parameters."""
    made = subject()
    for name in dir(subject):
        if not name.startswith("test_"):
            continue
        test = getattr(made, name)
        tables = [_rows(*mark.args) for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
        for rows in itertools.product(*tables):
            yield name, test, {key: value for row in rows for key, value in row.items()}


def _rows(names: str | tuple[str, ...], values: Any) -> list[dict[str, Any]]:
    if isinstance(names, str):
        return [{names: value} for value in values]
    return [dict(zip(names, row, strict=True)) for row in values]


def first_failure(maker: Maker, subject: str, *, face: str = "sync", limit: float = 10.0) -> str | None:
    """The first test of the subject that a queue of ``maker`` fails, with what was said; None: it passes them all."""
    (chosen,) = [one for one in SUBJECTS if one.__name__ == subject]
    for name, test, given in cases(chosen):
        try:
            with bench(maker, face, limit) as workbench:
                test(workbench, **given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # pytest's own outcomes are no Exceptions
            return f"{name}{given or ''}: {type(error).__name__}: {error}"
    return None
