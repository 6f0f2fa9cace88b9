"""The public names, as others have them in their code: what is listed here may be added to, never taken away."""

from __future__ import annotations

import inspect
import os
import queue
import subprocess
import sys

import pytest

import headrace

PROMISED = [
    "App",
    "Job",
    "Pool",
    "Stats",
    "Retry",
    "Snooze",
    "Discard",
    "Cancel",
    "HeadraceError",
    "QueueFull",
    "QueueClosed",
    "DuplicateJob",
    "InvalidJob",
    "LeaseLost",
    "Unsupported",
    "ConfigError",
    "connect",
    "connect_async",
]

CALLS = [
    "enqueue",
    "enqueue_many",
    "dequeue",
    "dequeue_many",
    "ack",
    "ack_many",
    "nack",
    "extend",
    "extend_many",
    "release",
    "release_many",
    "bury",
    "cancel",
    "dead",
    "take_dead",
    "replay",
    "pause",
    "resume",
    "stats",
    "find",
    "within",
    "close",
]


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_name_is_exported(name: str) -> None:
    assert name in headrace.__all__


def test_all_is_sorted_and_lists_what_is_there() -> None:
    assert headrace.__all__ == sorted(set(headrace.__all__))
    assert all(hasattr(headrace, name) for name in headrace.__all__)


def test_dir_shows_the_public_names() -> None:
    assert set(headrace.__all__) <= set(dir(headrace))


@pytest.mark.parametrize("name", ["no_such_name", "__no_such_dunder__"])
def test_a_name_that_is_not_there_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(headrace, name)


@pytest.mark.parametrize("name", headrace.__all__)
def test_a_public_object_says_what_it_is(name: str) -> None:
    thing = getattr(headrace, name)
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return  # an alias of a type, or a version
    assert _own_doc(thing), f"{name} has no docstring"


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_there_in_both_faces_with_the_same_parameters(call: str) -> None:
    sync = inspect.signature(getattr(headrace.Queue, call))
    awaited = inspect.signature(getattr(headrace.AsyncQueue, call))
    assert sync.parameters == awaited.parameters
    assert getattr(headrace.Queue, call).__doc__


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (headrace.QueueFull, queue.Full),
        (headrace.InvalidJob, ValueError),
        (headrace.ConfigError, ValueError),
        (headrace.LeaseLost, headrace.HeadraceError),
    ],
)
def test_an_error_can_be_caught_by_its_common_name(error: type[Exception], also: type[Exception]) -> None:
    assert issubclass(error, also)
    assert issubclass(error, headrace.HeadraceError)


@pytest.mark.parametrize("face", ["Queue", "AsyncQueue"])
def test_what_connect_returns_keeps_the_protocol(face: str) -> None:
    made = headrace.connect("memory://") if face == "Queue" else headrace.connect_async("memory://")
    assert isinstance(made, getattr(headrace, face))


def test_importing_headrace_loads_no_database_and_no_terminal() -> None:
    code = "import sys, headrace; print(*sys.modules)"
    # A child whose coverage is measured has loaded a database for that.
    bare = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=bare).stdout
    loaded = {name.partition(".")[0] for name in shown.split()}
    assert "headrace" in loaded
    assert not loaded & {"sqlite3", "click", "rich", "pydantic", "pytest", "hypothesis", "multiprocessing", "fsspec"}


def _own_doc(thing: object) -> str | None:
    """Not the one that a class inherits."""
    return vars(thing).get("__doc__") if inspect.isclass(thing) else inspect.getdoc(thing)
