"""No secret is shown, however it was written; host, database and user are."""

from __future__ import annotations

import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.masking import HIDDEN, mask, mask_url, secrets_of

SECRET = "S3cr3t/p@ss word"
ENCODED = quote(SECRET, safe="")

URLS = [
    f"postgresql://ann:{SECRET}@db.example:5432/shop",
    f"postgresql://ann:{ENCODED}@db.example:5432/shop",
    f"postgresql://ann:{ENCODED}@db.example:5432,db2.example:5433/shop?target_session_attrs=read-write",
    f"postgresql://ann:{SECRET}@db.example,db2.example/shop",
    f"postgresql://ann@db.example/shop?password={ENCODED}&connect_timeout=5",
    f"postgresql://ann@db.example/shop?password={SECRET}&connect_timeout=5",
    f"postgresql://ann@db.example/shop?connect_timeout=5&PassWord={quote_plus(SECRET)}",
    f"postgresql://ann@db.example/shop?pass%77ord={ENCODED}",
    f"postgresql:///shop?host=db.example&user=ann&password={ENCODED}",
    f"host=db.example user=ann password='{SECRET}' dbname=shop",
    "host=db.example user=ann password = S3cr3t/p@ss\\ word dbname=shop",
    f"dbname=shop host=db.example user=ann sslpassword='{SECRET}'",
    f"postgres://ann:{SECRET}@db.example/shop?application_name=a",
    f"postgresql://ann@db.example/shop?direct=postgresql://ann:{ENCODED}@db2/shop&lease=60",
    f"postgresql://ann@db.example/shop?lease=60&direct={quote(f'postgresql://ann:{ENCODED}@db2/shop', safe='')}",
]


@pytest.mark.parametrize("url", URLS)
def test_a_connection_string_shows_all_but_its_password(url: str) -> None:
    shown = mask_url(url)
    for part in (SECRET, ENCODED, quote_plus(SECRET), "S3cr3t", "word'", "p@ss", "p%40ss"):
        assert part not in shown
    for part in ("db.example", "shop", "ann", HIDDEN):
        assert part in shown


@pytest.mark.parametrize("url", URLS)
def test_an_error_that_quotes_a_connection_string_or_its_password_shows_neither(url: str) -> None:
    secrets = secrets_of([url], {})
    for text in (
        f"cannot connect to {url}: timeout",
        f"cannot connect to {url!r}",
        f"password {SECRET} of ann is wrong",
        f"{{'password': '{SECRET}'}}",
        f"tried {ENCODED} and {quote_plus(SECRET)} at db.example",
    ):
        shown = mask(text, secrets)
        for part in (SECRET, ENCODED, quote_plus(SECRET), "S3cr3t"):
            assert part not in shown


def test_the_password_of_the_environment_is_hidden() -> None:
    secrets = secrets_of([], {"PGPASSWORD": SECRET, "HOME": "/root"})
    assert (
        mask(f"no: {SECRET!r} in /root, PGPASSWORD=other", secrets) == f"no: '{HIDDEN}' in /root, PGPASSWORD={HIDDEN}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "sqlite:///headrace.db",
        "sqlite:////srv/a:b@c/jobs.db?synchronous=normal&lease=60",
        "memory://",
        "postgresql://ann@db.example:5432/shop?application_name=x",
        "args.password: Expected `int`, got `str`",
        "password authentication failed for user ann",
        "lease: 0 is not a number of seconds from 0.000001 to 3,153,600,000",
        "2 jobs passed, 3 bypass=no",
        "",
    ],
)
def test_what_holds_no_secret_is_shown_as_it_is(text: str) -> None:
    assert mask_url(text) == text
    assert mask(text, secrets_of([text], {})) == text


def test_an_entry_of_a_printed_mapping_is_hidden() -> None:
    assert mask("{'password': 'hunter2', 'to': 'ann'}") == f"{{'password': {HIDDEN}, 'to': 'ann'}}"
    assert mask('{"api_key": "hunter2", "n": 1}') == f'{{"api_key": {HIDDEN}, "n": 1}}'


# A marker at both ends keeps a generated secret from being part of the host by chance.
raw = st.text(st.characters(exclude_characters="?", exclude_categories=["Cs"]), max_size=30).map(
    lambda each: f"Zq{each}qZ"
)


@given(raw)
def test_no_password_of_a_url_is_ever_shown(secret: str) -> None:
    for password in {secret, quote(secret, safe=""), quote_plus(secret)}:
        for url in (f"postgresql://ann:{password}@db.example/shop", f"x://ann:{password}@db.example:1,db2/shop?a=b"):
            shown = mask_url(url)
            assert "Zq" not in shown
            assert "qZ" not in shown
            assert "db.example" in shown


@given(raw)
def test_no_percent_encoded_password_of_a_query_is_ever_shown(secret: str) -> None:
    shown = mask_url(f"postgresql://ann@db.example/shop?password={quote(secret, safe='')}&user=ann")
    assert shown == f"postgresql://ann@db.example/shop?password={HIDDEN}&user=ann"


@given(raw)
def test_no_known_secret_is_shown_in_any_spelling(secret: str) -> None:
    secrets = secrets_of([f"postgresql://ann:{quote(secret, safe='')}@db.example/shop"], {})
    for spelling in (
        secret,
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        repr(secret),
        json.dumps(secret),
    ):
        shown = mask(f"before {spelling} after", secrets)
        assert "Zq" not in shown
        assert "qZ" not in shown
        assert shown.startswith("before ")


@given(st.text(), st.lists(st.text(min_size=1)))
def test_masking_never_fails_and_is_stable(text: str, secrets: list[str]) -> None:
    assert isinstance(mask_url(text), str)
    once = mask(text)
    assert mask(once) == once
    mask(text, secrets)
    secrets_of([text], {})


LONG = 8192


@pytest.mark.parametrize(
    "text",
    [
        "a" * LONG,
        "password" * (LONG // 8),
        "password=" * (LONG // 9),
        "a://" * (LONG // 4),
        "x://" + "a:@" * (LONG // 3),
        "x://ann@db?" + "a=b&" * (LONG // 4) + "@",
        "x://" + "a:b?c=d&" * (LONG // 8),
        "'" * LONG,
        "'password':'" * (LONG // 12),
        "'password':" * (LONG // 11) + "'",
        "password='" + "\\'" * (LONG // 2),
        "password=" + "\\" * LONG,
        "password=" + "&a" * (LONG // 2),
        "password" + " " * LONG,
        "&password=x" * (LONG // 11),
    ],
    ids=range(15),
)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    mask(text, secrets_of([text], {}))
    mask_url(text)
    assert time.process_time() - began < 2.0
