"""Apps that keep large arguments outside, for the command line's tests."""

from __future__ import annotations

import os
from datetime import datetime

import fsspec
from fsspec.implementations.local import LocalFileSystem

from headrace.app import App


class Stubborn(LocalFileSystem):
    """The same folder, from which nothing can be removed."""

    protocol = "stubborn"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix(f"{cls.protocol}://")))

    def rm_file(self, path: str) -> None:
        raise PermissionError("it is bolted down")


class Ageless(Stubborn):
    """The same folder, in which nothing has an age."""

    protocol = "ageless"

    def modified(self, path: str) -> datetime:
        raise NotImplementedError


for each in (Stubborn, Ageless):
    fsspec.register_implementation(each.protocol, each, clobber=True)

app = App(outside=f"file://{os.environ['OUTSIDE']}", outside_above=100)
stubborn = App(outside=f"stubborn://{os.environ['OUTSIDE']}")
ageless = App(outside=f"ageless://{os.environ['OUTSIDE']}")


@app.task
def grind(grain: str) -> None: ...
