"""Where arguments are kept that are too large for a queue: a folder in a file system of fsspec.

Their age alone ends them: see ``old``. An ack does not, for what was done may come back, from a backup or from a
standby that had not heard of the ack, and has to find its arguments again.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from .. import check
from ..errors import ConfigError, StorageFull, Unavailable
from ..ids import new_id
from ..job import Job
from ..text import describe
from .codec import Envelope, Place, Unfit, open_envelope, seal

log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
"""``queue/id``. A payload can be written by others, and must not lead out of the folder."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Outside:
    """A folder in a file system of fsspec. Safe to share between threads, and with a forked child."""

    def __init__(self, url: str, above: int) -> None:
        """ConfigError for a URL of which nothing can come, or where the library for it is missing. Opens nothing."""
        if not isinstance(url, str) or "://" not in url:
            raise ConfigError("outside: is not a URL such as file:///mnt/shared/jobs or s3://bucket/jobs")
        scheme, _, path = url.partition("://")
        if scheme in ("file", "local") and not path.startswith("/"):
            raise ConfigError(f"outside: {scheme}:// takes an absolute path, which makes three slashes: {scheme}:///…")
        self.above = check.whole("outside_above", above, 0, 1 << 40)
        self._url = url
        try:
            import fsspec
        except ModuleNotFoundError:
            raise ConfigError("outside: needs a library: pip install 'headrace[outside]'") from None
        try:
            fsspec.get_filesystem_class(scheme)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"outside: {scheme}://… cannot be used: {error}") from None

    def keep(self, queue: str, jobs: Sequence[Job]) -> tuple[list[Job], list[str]]:
        """The jobs as they are to be enqueued, and the names of what was written for that. All or nothing;
        Unavailable or StorageFull where it cannot be written."""
        kept: list[Job] = []
        names: list[str] = []
        for job in jobs:
            envelope = open_envelope(job.payload)
            if isinstance(envelope.args, msgspec.Raw) and len(text := bytes(envelope.args)) > self.above:
                place = Place(f"{queue}/{new_id()}", len(text), hashlib.sha256(text).hexdigest())
                names.append(place.name)
                try:
                    self._write(place.name, text)
                except Exception as error:  # file systems raise what they like
                    self.remove(names)
                    full = isinstance(error, OSError) and error.errno in _FULL
                    kind = StorageFull if full else Unavailable
                    raise kind(f"outside: arguments cannot be written: {describe(error)}") from error
                job = msgspec.structs.replace(job, payload=seal(Envelope(envelope.task, envelope.v, outside=place)))
            kept.append(job)
        return kept, names

    def load(self, place: Place) -> bytes:
        """The bytes that were written. Unfit where they are not there, or are others; else what the file system
        raises."""
        if not _NAME.fullmatch(place.name):
            raise Unfit("its arguments are kept outside, under a name that is none of ours")
        system, folder = self._open()
        try:
            text: bytes = system.cat_file(f"{folder}/{place.name}")
        except FileNotFoundError:
            raise Unfit(f"its arguments are not where they were kept outside, as {place.name}") from None
        if len(text) != place.size:
            raise Unfit(f"its arguments, kept outside as {place.name}, have {len(text):,} bytes, not {place.size:,}")
        if hashlib.sha256(text).hexdigest() != place.sha256:
            raise Unfit(f"its arguments, kept outside as {place.name}, are not what was written: the digest differs")
        return text

    def old(self, before: datetime) -> list[tuple[str, int]]:
        """Name and size of what was written before that moment, by the file system's clock. ConfigError where it does
        not tell."""
        system, folder = self._open()
        system.invalidate_cache()
        found = []
        for path, info in system.find(folder, detail=True).items():
            name = path.removeprefix(f"{folder}/")
            if not _NAME.fullmatch(name):
                continue  # whatever else is there is somebody else's
            try:
                written: datetime = system.modified(path)
            except FileNotFoundError:
                continue  # somebody else removes as well
            except NotImplementedError:
                raise ConfigError("outside: this file system does not tell when something was written") from None
            if (written if written.tzinfo else written.replace(tzinfo=UTC)) < before:
                found.append((name, int(info["size"] or 0)))
        return sorted(found)

    def remove(self, names: Sequence[str]) -> int:
        """How many stay, because they cannot be removed: the log says why."""
        stay = 0
        for name in names:
            try:
                system, folder = self._open()
                system.rm_file(f"{folder}/{name}")
            except FileNotFoundError:
                pass
            except Exception as error:
                log.warning("outside: %s could not be removed: %s", name, describe(error))
                stay += 1
        return stay

    def _open(self) -> tuple[Any, str]:
        """The file system, which fsspec keeps for each process, and the path of the folder in it."""
        import fsspec

        system, folder = fsspec.core.url_to_fs(self._url)
        return system, folder.rstrip("/")

    def _write(self, name: str, text: bytes) -> None:
        from fsspec.implementations.local import LocalFileSystem

        system, folder = self._open()
        path = f"{folder}/{name}"
        if isinstance(system, LocalFileSystem):
            _write_durably(path, text)
            return
        try:
            system.pipe_file(path, text)
        except FileNotFoundError:  # one of those with real folders
            system.makedirs(os.path.dirname(path), exist_ok=True)
            system.pipe_file(path, text)


def _write_durably(path: str, text: bytes) -> None:
    """It needs no temporary name: nobody knows this one before all of it is there."""
    folder = os.path.dirname(path)
    with suppress(FileExistsError):
        os.mkdir(folder)  # but not the one above it: that is missing where a share is not mounted
    _sync(os.path.dirname(folder))  # in any case, for who has just made it may not have come so far
    with open(path, "xb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    _sync(folder)


def _sync(folder: str) -> None:
    """The names in it are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
