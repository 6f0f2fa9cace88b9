"""The threads of sync handlers: none is left behind."""

from __future__ import annotations

import asyncio
import threading

from headrace.clock import FAR, SystemClock
from headrace.job import Job
from headrace.pool import Context
from headrace.pool.outcome import RETURNED, Answer
from headrace.pool.run import Run
from headrace.pool.runners.threads import Threads
from headrace.testing.clock import wait_until


def test_a_thread_whose_answer_the_loop_does_not_live_to_hear_ends_all_the_same() -> None:
    loop = asyncio.new_event_loop()
    answered = threading.Event()

    def body(run: Run) -> Answer:
        answered.set()
        return RETURNED

    threads = Threads(loop, "headrace-unheard", body)
    clock = SystemClock()
    threads.start(Run(Context(Job(), clock), clock, clock.steady(), FAR, lambda run: None), lambda run, answer: None)
    assert answered.wait(10)
    threads.close()
    wait_until(lambda: not any(thread.name.startswith("headrace-unheard") for thread in threading.enumerate()))
    loop.close()
