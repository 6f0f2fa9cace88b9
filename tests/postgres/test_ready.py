"""A look that found nothing does not say so when something came meanwhile."""

from __future__ import annotations

from headrace.postgres.ready import Ready


def test_a_look_that_found_nothing_ends_what_was_believed() -> None:
    ready = Ready()
    ready.came(3)
    ready.left(ready.begin(), 0, more=False)
    assert ready.count == 0
    ready.came(2)
    ready.counted(ready.begin(), 0)
    assert ready.count == 0


def test_what_came_during_a_look_is_not_forgotten_for_it() -> None:
    ready = Ready()
    began = ready.begin()
    ready.came(1)
    ready.left(began, 0, more=False)
    assert ready.count == 1
    ready.counted(began, 0)
    assert ready.count == 1
    ready.counted(began, 7)
    assert ready.count == 7


def test_where_a_look_took_all_that_it_was_allowed_there_may_be_more() -> None:
    ready = Ready()
    ready.came(5)
    ready.left(ready.begin(), 5, more=True)
    assert ready.count == 1


def test_nothing_that_came_is_no_news() -> None:
    ready = Ready()
    began = ready.begin()
    ready.came(0)
    assert ready.begin() == began
