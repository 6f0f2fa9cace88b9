"""What a handler takes, read from its signature once: how a call becomes arguments, and arguments a call.

What could never run is refused here, when the program starts: a class, a method without its object, a generator
(calling one runs nothing), ``*args`` (a payload names its arguments), an annotation that JSON cannot carry.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import msgspec

from ..errors import ConfigError
from ..pool.call import Kind, kind_of
from ..pool.context import Context, current
from .codec import Codec, is_model

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def refuse_unrunnable(function: object, what: str) -> Kind:
    """How a function runs; TypeError for what is none, or is one whose call would not run its body."""
    if isinstance(function, (classmethod, property)):
        raise TypeError(f"{what}: a {type(function).__name__} is not a task; use a function")
    kind = kind_of(function)
    qualname = getattr(innermost(function), "__qualname__", "")
    first = next(iter(inspect.signature(function).parameters), "")  # type: ignore[arg-type]  # kind_of made sure
    if "." in qualname.rpartition("<locals>.")[2] and first in ("self", "cls"):
        raise TypeError(f"{what}: nobody gives a method its {first} when a worker calls it; use a function")
    return kind


def innermost(function: Any) -> Any:
    """The function under partials, ``functools.wraps``, bound methods, staticmethods and ``__call__``."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.ismethod(function):
            function = function.__func__
        elif inspect.isroutine(function):
            return function
        else:
            function = type(function).__call__


class Signature:
    """The parameters of one handler. Raises NameError where an annotation cannot be resolved yet."""

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        self._what = what
        parameters = inspect.signature(function).parameters.values()
        for parameter in parameters:
            if parameter.kind in _VARIADIC:
                raise TypeError(f"{what}: {parameter} has no names to store; name each argument, or take a dict")
        space = getattr(innermost(function), "__globals__", {})
        hints = {each.name: _hint(each, space) for each in parameters}
        contexts = [name for name, hint in hints.items() if hint is Context or Context in get_args(hint)]
        if len(contexts) > 1:
            raise TypeError(f"{what}: {' and '.join(contexts)} are both a Context; there is one")
        self.context = contexts[0] if contexts else None
        self._full = inspect.signature(function)
        self._given = inspect.Signature([each for each in parameters if each.name != self.context])
        self._positional = any(each.kind is each.POSITIONAL_ONLY for each in parameters)
        self.codec = Codec(self._shape(hints))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, without those left to their defaults. TypeError as for a plain call."""
        try:
            return self._given.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{self._what}: {error}") from None

    def spread(self, args: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by name as a call takes them."""
        if not self._positional:
            return (), args
        whole = self._full if self.context in args else self._given
        bound = inspect.BoundArguments(whole, args)
        return bound.args, bound.kwargs

    def inject(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call with the running handler's Context in its place, unless the caller brought one.
        RuntimeError where no handler runs and the Context has no default."""
        if self.context is None or self.context in kwargs or any(isinstance(each, Context) for each in args):
            return args, kwargs
        try:
            context = current()
        except RuntimeError:
            if self._full.parameters[self.context].default is inspect.Parameter.empty:
                raise
            return args, kwargs
        return self.spread({**self.bind(args, kwargs), self.context: context})

    def _shape(self, hints: dict[str, Any]) -> type[msgspec.Struct]:
        fields: list[Any] = []
        for name, parameter in self._given.parameters.items():
            hint = hints[name]
            try:
                trouble = _foreign(msgspec.inspect.type_info(hint))
            except (TypeError, NameError) as error:
                trouble = str(error)
            if trouble:
                raise ConfigError(f"{self._what}: argument {name}: {trouble}")
            required = parameter.default is parameter.empty
            fields.append((name, hint) if required else (name, hint, msgspec.UNSET))
        return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _hint(parameter: inspect.Parameter, space: dict[str, Any]) -> Any:
    if parameter.annotation is parameter.empty:
        return Any
    named = SimpleNamespace(__annotations__={"it": parameter.annotation})
    return get_type_hints(named, globalns=space, include_extras=True)["it"]


def _foreign(kind: Any, seen: set[int] | None = None) -> str | None:
    """Why a type cannot travel as JSON: it, or a part of it, is of a class that nothing here can rebuild."""
    if isinstance(kind, msgspec.inspect.CustomType):
        if kind.cls is object or is_model(kind.cls):
            return None
        return f"{kind.cls.__qualname__} cannot be rebuilt from JSON; use a dataclass, or pass what it is made from"
    seen = set() if seen is None else seen
    if id(kind) in seen or not isinstance(kind, (msgspec.Struct, tuple)):
        return None
    seen.add(id(kind))
    inner = kind if isinstance(kind, tuple) else [getattr(kind, each) for each in kind.__struct_fields__]
    return next((found for each in inner if (found := _foreign(each, seen))), None)
