"""Models of pydantic travel like dataclasses, where pydantic is there."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal

import pydantic
import pytest

from headrace.app import App
from headrace.errors import InvalidJob


class Address(pydantic.BaseModel):
    city: str = pydantic.Field(alias="town")


class Person(pydantic.BaseModel):
    name: str
    since: datetime
    balance: Decimal = Decimal(0)
    score: float = 0.0
    addresses: list[Address] = []

    @pydantic.field_validator("name")
    @classmethod
    def _not_empty(cls, name: str) -> str:
        if not name:
            raise ValueError("is empty")
        return name


class Employee(Person):
    boss: str = ""


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def greet(people: list[Person], first: Person | None = None) -> None: ...


def test_model_comes_out_as_it_went_in() -> None:
    with App("memory://") as app:
        person = Person(name="Ada", since=NOW, balance=Decimal("1.10"), addresses=[Address(town="London")])
        app.task(greet).enqueue([person], first=person)
        job = app.queue().dequeue(timeout=0)
        assert job is not None
        assert app.resolve(job).kwargs == {"people": [person], "first": person}


@pytest.mark.parametrize(
    ("person", "said"),
    [
        ({"name": "", "since": NOW, "balance": "hunter2"}, "args.people[0]: name: Value error, is empty; balance: "),
        ({"name": "x"}, "args.people[0]: since: Field required"),
        (Person(name="x", since=NOW, score=float("nan")), "args.people[0].score: nan is no number"),
        (Person(name="\0", since=NOW), "args.people[0].name: holds NUL"),
        (Employee(name="x", since=NOW, boss="y"), "args.people[0]: Employee comes back as Person"),
    ],
)
def test_model_that_would_not_come_back_is_refused(person: Person, said: str) -> None:
    with App("memory://") as app:
        with pytest.raises(InvalidJob) as caught:
            app.task(greet).enqueue([person])
        assert said in str(caught.value)
        assert "hunter2" not in str(caught.value)


def test_pydantic_is_not_imported_by_those_who_do_not_use_it() -> None:
    code = "import sys, headrace.app; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
