"""Heaps with tombstones: order, and that the tombstones stay few."""

from __future__ import annotations

import random

from headrace.memory._heaps import Entry, LazyHeap


class Living:
    """The entries that stand for something."""

    def __init__(self) -> None:
        self.entries: set[Entry] = set()
        self.heap = LazyHeap(self.entries.__contains__)

    def add(self, entry: Entry) -> None:
        self.entries.add(entry)
        self.heap.push(entry)

    def remove(self, entry: Entry) -> None:
        self.entries.discard(entry)
        self.heap.forget()


def test_an_empty_heap_has_no_smallest() -> None:
    heap = Living().heap
    assert heap.peek() is None
    assert heap.pop() is None
    assert len(heap) == 0


def test_entries_come_out_in_order_and_the_dead_are_stepped_over() -> None:
    living = Living()
    for key in (5, 1, 4, 2, 3):
        living.add((key, key, "x"))
    living.remove((1, 1, "x"))
    living.remove((3, 3, "x"))
    out = []
    while (entry := living.heap.pop()) is not None:
        out.append(entry[0])
    assert out == [2, 4, 5]


def test_tombstones_never_outnumber_the_living_by_more_than_a_few() -> None:
    living = Living()
    dice = random.Random(1)
    keys = list(range(5000))
    for key in keys:
        living.add((key, key, "x"))
    dice.shuffle(keys)
    for key in keys:
        living.remove((key, key, "x"))
        assert len(living.heap) <= 2 * len(living.entries) + 130


def test_an_entry_that_comes_back_under_its_old_key_is_there_once_after_a_sweep() -> None:
    living = Living()
    for _ in range(1000):
        living.add((1, 1, "a"))
        living.remove((1, 1, "a"))
        assert len(living.heap) <= 130
    living.add((1, 1, "a"))
    assert living.heap.peek() == (1, 1, "a")


def test_any_mix_agrees_with_sorting() -> None:
    living = Living()
    dice = random.Random(2)
    for turn in range(4000):
        move = dice.random()
        if move < 0.5:
            living.add((dice.randrange(100), turn, "x"))
        elif living.entries and move < 0.75:
            living.remove(dice.choice(sorted(living.entries)))
        elif living.entries:
            assert living.heap.peek() == min(living.entries)
            taken = living.heap.pop()
            assert taken == min(living.entries)
            living.entries.discard(taken)
