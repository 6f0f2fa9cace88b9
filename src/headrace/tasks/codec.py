"""Arguments <-> payload: ``{"task": name, "v": version, "args": {name: value}}``, as strict JSON. Where the arguments
are kept elsewhere, ``"outside"`` in place of ``"args"`` says where: see ``claim.py``.

The handler's annotations say what the text means, so big integers, decimals, moments and dataclasses come
out as they went in. JSON itself would lose things in silence (NaN becomes null, a date becomes text), so what
cannot come back is refused when it is enqueued, by whoever made it, and not met by a worker at night.
No message here quotes a value: payloads hold secrets, and errors are logged.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .proof import flaw, loss

_encoder = msgspec.json.Encoder(enc_hook=lambda value: _lower(value))

# What may hide a flaw that the encoder lets through; only then is it worth looking at every value.
_SUSPECT = re.compile(rb'null|\\u0000|"[-+]?s?NaN|Infinity', re.IGNORECASE)
_WHERE = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_QUOTED = re.compile(r"^(Invalid enum value) .*", re.DOTALL)


class Unfit(Exception):
    """What cannot go into a payload, or cannot be read from one: the place in it, and why."""


class Place(msgspec.Struct, frozen=True):
    """Where arguments are that are kept outside, and how to know them again."""

    name: str
    size: int
    sha256: str


class Envelope(msgspec.Struct):
    """A payload, opened as far as needed to find out who can read the rest. It has either ``args`` or ``outside``."""

    task: str
    v: int
    args: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    outside: Place | msgspec.UnsetType = msgspec.UNSET


_envelopes = msgspec.json.Decoder(Envelope)


def open_envelope(payload: bytes) -> Envelope:
    """Raises Unfit where this is no payload of a task."""
    try:
        envelope = _envelopes.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unfit(f"not the payload of a task: {_said(error, '')}") from None
    if (envelope.args is msgspec.UNSET) == (envelope.outside is msgspec.UNSET):
        raise Unfit("not the payload of a task: it has to hold either `args` or `outside`")
    return envelope


def seal(envelope: Envelope) -> bytes:
    """The payload of it."""
    return _encoder.encode(envelope)


class Codec:
    """Reads and writes the arguments of one handler, given as a struct type with a field for each."""

    def __init__(self, shape: type[msgspec.Struct]) -> None:
        self._decoder = msgspec.json.Decoder(shape, dec_hook=_raise_up)
        self._fields = shape.__struct_fields__

    def encode(self, task: str, version: int, args: dict[str, Any]) -> bytes:
        """The payload, proven to come back. Raises Unfit naming the first place that does not."""
        text = self._text(args)
        back = self.decode(text)
        try:
            if found := loss(args, back, "args"):
                raise Unfit(found)
        except RecursionError:
            raise Unfit("args: nested too deeply") from None
        return seal(Envelope(task, version, args=msgspec.Raw(text)))

    def decode(self, text: bytes | msgspec.Raw) -> dict[str, Any]:
        """The arguments that were given, without those left to their defaults. Raises Unfit."""
        try:
            shaped = self._decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Unfit(_said(error, "args")) from None
        return {name: value for name in self._fields if (value := getattr(shaped, name)) is not msgspec.UNSET}

    def convert(self, args: object) -> dict[str, Any]:
        """As ``decode``, of what an upgrade returned. Raises Unfit."""
        return self.decode(self._text(args))

    def _text(self, args: object) -> bytes:
        try:
            text = _encoder.encode(args)
        except Exception as error:  # hooks and serializers of users' types raise what they like
            said = str(error) if isinstance(error, (NotImplementedError, TypeError)) else type(error).__name__
            raise Unfit(_flaw(args) or f"args: cannot be written as JSON: {said}") from None
        if _SUSPECT.search(text) and (found := _flaw(args)):
            raise Unfit(found)
        return text


def _flaw(args: object) -> str | None:
    try:
        return flaw(args, "args")
    except RecursionError:
        return "args: nested too deeply"


def _said(error: Exception, root: str) -> str:
    """msgspec's words with our place in front: ``args.user.name: Expected `int`, got `str```."""
    if isinstance(error, RecursionError):
        return f"{root or 'payload'}: nested too deeply"
    match = _WHERE.fullmatch(str(error))
    assert match is not None
    what = _QUOTED.sub(r"\1", match["what"])
    place = f"{root}{match['path'] or ''}".lstrip(".")
    return f"{'a key in ' if match['key'] else ''}{place}: {what}" if place else what


# Pydantic's models are known by what they can do, so that pydantic is imported only by those who use it.


def is_model(kind: object) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate_json")


def _lower(value: Any) -> Any:
    if is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    raise NotImplementedError(f"objects of type {type(value).__name__} have no place in JSON")


def _raise_up(kind: Any, value: Any) -> Any:
    if kind is object:
        return value
    try:  # anything else was refused when the task was made
        return kind.model_validate_json(msgspec.json.encode(value))
    except ValueError as error:
        problems = error.errors() if hasattr(error, "errors") else ()
        said = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems)
        raise ValueError(said or type(error).__name__) from None
