"""The page of scenarios keeps its word: every failure has its row, and every test it names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| (F\d\d) \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs/scenarios.md").read_text(), re.MULTILINE)
SOURCES = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("src/headrace/testing/suite/*.py")]


def test_every_scenario_has_one_row_that_names_tests_or_says_with_what_it_is_due() -> None:
    assert [id for id, _, _ in ROWS] == [f"F{number:02}" for number in range(1, 45)]
    for id, _, tested in ROWS:
        assert "`test_" in tested or re.search(r"\b[Dd]ue with ", tested), id


def test_every_test_that_is_named_exists() -> None:
    there = {name for source in SOURCES for name in re.findall(r"def (test_\w+)\(", source.read_text())}
    named = {name for _, _, tested in ROWS for name in re.findall(r"`(\w+)`", tested) if name.startswith("test_")}
    assert named - there == set()
