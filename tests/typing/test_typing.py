"""mypy reports every wrong call in ``tasks.py`` and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TASKS = Path(__file__).with_name("tasks.py")
ROOT = TASKS.parents[2]


def mypy(file: Path, cache: Path) -> list[tuple[int, str]]:
    """(line, code) of every error."""
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", str(cache), str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(rf"{re.escape(file.name)}:(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    return [(int(line), code) for line, code in found]


def test_right_calls_pass_and_every_wrong_one_is_an_error_on_its_line(tmp_path: Path) -> None:
    source = TASKS.read_text()
    wrong = [
        (number, match[1])
        for number, line in enumerate(source.splitlines(), 1)
        if (match := re.search(r"# type: ignore\[([a-z-]+)\]", line))
    ]
    assert len(wrong) > 15
    bare = tmp_path / "bare_tasks.py"
    bare.write_text(re.sub(r"# type: ignore\[[a-z-]+\]", "#", source))
    assert mypy(bare, tmp_path / "cache") == wrong
    assert mypy(TASKS, tmp_path / "cache") == []
