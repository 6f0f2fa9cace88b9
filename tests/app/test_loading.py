"""``module:app`` is loaded, or the person who typed it is told in one line what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.app import App
from headrace.errors import ConfigError
from headrace.loading import load_app

JOBS = """
from headrace.app import App
app = App("memory://")
other = App("memory://")
class space:
    inner = app
number = 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with modules that no other test sees."""
    known = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    (tmp_path / "pkg_x").mkdir()
    (tmp_path / "pkg_x" / "jobs.py").write_text(JOBS)
    (tmp_path / "jobs_x.py").write_text(JOBS)
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.endswith("_x") or name.startswith("pkg_x"):
            del sys.modules[name]


@pytest.mark.parametrize("path", ["jobs_x:app", "pkg_x.jobs:app", "jobs_x:space.inner"])
def test_app_is_found_from_the_current_folder(folder: Path, path: str) -> None:
    assert isinstance(load_app(path), App)
    assert sys.path[0] == str(folder)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("jobs_x", "'jobs_x' does not name an app; write module:name, such as shop.jobs:app"),
        (":app", "does not name an app"),
        ("jobs_x:", "does not name an app"),
        ("pkg_x/jobs.py:app", "'pkg_x/jobs.py' is a file; name it as import does: pkg_x.jobs:app"),
        ("nowhere_x:app", "no module 'nowhere_x' to import 'nowhere_x' from; looked in "),
        ("pkg_x.nowhere:app", "no module 'pkg_x.nowhere'"),
        ("nowhere_x.jobs:app", "no module 'nowhere_x' to import 'nowhere_x.jobs' from"),
        ("jobs_x:ap", "module 'jobs_x' has no 'ap'; there is jobs_x:app and jobs_x:other"),
        ("jobs_x:space.ap", "module 'jobs_x' has no 'space.ap'"),
        ("jobs_x:number", "'jobs_x:number' is of type int, not a headrace.App; there is jobs_x:app and"),
        ("json:loads", "not a headrace.App; there is no App in json"),
    ],
)
def test_wrong_path_is_told_in_one_line(folder: Path, path: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_app(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\nimport missing_library", "importing 'bad_x' failed: no module 'missing_library', wanted by {file}:2"),
        ("\n1 / 0", "importing 'bad_x' failed: ZeroDivisionError: division by zero, at {file}:2"),
        ("def f(:", "importing 'bad_x' failed: SyntaxError"),
        (
            "from headrace.app import App\n\nApp(url=5)",
            "importing 'bad_x' failed: ConfigError: url: int is not a URL such as sqlite:///headrace.db, at {file}:3",
        ),
        ("from headrace.app import App\n@App().task(\n    timeout=-1,\n)\ndef f() -> None: ...", "timeout: -1 "),
        ("from headrace.app import App\n@App().task(timeout=-1)\ndef f() -> None: ...", "at {file}:2"),
        ("from headrace.app import App\n@App().task\ndef f():\n    yield", "at {file}:2"),
        ("import sys\nsys.exit(3)", "importing 'bad_x' ended the program (sys.exit), at {file}:2"),
    ],
)
def test_module_that_fails_is_told_with_the_place(folder: Path, source: str, said: str) -> None:
    file = folder / "bad_x.py"
    file.write_text(source)
    with pytest.raises(ConfigError) as caught:
        load_app("bad_x:app")
    assert said.format(file=file) in str(caught.value)
