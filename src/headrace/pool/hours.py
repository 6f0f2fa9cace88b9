"""How the hours of a schedule are written: ``"Mon-Fri 08:00-12:00"`` and ``"30s-1m"`` as microseconds.

    range     [DAYS ]LEFT-RIGHT      the left edge is inside, the right one outside
    edge      HH:MM, HH:MM:SS or HH:MM:SS.mmm; as the right edge 24:00 too; * is the beginning or the end of the day
    days      names (Mon or Monday) or the numbers of ISO 8601 (1 is Monday, 7 Sunday), single, as a list, as a span:
              Sat,Sun or Mon-Fri or Fri-Mon or 6,7

A right edge before the left one is on the next day; the range then belongs to the day on which it begins. Everything
here is a pure function, and refuses with a ConfigError that says what it found and what it wants.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeAlias

import msgspec

from .. import check
from ..clock import FAR, SECOND
from ..errors import ConfigError
from .balance import HIGHEST, check_limits, factor

DAY = 86_400 * SECOND

Days: TypeAlias = str | int | Collection[str | int]
Edges: TypeAlias = tuple[int, int]

_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TIME = re.compile(r"(\d+):(\d\d)(?::(\d\d)(?:\.(\d+))?)?", re.ASCII)
_PART = r"([0-9]{1,15})(ms|s|m|h|d)"
_ELAPSED = re.compile(f"(?:{_PART})+")
_UNITS = {"ms": 1000, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": DAY}


class Hours(msgspec.Struct, frozen=True, kw_only=True):
    """What holds during a range in place of the pool's Balance. A bad setting raises ConfigError."""

    min: int
    """So many workers at least; 0 lets the pool fall asleep."""
    max: int
    """So many at most; 1 or more."""
    wakeup_factor: float = 0.0
    """0 to 0.999999; 0: as the Balance says."""
    sleep_factor: float = 0.0
    """0 to 0.999999 and not above ``wakeup_factor``; 0: as the Balance says."""

    def __post_init__(self) -> None:
        wakeup = factor("hours: wakeup_factor", self.wakeup_factor)
        check_limits("hours: ", self.min, self.max, wakeup or HIGHEST, self.sleep_factor)

    def __str__(self) -> str:
        factors = {"wakeup": self.wakeup_factor, "sleep": self.sleep_factor}
        given = ", ".join(f"{name} {value:g}" for name, value in factors.items() if value)
        return f"{self.min}..{self.max}" + (f" ({given})" if given else "")


def split(text: object) -> tuple[str | None, str]:
    """``"Mon - Fri 08:00-12:00"`` -> ``("Mon-Fri", "08:00-12:00")``; no days: None."""
    if not isinstance(text, str):
        raise ConfigError(f"range: {text!r} is not a text such as '08:00-12:00'")
    match re.sub(r"\s*([-,])\s*", r"\1", text).split():
        case [hours]:
            return None, hours
        case [days, hours]:
            return days, hours
    raise ConfigError(f"range: {text!r} is not of the form '08:00-12:00' or 'Mon-Fri 08:00-12:00'")


def daily(text: str) -> Edges:
    """The edges of a range within a day, in microseconds since midnight: ``0 <= left < right <= left + 24 h``."""
    left, right = _sides(text, "08:00-12:00")
    begin = 0 if left == "*" else _time(left, text)
    end = DAY if right in ("*", "24:00", "24:00:00", "24:00:00.000") else _time(right, text)
    if begin == end:
        raise ConfigError(f"range: {text!r} ends where it begins; a whole day is '00:00-24:00' or '*-*'")
    return begin, end if begin < end else end + DAY


def elapsed(text: object) -> Edges:
    """The edges of a relative range such as ``"30s-1m30s"``, in microseconds since the start; ``*`` is the start, or
    for ever."""
    days, text = split(text)
    if days is not None:
        raise ConfigError(f"days: {days!r}: a relative range has none")
    left, right = _sides(text, "30s-1m")
    begin = 0 if left == "*" else _duration(left, text)
    end = FAR if right == "*" else _duration(right, text)
    if begin >= end:
        raise ConfigError(f"range: {text!r} does not end after it begins")
    return begin, end


def weekdays(given: Days | None) -> tuple[int, ...]:
    """The days meant, sorted, with Monday as 0; None means all of them."""
    if given is None:
        return tuple(range(7))
    if isinstance(given, (str, int)):
        given = [given]
    elif not isinstance(given, Collection):
        raise ConfigError(f"days: {given!r} is no day, nor a list of days, such as 'Mon-Fri'")
    found: set[int] = set()
    for each in given:
        for part in str(each).split(","):
            first, _, last = part.partition("-")
            begin = _weekday(first, each)
            length = (_weekday(last, each) - begin) % 7 if "-" in part else 0
            found |= {(begin + step) % 7 for step in range(length + 1)}
    if not found:
        raise ConfigError("days: there are none; leave them out for all, or write 'Mon-Fri'")
    return tuple(sorted(found))


def shown_days(days: tuple[int, ...]) -> str:
    """As one writes them: ``Mon-Fri``, ``Mon,Wed``; nothing where it is all of them."""
    if len(days) == 7:
        return ""
    runs: list[list[int]] = []
    for day in days:
        if runs and runs[-1][-1] == day - 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    if len(runs) > 1 and runs[0][0] == 0 and runs[-1][-1] == 6:  # over the end of the week: one run
        runs[0] = [*runs.pop(), *runs[0]]
    name = [day[:3] for day in _NAMES]
    return ",".join(name[run[0]] if len(run) == 1 else f"{name[run[0]]}-{name[run[-1]]}" for run in runs)


def shown_hours(edges: Edges) -> str:
    """``08:00-12:00``, to the second or millisecond where that is needed."""
    begin, end = edges
    return f"{_shown_time(begin)}-{_shown_time(end if end <= DAY else end - DAY)}"


def shown_elapsed(edges: Edges) -> str:
    begin, end = edges
    return f"{_shown_duration(begin)}-{'*' if end == FAR else _shown_duration(end)}"


def _sides(text: str, example: str) -> tuple[str, str]:
    sides = text.split("-")
    if len(sides) != 2 or not all(sides):
        raise ConfigError(f"range: {text!r} is not of the form '{example}'")
    return sides[0], sides[1]


def _time(text: str, whole: str) -> int:
    found = _TIME.fullmatch(text)
    if not found:
        raise ConfigError(f"range {whole!r}: {text!r} is not a time: write HH:MM, HH:MM:SS or HH:MM:SS.mmm")
    hour, minute, second, milli = (part or "0" for part in found.groups())
    if len(hour) > 2 or int(hour) > 23:
        raise ConfigError(f"range {whole!r}: hour: {hour} is outside 0 to 23 (24:00 may stand at the right)")
    if int(minute) > 59:
        raise ConfigError(f"range {whole!r}: minute: {minute} is outside 00 to 59")
    if int(second) > 59:
        raise ConfigError(f"range {whole!r}: second: {second} is outside 00 to 59")
    if found[4] and len(milli) != 3:  # .5 may mean 5 ms or 500 ms
        raise ConfigError(f"range {whole!r}: millisecond: {milli} is not three digits, 000 to 999")
    return ((int(hour) * 60 + int(minute)) * 60 + int(second)) * SECOND + int(milli) * 1000


def _duration(text: str, whole: str) -> int:
    if text == "0":
        return 0
    if not _ELAPSED.fullmatch(text):
        raise ConfigError(f"range {whole!r}: {text!r} is not a time: write it as 500ms, 30s, 1m30s, 2h or 1d")
    micros = sum(int(count) * _UNITS[unit] for count, unit in re.findall(_PART, text))
    if micros > check.LONGEST * SECOND:
        raise ConfigError(f"range {whole!r}: {text!r} is more than 100 years")
    return micros


def _weekday(text: str, whole: object) -> int:
    name = text.strip().lower()
    if name in ("1", "2", "3", "4", "5", "6", "7"):
        return int(name) - 1
    for number, known in enumerate(_NAMES):
        if name and name in (known.lower(), known[:3].lower()):
            return number
    raise ConfigError(f"days: {whole!r}: {text.strip()!r} is no day: write Mon to Sun, or 1 (Monday) to 7 (Sunday)")


def _shown_time(micros: int) -> str:
    millis = micros // 1000
    minutes, rest = divmod(millis, 60_000)
    text = f"{minutes // 60:02}:{minutes % 60:02}"
    if rest:
        text += f":{rest // 1000:02}" + (f".{rest % 1000:03}" if rest % 1000 else "")
    return text


def _shown_duration(micros: int) -> str:
    text = ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, micros = divmod(micros, _UNITS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0"
