"""The table of unfinished records: whatever comes and goes, it holds what a dictionary would."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headrace import Job
from headrace.chosen import built, module
from headrace.memory.queue import memory_queue
from headrace.settings import Settings
from headrace.testing import VirtualClock


class Lab:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.record = module("record", kind).Record
        self.table = module("memory._table", kind).Table()

    def make(self, id: str) -> Any:
        return self.record(id, b"", 0, 5, 0, 0)


@pytest.fixture(params=built())
def lab(request: pytest.FixtureRequest) -> Lab:
    return Lab(request.param)


class Odd(str):
    """A text that says that it is equal to every other."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


def test_it_holds_what_a_dictionary_would(lab: Lab) -> None:
    dice = random.Random(7)
    table, model = lab.table, {}
    for step in range(30_000):
        id = str(dice.randrange(40 if step % 10_000 < 5_000 else 4_000))
        if id in model and dice.random() < 0.6:
            table.leave(model.pop(id))
        else:
            record = lab.make(id)
            assert table.enter(record) == (id not in model)
            model.setdefault(id, record)
        other = str(dice.randrange(4_000))
        assert table.find(other) is model.get(other)
        assert len(table) == len(model)
    assert {record.id: record for record in table.values()} == model
    assert sorted(table) == sorted(model)
    for record in model.values():
        table.leave(record)
    table.clear()
    assert (len(table), list(table)) == (0, [])
    assert table.enter(lab.make("a"))


def test_a_record_that_leaves_after_another_was_looked_for_is_the_one_that_is_gone(lab: Lab) -> None:
    one, other = lab.make("one"), lab.make("other")
    lab.table.enter(one)
    lab.table.enter(other)
    assert lab.table.find("other") is other
    lab.table.leave(one)
    assert list(lab.table) == ["other"]


def test_the_same_id_in_another_object_finds_it(lab: Lab) -> None:
    record = lab.make("job-1")
    lab.table.enter(record)
    assert lab.table.find("".join(["job", "-1"])) is record
    assert "job-1" in lab.table
    assert lab.table["job-1"] is record


@pytest.mark.parametrize("letter", ["a", "é", "ж", "😀"])
def test_an_id_of_any_length_and_width_is_found_by_another_object_and_no_other_for_it(lab: Lab, letter: str) -> None:
    ids = [letter * length for length in range(1, 256)]
    records = [lab.make(id) for id in ids]
    assert all(lab.table.enter(record) for record in records)
    assert [lab.table.find("".join(list(id))) for id in ids] == records
    for length in (256, 257, 1024, 5000):
        assert lab.table.find(letter * length) is None


@pytest.mark.parametrize("strange", [None, 7, b"a", ("a",), Odd("b")])
def test_what_is_no_id_finds_nothing(lab: Lab, strange: object) -> None:
    lab.table.enter(lab.make("a"))
    assert lab.table.find(strange) is None


def test_a_record_that_is_not_there_does_not_leave(lab: Lab) -> None:
    with pytest.raises(KeyError):
        lab.table.leave(lab.make("a"))
    with pytest.raises(KeyError):
        lab.table["a"]


def test_a_deep_line_with_holes_is_handed_out_in_order(lab: Lab) -> None:
    queue = memory_queue(Settings.make(clock=VirtualClock()), lab.kind)
    ids = [str(number) for number in range(3_000)]
    queue.enqueue_many([Job(id=id) for id in ids])
    gone = {id for id in ids if int(id) % 7 in (3, 4, 5)}
    assert all(queue.cancel(id) for id in gone)
    got = [job.id for job in queue.dequeue_many(10_000, 0)]
    assert got == [id for id in ids if id not in gone]
