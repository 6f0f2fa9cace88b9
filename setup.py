"""Compile the memory core, where Cython and a C compiler are there; without them everything is installed all the same.

Each unit below is one C file, made of copies of the files that it names: so the compiler sees the whole way of a job,
and calls between small files cost next to nothing. The source stays importable beside it, and ``headrace/chosen.py``
picks. A ``.pxd`` beside a file holds its C types, and what is written in C. Where there is a ``.pyx`` beside it, that
is compiled in its stead: its syntax is Python's all the same.
"""

import re
from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup

SOURCE, BUILD = Path("src/headrace"), Path("build/core/headrace/_compiled")
LINES = ("_fifo", "_table", "_heaps", "_delayed", "_ready", "_leases")
UNITS = {
    # Jobs need ids, and all the rest needs jobs: so these are two, and what both need is in both.
    "ids": ("native", "ids"),
    "core": (
        *("clock", "job", "settings", "native", "timeline", "layout", "record", "admit"),
        *(f"memory.{name}" for name in (*LINES, "_core", "store", "direct")),
    ),
}
TYPES_ONLY: dict[str, list[str]] = {"clock": [], "job": ["Job"], "settings": ["Settings"]}
"""Not compiled: only told of what type some things are, and how objects of these classes lie in memory."""
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,
    "binding": False,
    "boundscheck": False,
    "freethreading_compatible": True,
}


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    found = []
    used: set[Path] = set()
    for unit, names in UNITS.items():
        types = [path(name, ".pxd") for name in names]
        sources = [source(name) for name in names if name not in TYPES_ONLY]
        write(BUILD / f"{unit}.pxd", "".join(text(each, names) for each in types))
        file = write(BUILD / f"{unit}.py", "".join(text(each, names) for each in sources))
        found.append(Extension(f"headrace._compiled.{unit}", [str(file)]))
        used.update(types, sources)
    write(BUILD / "__init__.py", "")
    # So that a test can tell whether they are older than their source.
    made_of = [f"{sha256(each.read_bytes()).hexdigest()} {each.relative_to(SOURCE).as_posix()}\n" for each in used]
    write(SOURCE / "_compiled/made_of.txt", "".join(sorted(made_of)))
    made = cythonize(found, include_path=["build/core"], compiler_directives=DIRECTIVES, quiet=True)
    for extension in made:
        extension.optional = True  # said to the extensions that cythonize was given, it would be lost
    return list(made)


def path(name: str, kind: str) -> Path:
    return (SOURCE / name.replace(".", "/")).with_suffix(kind)


def source(name: str) -> Path:
    written_for_it = path(name, ".pyx")
    return written_for_it if written_for_it.exists() else path(name, ".py")


def text(file: Path, unit: tuple[str, ...]) -> str:
    """As it stands, but that it imports nothing of its own unit, and the rest by whole names."""

    def turned(found: re.Match[str]) -> str:
        name, verb, names = absolute(file, found[1]), found[2], found[3].split(", ")
        near = name.removeprefix("headrace.")
        own = (TYPES_ONLY.get(near, names)) if near in unit else []
        left = [each for each in names if each not in own]
        return f"from {name} {verb} {', '.join(left)}" if left else ""

    whole = re.sub(r"(?m)^from (\.\S*) (c?import) (.*)$", turned, file.read_text())
    # What stands above a class in its types is heeded only where it stands above the class itself.
    types = file.with_suffix(".pxd").read_text()
    for above, name in re.findall(r"(?m)^(@cython\.freelist.*\n)cdef class (\w+)", types):
        whole = re.sub(rf"(?m)^class {name}\b", f"{above}@cython.cclass\nclass {name}", whole)
    return whole.replace("from __future__ import annotations\n", "")


def absolute(file: Path, module: str) -> str:
    dots = len(module) - len(module.lstrip("."))
    return ".".join(["headrace", *file.relative_to(SOURCE).parts[:-dots], module.lstrip(".")]).rstrip(".")


def write(file: Path, text: str) -> Path:
    """Untouched where it is the same, so that only what changed is compiled again."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
    return file


setup(ext_modules=extensions())
