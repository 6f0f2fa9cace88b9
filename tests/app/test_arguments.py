"""Arguments go in and come out the same, or are refused where they are enqueued, with the place named."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.app import App
from headrace.errors import ConfigError, InvalidJob
from headrace.tasks.proof import loss


class Colour(enum.Enum):
    RED = "red"


class Odd(enum.Enum):
    NUL = "\0"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class User:
    name: str
    born: date | None = None
    friends: list[User] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Special(User):
    badge: str = ""


@dataclasses.dataclass(eq=False)
class Incomparable:
    values: list[Any]


class Moody:
    """Equal to nothing, and loud about it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare me")

    __hash__ = None  # type: ignore[assignment]  # as for every class with an __eq__


@dataclasses.dataclass(eq=False)
class MoodyBox(Moody):
    value: Any


@dataclasses.dataclass
class Forgetful:
    value: int

    def __post_init__(self) -> None:
        self.value += 1


class Point(msgspec.Struct):
    x: float
    y: float


class Movie(TypedDict):
    title: str
    year: int


class Opaque:
    pass


@pytest.fixture
def app() -> Iterator[App]:
    with App("memory://") as app:
        yield app


def travel(app: App, hint: Any, value: Any) -> Any:
    """What a worker's handler gets when ``value`` is enqueued for a parameter of that type."""

    def handler(it: Any) -> None: ...

    if hint is None:
        handler.__annotations__.clear()
    else:
        handler.__annotations__["it"] = hint
    task = app.task(name=f"t{len(app.tasks)}")(handler)
    task.enqueue(it=value)
    job = app.queue().dequeue(timeout=0)
    assert job is not None
    return app.resolve(job).kwargs["it"]


PARIS = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, 2**64),
        (int, -(10**300)),
        (float, 0.1),
        (bool, True),
        (str, "naïve 🌍"),
        (bytes, b"\x00\xff"),
        (Decimal, Decimal("1.10")),
        (datetime, datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)),
        (datetime, datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=PARIS)),
        (date, date(2026, 2, 28)),
        (time, time(12, 30)),
        (timedelta, timedelta(days=-3, microseconds=1)),
        (UUID, UUID(int=7)),
        (Colour, Colour.RED),
        (Level, Level.LOW),
        (Literal["a", "b"], "b"),
        (User, User("Ada", date(1815, 12, 10), [User("Charles")])),
        (Point, Point(1.0, -2.0)),
        (Movie, Movie(title="M", year=1931)),
        (int | str | None, None),
        (int | str, "5"),
        (list[Decimal], [Decimal(1), Decimal("2.50")]),
        (dict[int, date], {1: date(2026, 1, 1)}),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (Any, {"a": [1, 2.5, None, True, "x"]}),
        (object, [1]),
        (None, {"unannotated": [None]}),
    ],
)
def test_argument_comes_out_as_it_went_in(app: App, hint: Any, value: Any) -> None:
    back = travel(app, hint, value)
    assert type(back) is type(value)
    if isinstance(value, datetime):
        assert back.timestamp() == value.timestamp()
    else:
        assert back == value


def test_tuple_without_a_type_comes_back_as_a_list(app: App) -> None:
    assert travel(app, Any, ((1, 2), 3)) == [[1, 2], 3]


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
json_values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(text, inner))


@given(value=json_values)
def test_every_json_value_comes_out_as_it_went_in(value: Any) -> None:
    with App("memory://") as app:
        assert travel(app, Any, value) == value


@pytest.mark.parametrize(
    ("hint", "value", "said"),
    [
        (int, "5", "args.it: Expected `int`, got `str`"),
        (dict[int, int], {"x": 1}, "a key in args.it: Expected `int`, got `str`"),
        (int, True, "args.it: Expected `int`, got `bool`"),
        (list[User], [User("a"), {"nome": "b"}], "args.it[1]"),
        (User, User("Ada", friends=[User(5)]), "args.it.friends[0].name: Expected `str`, got `int`"),  # type: ignore[arg-type]  # on purpose
        (User, Special("Ada", badge="x"), "args.it: Special comes back as User"),
        (Any, datetime(2026, 1, 1, tzinfo=UTC), "args.it: datetime comes back as str; annotate"),
        (Any, {"when": [date(2026, 1, 1)]}, "args.it.when[0]: date comes back as str; annotate"),
        (Any, b"raw", "args.it: bytes comes back as str; annotate"),
        (Any, {1, 2}, "args.it: set comes back as list"),
        (Any, {1: "a"}, "args.it: a key of type int comes back as text"),
        (Any, Colour.RED, "args.it: Colour comes back as str"),
        (Incomparable, Incomparable([Decimal(1)]), "args.it.values[0]: Decimal comes back as str"),
        (MoodyBox, MoodyBox(Decimal(1)), "args.it.value: Decimal comes back as str"),
        (Forgetful, Forgetful(1), "args.it.value: comes back changed"),
        (Any, [[{1: "a", "1": "b"}]], "args.it[0][0]: a key of type int comes back as text"),
        (dict[str, Any], {"a": (1,), "b": Decimal(1)}, "args.it.b: Decimal comes back as str"),
        (float, 2**70 + 1, "args.it: int comes back as float"),
        (Any, Opaque(), "args: cannot be written as JSON: objects of type Opaque"),
        (Any, (each for each in "ab"), "cannot be written as JSON"),
    ],
)
def test_argument_that_would_not_come_back_is_refused_at_enqueue(app: App, hint: Any, value: Any, said: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        travel(app, hint, value)
    assert said in str(caught.value)
    assert app.queue().stats().enqueued == 0


def test_equal_parts_of_an_object_without_equality_come_back(app: App) -> None:
    assert travel(app, Incomparable, Incomparable([1, {"a": 2}])).values == [1, {"a": 2}]


BAD_FLOATS = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("bad", [*BAD_FLOATS, Decimal("NaN"), Decimal("sNaN12"), Decimal("-Infinity")])
@pytest.mark.parametrize(
    ("wrap", "place"),
    [
        (lambda bad: bad, "args.it: "),
        (lambda bad: {"user": {"name": [1, bad]}}, "args.it.user.name[1]: "),
        (lambda bad: User(bad), "args.it.name: "),
        (lambda bad: Point(1.0, bad), "args.it.y: "),
        (lambda bad: {"a-b": (bad,)}, "args.it['a-b'][0]: "),
    ],
)
def test_number_that_json_does_not_know_is_refused_with_its_place(
    app: App, bad: Any, wrap: Callable[[Any], Any], place: str
) -> None:
    with pytest.raises(InvalidJob, match="no number that JSON knows") as caught:
        travel(app, Any, wrap(bad))
    assert isinstance(caught.value, ValueError)
    assert place in str(caught.value)
    assert app.queue().stats().enqueued == 0


@pytest.mark.parametrize("bad", BAD_FLOATS)
def test_typed_number_that_json_does_not_know_is_refused(app: App, bad: float) -> None:
    with pytest.raises(InvalidJob, match=r"args\.it: (nan|-?inf) is no number"):
        travel(app, float | None, bad)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a\0b", "args.it: holds NUL"),
        ({"deep": [{"x": "\0"}]}, "args.it.deep[0].x: holds NUL"),
        ({"k\0": 1}, "a key in args.it: holds NUL"),
        (Odd.NUL, "args.it: holds NUL"),
        ("\ud800", "args.it: holds a lone surrogate"),
        ({"k": ["é", "\udfff"]}, "args.it.k[1]: holds a lone surrogate"),
        ({"\ud800": 1}, "a key in args.it: holds a lone surrogate"),
    ],
)
def test_text_that_not_every_store_can_keep_is_refused_with_its_place(app: App, value: Any, said: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        travel(app, Any, value)
    assert said in str(caught.value)
    assert "\0" not in str(caught.value)
    assert app.queue().stats().enqueued == 0


def test_text_that_only_looks_like_trouble_passes(app: App) -> None:
    for text in ("null", "\\u0000", "NaN", "Infinity"):
        assert travel(app, Any, [text, None]) == [text, None]


def test_container_inside_itself_is_refused_with_its_place(app: App) -> None:
    ring: dict[str, Any] = {}
    ring["next"] = [ring]
    with pytest.raises(InvalidJob, match=r"args\.it\.next\[0\]: contains itself"):
        travel(app, Any, ring)


def test_the_same_container_twice_is_no_ring(app: App) -> None:
    shared = [None]
    assert travel(app, Any, [shared, shared]) == [[None], [None]]


def test_nesting_without_end_is_refused(app: App) -> None:
    for depth in (400, 100_000):  # too deep to be compared; too deep to be written
        deep: Any = (1,)
        for _ in range(depth):
            deep = [deep]
        with pytest.raises(InvalidJob, match="nested too deeply"):
            travel(app, Any, deep)


@pytest.mark.parametrize("hint", [Opaque, list[Opaque], dict[str, Opaque | None], complex, type, datetime | str])
def test_annotation_that_json_cannot_carry_is_refused_when_the_task_is_made(app: App, hint: Any) -> None:
    with pytest.raises(ConfigError, match=r"task 't0': argument it: "):
        travel(app, hint, None)


def test_errors_do_not_quote_values(app: App) -> None:
    for hint, value in [(Colour, "hunter2"), (Literal["a"], "hunter2"), (UUID, "hunter2"), (list[int], ["hunter2"])]:
        with pytest.raises(InvalidJob) as caught:
            travel(app, hint, value)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([1], [1, 2], "x: comes back changed"),
        ([1, 2], (1,), "x: list comes back as tuple; annotate the argument with its type"),
        ({"a": 1}, {"a": 1, "b": 2}, "x: comes back changed"),
        ({"a": 1, "b": [2]}, {"b": [3], "a": 1}, "x.b[0]: comes back changed"),
        ({"a": (1,), "b": 2}, {"b": 2, "a": [1]}, None),
        ({1, 2}, {1, 3}, "x: comes back changed"),
        ([[1], "a"], ((1,), "a"), None),
    ],
)
def test_loss_names_the_first_place_that_differs(before: Any, after: Any, said: str | None) -> None:
    assert loss(before, after, "x") == said
