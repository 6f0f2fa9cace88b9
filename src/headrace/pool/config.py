"""The pools of a worker as a TOML file says them: read and checked, nothing opened, nothing imported.

    [[pool]]
    app = "jobs:app"                       # or handler = "jobs:archive", and process = true to run it in processes
    queue = "mail"
    balance = { min = 2, max = 32, target_age = 2.0 }      # or workers = 4
    [pool.schedule]
    zone = "Europe/Paris"
    ranges = { "Mon-Fri 08:00-12:00" = { min = 4, max = 16 } }

Whatever is wrong raises one ConfigError, whose text names the file, the table, the key, the value and what is allowed.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .. import check
from ..errors import ConfigError
from .balance import Balance
from .hours import Hours
from .pool import Pool
from .schedule import Schedule

T = TypeVar("T", bound=msgspec.Struct)

_ARE_OBJECTS = {"queue", "handler", "listener"}
_POOL = [name for name in inspect.signature(Pool).parameters if name not in _ARE_OBJECTS]
_KEYS = ("app", "handler", "queue", "lease", *_POOL)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One ``[[pool]]``."""

    where: str
    """The file and the table, for errors."""
    name: str
    """Its own, else the queue's; no two have the same."""
    app: str | None
    """``module:name`` of an App; else there is a handler."""
    handler: str | None
    """``module:name`` of a handler; else there is an app."""
    queue: str
    lease: float | None
    """Seconds; None: as the app or the queue says."""
    settings: dict[str, Any]
    """For ``Pool``, by name."""

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Within it, what is refused is refused with the place of the mistake."""
        with _blamed(self.where):
            yield


def read_plans(path: str | PathLike[str]) -> list[Plan]:
    """The pools that a file asks for, in its order."""
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # no UTF-8, or no TOML
        raise ConfigError(f"{path}: is not TOML: {error}") from None
    return plans(content, str(path))


def plans(content: Mapping[str, Any], where: str) -> list[Plan]:
    """The same from what a TOML file holds."""
    _known(content, ("pool",), where)
    tables = content.get("pool")
    if not isinstance(tables, list) or not tables:
        raise ConfigError(f"{where}: pool: {_shown(tables)} is no list of pools; write at least one [[pool]]")
    made = [_plan(table, f"{where}: [[pool]] {number}") for number, table in enumerate(tables, 1)]
    seen: dict[str, Plan] = {}
    for plan in made:
        if (first := seen.setdefault(plan.name, plan)) is not plan:
            raise ConfigError(f"{plan.where}: name: {plan.name!r} is taken by {first.where}; give it another name")
    return made


def _plan(table: Any, where: str) -> Plan:
    _table(table, where)
    _known(table, _KEYS, where)
    for key in ("app", "handler", "name"):
        if key in table and (not isinstance(table[key], str) or not table[key]):
            raise ConfigError(f"{where}: {key}: {_shown(table[key])} is not a text")
    if ("app" in table) == ("handler" in table):
        raise ConfigError(f"{where}: app: give either app or handler, as 'module:name'")
    if "app" in table and "process" in table:
        raise ConfigError(
            f"{where}: process: {_shown(table['process'])}: the tasks of an app say so: @app.task(process=…)"
        )
    queue, lease = table.get("queue", "default"), table.get("lease")
    with _blamed(where):
        check.identifier("queue", queue)
        if lease is not None:
            check.duration("lease", lease, zero=False)
        settings = {name: table[name] for name in _POOL if name in table}
        if "balance" in settings:
            settings["balance"] = _made(Balance, settings["balance"], "balance")
        if "schedule" in settings:
            settings["schedule"] = _schedule(settings["schedule"])
    return Plan(
        where=where,
        name=settings.get("name", queue),
        app=table.get("app"),
        handler=table.get("handler"),
        queue=queue,
        lease=lease,
        settings=settings,
    )


def _schedule(table: Any) -> Schedule:
    _table(table, "schedule")
    _known(table, ("ranges", "zone", "days", "ordered"), "schedule")
    ranges = table.get("ranges")
    _table(ranges, "schedule: ranges")
    with _blamed("schedule"):
        hours = {}
        for text, given in ranges.items():
            with _blamed(f"range {text!r}"):
                hours[text] = _made(Hours, given, "hours")
        return Schedule(hours, **{name: value for name, value in table.items() if name != "ranges"})


def _made(kind: type[T], table: Any, where: str) -> T:
    """The struct that a table describes."""
    _table(table, where)
    fields = msgspec.structs.fields(kind)
    _known(table, [field.name for field in fields], where)
    for field in fields:
        if field.required and field.name not in table:
            raise ConfigError(f"{where}: {field.name}: is missing; it has no default")
    return kind(**table)


def _table(value: object, where: str) -> None:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: {_shown(value)} is not a table")


def _known(table: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    for key, value in table.items():
        if key not in keys:
            raise ConfigError(f"{where}: {key} = {_shown(value)}: no such key; the keys are {', '.join(keys)}")


def _shown(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


@contextmanager
def _blamed(where: str) -> Iterator[None]:
    """Put the place in front of what is refused."""
    try:
        yield
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{where}: {error}") from error
