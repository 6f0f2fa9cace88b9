"""What is counted in a file. Pure: the workers and the plain walk that checks them call the same function."""

from __future__ import annotations

import ast
import sysconfig
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

COUNTED = ("bytes", "lines", "functions", "classes", "imports", "calls")


def count(source: bytes) -> dict[str, int]:
    """The figures of one file. Raises SyntaxError, ValueError or RecursionError for what is no Python."""
    encoding, _ = tokenize.detect_encoding(BytesIO(source).readline)
    text = source.decode(encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the code that is parsed: not ours to mend
        tree = ast.parse(text)
    kinds = Counter(type(node) for node in ast.walk(tree))
    return {
        "bytes": len(source),
        "lines": text.count("\n"),
        "functions": kinds[ast.FunctionDef] + kinds[ast.AsyncFunctionDef],
        "classes": kinds[ast.ClassDef],
        "imports": kinds[ast.Import] + kinds[ast.ImportFrom],
        "calls": kinds[ast.Call],
    }


def python_files() -> Iterator[Path]:
    """Every .py file of the standard library and of site-packages, each once."""
    folders = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")}
    seen: set[Path] = set()
    for folder in sorted(folders):
        for path in sorted(folder.rglob("*.py")):
            if path.is_file() and path not in seen:
                seen.add(path)
                yield path
