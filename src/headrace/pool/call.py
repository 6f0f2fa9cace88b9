"""Which function to call for a job, and in what surroundings.

A handler's kind is settled when the pool is built, not at the first job: calling an async or a generator
function like a plain one only makes an object, and the job would pass for done without its body having run.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from .. import check
from ..job import Job
from .outcome import Unserved
from .retry import Retries, retries

__all__ = ["Call", "Handler", "Kind", "Plain", "Resolver", "Unserved", "kind_of"]

Kind: TypeAlias = Literal["async", "thread", "process"]
Handler: TypeAlias = Callable[[Job], object]


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call to make. ``function`` must be importable by ``module:qualname`` where the kind is process."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = msgspec.field(default_factory=dict)
    kind: Kind
    name: str
    """For people: logs and events."""
    timeout: float | None = None
    """Seconds that one attempt may run; None: the pool's setting."""
    retry: Retries | None = None
    """None: the pool's setting."""


@runtime_checkable
class Resolver(Protocol):
    """Finds the call for a job. ``resolve`` runs on the event loop, so it must be quick; what it raises is a
    failed attempt, except Unserved: that gives the job back for a worker that knows its task."""

    def resolve(self, job: Job) -> Call: ...


class Plain:
    """Every job goes to one ``handler(job)``."""

    def __init__(self, handler: Handler, process: bool = False) -> None:
        self._handler = handler
        self._kind = kind_of(handler, process)
        self._name = name_of(handler)
        try:
            inspect.signature(handler).bind(Job())
        except TypeError as error:
            raise TypeError(f"handler {self._name}: cannot be called as handler(job): {error}") from None
        except ValueError:
            pass  # a builtin that does not tell its signature

    def resolve(self, job: Job) -> Call:
        return Call(function=self._handler, args=(job,), kind=self._kind, name=self._name)


def kind_of(handler: object, process: bool = False) -> Kind:
    """Where a handler runs; TypeError for what cannot be a handler."""
    check.flag("process", process)
    name = name_of(handler)
    if inspect.isclass(handler):
        raise TypeError(f"handler {name}: is a class; calling it would only make an object")
    if not callable(handler):
        raise TypeError(f"handler {name}: is not callable")
    body = _body(handler)
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise TypeError(f"handler {name}: is a generator function; calling it would not run its body")
    if process:
        import_path(handler)
        return "process"
    return "async" if inspect.iscoroutinefunction(body) else "thread"


def name_of(handler: object) -> str:
    """A name for logs: the qualified one where there is one."""
    inner = handler
    while isinstance(inner, functools.partial):
        inner = inner.func
    if not hasattr(inner, "__qualname__"):
        inner = type(inner)
    return f"{inner.__module__}:{inner.__qualname__}"


def import_path(handler: object) -> str:
    """``module:qualname``, proven to lead back to the handler: how it travels to another process."""
    module, qualname = getattr(handler, "__module__", None), getattr(handler, "__qualname__", None)
    found: object = None
    if module and qualname and "<" not in qualname:
        try:
            found = load(f"{module}:{qualname}")
        except (ImportError, AttributeError):
            found = None
    # A decorator may have put a wrapper in its place: what it wraps is the same function. Not so for a bound
    # method, whose object would be missing over there.
    same = found == handler or (not inspect.ismethod(handler) and _innermost(found) is _innermost(handler))
    if found is None or not same:
        raise TypeError(
            f"handler {name_of(handler)}: a process cannot import it by that name; "
            "use a function at the top level of a module (no lambda, closure, partial or bound method)"
        )
    return f"{module}:{qualname}"


def load(path: str) -> Any:
    """What ``module:qualname`` names."""
    module, _, qualname = path.partition(":")
    return functools.reduce(getattr, qualname.split("."), importlib.import_module(module))


def resolver(handler: Handler | Resolver, process: bool = False) -> Resolver:
    """The resolver that was given, or one that sends every job to the handler."""
    if isinstance(handler, Resolver) and not inspect.isclass(handler):
        return handler
    return Plain(handler, process)


def retry_of(call: Call, default: Retries) -> Retries:
    """The policy for a call; ``retries`` forgives a resolver that hands over a bare function."""
    return default if call.retry is None else retries(call.retry)


def _innermost(wrapped: Any) -> object:
    return inspect.unwrap(wrapped)


def _body(handler: object) -> object:
    """The function that runs when the handler is called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if inspect.isroutine(handler):
        return handler
    return type(handler).__call__
