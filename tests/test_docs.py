"""The pages are true: their examples run, their commands work, their links lead somewhere.

Each page has one folder of its own, and its blocks run there from top to bottom. A Python block runs as it
stands; one whose first line is a comment that names a file (``# jobs.py``) becomes that file, and so does a TOML
block. A ``console`` block holds commands after ``$``, each of which has to succeed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Document, Example, Region
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown.codeblock import CodeBlockParser

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SERVER = "postgresql://shop@db.example/shop"
"""Where it stands in a page, there is an empty database behind it when the examples run."""
FILE = re.compile(r"# (\w+\.(?:py|toml))$")
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)")


def _python(example: Example) -> str | None:
    if not _becomes_a_file(example):
        PythonEvaluator()(example)
    return None


def _toml(example: Example) -> str | None:
    _becomes_a_file(example)
    return None


def _becomes_a_file(example: Example) -> bool:
    named = FILE.match(example.parsed.partition("\n")[0])
    if named:
        Path(named[1]).write_text(example.parsed)
    return named is not None


def _console(example: Example) -> str | None:
    for command in re.findall(r"^\$ (.*)$", example.parsed, re.MULTILINE):
        ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
        if ended.returncode:
            return f"{command!r} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"
    return None


def _blocks(document: Document) -> Iterator[Region]:
    yield from CodeBlockParser("python", _python)(document)
    yield from CodeBlockParser("toml", _toml)(document)
    yield from CodeBlockParser("console", _console)(document)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty one, from which modules can be imported and in which ``headrace`` is a command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("HEADRACE_URL", raising=False)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if (tmp_path / f"{name}.py").exists():
            module = sys.modules.pop(name)
            if app := getattr(module, "app", None):
                app.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path, folder: Path, request: pytest.FixtureRequest) -> None:
    text = page.read_text()
    if SERVER in text:
        text = text.replace(SERVER, request.getfixturevalue("dsn"))
    shown = folder / page.name
    shown.write_text(text)
    for example in Document.parse(str(shown), _blocks).examples():
        example.evaluate()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        found = page.parent / target if target else page
        assert found.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in _anchors(found), f"{page.name}: {target}#{anchor}"


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    for page in ROOT.glob("docs/**/*.md"):
        assert f" {page.relative_to(ROOT / 'docs')}\n" in menu


def _anchors(page: Path) -> set[str]:
    """As the site makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
