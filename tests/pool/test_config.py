"""The pools of a TOML file: what it may say, and what each mistake is answered with."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from headrace import ConfigError
from headrace.pool import Balance, Hours, Schedule
from headrace.pool.config import Plan, plans, read_plans


def read(text: str) -> list[Plan]:
    return plans(tomllib.loads(text), "w.toml")


def test_a_file_names_its_pools_in_order() -> None:
    mail, reports = read(
        """
        [[pool]]
        app = "jobs:app"
        queue = "mail"
        workers = 4
        timeout = 30
        drain = 10.5

        [[pool]]
        handler = "jobs:report"
        process = true
        queue = "reports"
        lease = 60
        balance = { min = 2, max = 32, target_age = 2.0 }
        schedule = { zone = "Europe/Paris", days = "Mon-Fri", ranges = { "08:00-12:00" = { min = 4, max = 16 } } }
        """
    )
    assert (mail.app, mail.handler, mail.queue, mail.name, mail.lease) == ("jobs:app", None, "mail", "mail", None)
    assert mail.settings == {"workers": 4, "timeout": 30, "drain": 10.5}
    assert (reports.app, reports.handler, reports.lease) == (None, "jobs:report", 60)
    assert reports.settings["balance"] == Balance(min=2, max=32, target_age=2.0)
    expected = Schedule({"08:00-12:00": Hours(min=4, max=16)}, zone="Europe/Paris", days="Mon-Fri")
    assert reports.settings["schedule"] == expected
    assert reports.settings["process"] is True


def test_a_pool_goes_by_its_queue_unless_it_has_a_name() -> None:
    first, second = read('[[pool]]\napp = "a:b"\n[[pool]]\napp = "a:b"\nname = "second"')
    assert (first.name, second.name) == ("default", "second")
    assert "name" not in first.settings


POOL = '[[pool]]\napp = "a:b"\n'
WRONG: list[tuple[str, list[str]]] = [
    ("", ["pool: nothing is no list of pools", "[[pool]]"]),
    ("pool = 3", ["pool: 3 is no list of pools"]),
    ("[pool]\nworkers = 3", ["is no list of pools", "[[pool]]"]),
    ("pool = [3]", ["[[pool]] 1: 3 is not a table"]),
    (f"workers = 3\n{POOL}", ["workers = 3: no such key; the keys are pool"]),
    (f"{POOL}worker = 3", ["[[pool]] 1: worker = 3: no such key; the keys are app,", "workers"]),
    ("[[pool]]\nworkers = 3", ["[[pool]] 1: app: give either app or handler"]),
    (f'{POOL}handler = "a:c"', ["[[pool]] 1: app: give either app or handler"]),
    (f"{POOL}process = true", ["[[pool]] 1: process: True", "tasks"]),
    ("[[pool]]\napp = 3", ["[[pool]] 1: app: 3 is not a text"]),
    (f'{POOL}name = ""', ["[[pool]] 1: name: '' is not a text"]),
    (f'{POOL}queue = "a b"', ["[[pool]] 1: queue: 'a b' is not a name"]),
    (f"{POOL}queue = 3", ["[[pool]] 1: queue: 3 is not a name"]),
    (f"{POOL}lease = nan", ["[[pool]] 1: lease: nan is not a number of seconds from"]),
    (f"{POOL}balance = 3", ["[[pool]] 1: balance: 3 is not a table"]),
    (f"{POOL}balance = {{ max = 3 }}", ["[[pool]] 1: balance: min: is missing"]),
    (f"{POOL}balance = {{ min = 4, max = 3 }}", ["[[pool]] 1: balance: min: 4 is more than max, 3"]),
    (f"{POOL}balance = {{ min = 1, max = '3' }}", ["[[pool]] 1: balance: max: '3' is not a whole number from 1"]),
    (f"{POOL}balance = {{ min = 1, max = 3, goal = 2 }}", ["[[pool]] 1: balance: goal = 2: no such key", "target_age"]),
    (f"{POOL}schedule = 3", ["[[pool]] 1: schedule: 3 is not a table"]),
    (f"{POOL}schedule = {{ zone = 'UTC' }}", ["[[pool]] 1: schedule: ranges: nothing is not a table"]),
    (f"{POOL}schedule = {{ ranges = {{}} }}", ["[[pool]] 1: schedule:", "no ranges"]),
    (
        f"{POOL}schedule = {{ zone = 'Mars', ranges = {{ '08:00-12:00' = {{ min = 1, max = 2 }} }} }}",
        ["[[pool]] 1: schedule: zone: 'Mars'", "Europe/Paris"],
    ),
    (
        f"{POOL}schedule = {{ ranges = {{ '8-12' = {{ min = 1, max = 2 }} }} }}",
        ["[[pool]] 1: schedule: range '8-12'", "HH:MM"],
    ),
    (
        f"{POOL}schedule = {{ ranges = {{ '08:00-12:00' = {{ min = 1, max = 'x' }} }} }}",
        ["[[pool]] 1: schedule: range '08:00-12:00': hours: max: 'x' is not a whole number from 1"],
    ),
    (f"{POOL}schedule = {{ hours = 3, ranges = {{}} }}", ["[[pool]] 1: schedule: hours = 3: no such key"]),
    (f"{POOL}{POOL}", ["[[pool]] 2: name: 'default' is taken by w.toml: [[pool]] 1"]),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_mistake_is_answered_with_its_place_its_value_and_what_is_allowed(text: str, says: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    message = str(caught.value)
    assert message.startswith("w.toml: ")
    assert "\n" not in message
    assert [part for part in says if part not in message] == [], message


def test_a_huge_value_is_not_repeated_in_full() -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"{POOL}worker = '{'x' * 10_000}'")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "cannot be read"), (b"workers = = 3", "line 1"), (b"\xff\xfe", "is not TOML")],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: Any, says: str) -> None:
    path = tmp_path / "workers.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=says) as caught:
        read_plans(path)
    assert str(path) in str(caught.value)


def test_a_file_is_read_as_its_content(tmp_path: Path) -> None:
    path = tmp_path / "workers.toml"
    path.write_text(POOL)
    (plan,) = read_plans(path)
    assert plan.where == f"{path}: [[pool]] 1"


def test_what_only_the_pool_refuses_is_blamed_on_its_table() -> None:
    (plan,) = read(POOL)
    with pytest.raises(ConfigError, match=r"w\.toml: \[\[pool\]\] 1: drain: -1"), plan.blamed():
        raise ConfigError("drain: -1 is not a number")
