"""Compile the memory core, where Cython and a C compiler are there; without them everything is installed all the same.

The files below are copied, and the copies compiled as ``headrace._compiled``: so the source stays importable beside
them, and ``headrace/chosen.py`` picks. A ``.pxd`` beside a file holds its C types; where there is a ``.pyx`` beside
it, that is compiled in its stead.
"""

import re
from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup

SOURCE, BUILD = Path("src/headrace"), Path("build/core/headrace/_compiled")
MODULES = (
    *("native", "timeline", "ids", "layout", "record", "admit"),
    *(
        f"memory.{name}"
        for name in ("_table", "_fifo", "_heaps", "_delayed", "_ready", "_leases", "_core", "store", "direct")
    ),
)
TYPES_ONLY = ("job", "settings")
"""Not copied: only how their objects lie in memory is told."""
copied: list[str] = []
"""What the copies were made of, so that a test can tell whether they are older than their source."""
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
    for package in ("", "memory/"):
        write(BUILD / package / "__init__.py", "")
    for name in TYPES_ONLY:
        copy(name, ".pxd")
    found = []
    for name in MODULES:
        path = SOURCE / name.replace(".", "/")
        copy(name, ".pxd")
        source = copy(name, ".pyx" if path.with_suffix(".pyx").exists() else ".py")
        found.append(Extension(f"headrace._compiled.{name}", [str(source)]))
    write(SOURCE / "_compiled/made_of.txt", "".join(sorted(copied)))
    made = cythonize(found, include_path=["build/core"], compiler_directives=DIRECTIVES, quiet=True)
    for extension in made:
        extension.optional = True  # said to the extensions that cythonize was given, it would be lost
    return list(made)


def copy(name: str, kind: str) -> Path:
    """With absolute imports: of other copies where there are some, of what is not copied elsewhere."""
    path = (SOURCE / name.replace(".", "/")).with_suffix(kind)
    copied.append(f"{sha256(path.read_bytes()).hexdigest()} {path.relative_to(SOURCE).as_posix()}\n")
    types = path.with_suffix(".pxd").read_text()
    typed = {} if kind == ".pxd" else dict(re.findall(r"(?m)^from (\S+) cimport (.*)$", types))

    def turned(found: re.Match[str]) -> str:
        module, verb, names = found.groups()
        # What comes with its C type is not imported a second time without it.
        left = [each for each in names.split(", ") if each not in typed.get(module, "").split(", ")]
        return f"from {absolute(name, module, verb)} {verb} {', '.join(left)}" if left else ""

    text = re.sub(r"(?m)^from (\.\S*) (c?import) (.*)$", turned, path.read_text())
    return write(BUILD / path.relative_to(SOURCE), text)


def absolute(here: str, module: str, verb: str) -> str:
    dots = len(module) - len(module.lstrip("."))
    parents = ["headrace", *here.split(".")][:-dots]
    name = ".".join([*parents, module.lstrip(".")]).rstrip(".")
    copy = name.removeprefix("headrace.")
    copied = copy in MODULES or (verb == "cimport" and copy in TYPES_ONLY)
    return f"headrace._compiled.{copy}" if copied else name


def write(path: Path, text: str) -> Path:
    """Untouched where it is the same, so that only what changed is compiled again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


setup(ext_modules=extensions())
