"""A job as people and scripts see it. Payloads are hidden unless asked for: they hold what is nobody's business."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from ..job import Job
from .session import Session
from .terminal import moment, safe


def as_json(session: Session, job: Job, payload: bool) -> dict[str, Any]:
    """One object; times in UTC. The payload as JSON where it is JSON, else as base64."""
    shown: dict[str, Any] = {
        "id": job.id,
        "queue": job.queue,
        "task": task_of(job),
        "state": job.state,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "priority": job.priority,
        "enqueued_at": job.enqueued_at,
        "run_at": job.run_at,
        "deadline": job.deadline,
        "died_at": job.died_at,
        "last_error": None if job.last_error is None else session.masked(job.last_error),
        "payload_bytes": len(job.payload),
    }
    if payload:
        if _decoded(job.payload) is None:
            shown["payload_base64"] = base64.b64encode(job.payload).decode()
        else:
            shown["payload"] = msgspec.Raw(job.payload)
    return shown


def as_text(session: Session, job: Job, payload: bool) -> str:
    """Some lines about one job, its whole error included."""
    rows = [
        ("job", safe(job.id)),
        ("queue", job.queue),
        ("task", safe(task_of(job) or "-")),
        ("state", str(job.state)),
        ("attempts", f"{job.attempt} of {job.max_attempts}"),
        ("priority", str(job.priority)),
        ("enqueued", moment(job.enqueued_at)),
        ("deadline", moment(job.deadline)),
        ("died", moment(job.died_at)),
    ]
    lines = [f"{name:<10}{value}" for name, value in rows]
    lines += ["", "error", _indented(safe(session.masked(job.last_error or "-")))]
    if payload:
        lines += ["", f"payload ({len(job.payload):,} bytes)", _indented(safe(_pretty(job.payload)))]
    else:
        lines += ["", f"payload: {len(job.payload):,} bytes; --payload shows it"]
    return "\n".join(lines)


def task_of(job: Job) -> str | None:
    """The task that its payload calls; None for a payload of another kind."""
    from ..tasks.codec import Unfit, open_envelope

    try:
        return open_envelope(job.payload).task
    except Unfit:
        return None


def _pretty(payload: bytes) -> str:
    if _decoded(payload) is not None:
        return msgspec.json.format(payload, indent=2).decode()
    return repr(payload)


def _decoded(payload: bytes) -> msgspec.Raw | None:
    """The payload, if it is strict JSON."""
    try:
        msgspec.json.decode(payload)
        payload.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return msgspec.Raw(payload)


def _indented(text: str) -> str:
    return "\n".join(f"  {each}" for each in text.splitlines())
