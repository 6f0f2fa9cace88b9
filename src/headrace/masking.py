"""Text fit to be shown: whatever in it is, or may be, a password is put out of sight.

Connection strings reach people by many ways (a banner, an error of a driver, a traceback), and it is enough to
forget one. So nothing is shown before it went through ``mask``, which knows the secrets in use in every
spelling, and also what connection strings look like. In doubt it hides too much. Host, database and user stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote, unquote_plus

HIDDEN = "***"
SHORTEST = 4
"""Characters a known secret must have to be sought in free text: a shorter one would blot out half of it."""

_SECRETIVE = r"(?:password|passwd|passphrase|pwd|secret|token|credential|api_?key|access_?key)"
# Every repetition that can fail late is bounded: errors come from outside, and a pattern that looks again and
# again at the rest of a long text would let one of them stop the worker for minutes.
_CALLED = rf"(?:{_SECRETIVE}[\w.-]{{0,40}}|\bpass)"
_NAME = re.compile(rf"{_SECRETIVE}|^pass$", re.IGNORECASE)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://\S+")
# name=value of a keyword string or a query: quoted, or up to white space or the next "&name=".
_PAIR = re.compile(
    rf"""{_CALLED}\s{{0,9}}=\s{{0,9}}
         (?P<value>'(?:\\.|[^'\\])*(?:'|$)|"(?:\\.|[^"\\])*(?:"|$)
                  |(?:\\.|&(?![\w%.-]{{1,60}}=)|[^\s&\\'"]|['"\\](?=\S))+)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
# "name": "value" as JSON and Python print it. Unquoted, a colon is most often prose.
_ENTRY = re.compile(
    rf"""{_CALLED}['"]\s{{0,9}}:\s{{0,9}}(?P<value>b?'(?:\\.|[^'\\])*'|b?"(?:\\.|[^"\\])*"|[\w.+-]+)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)

Span = tuple[int, int]


def mask_url(url: str) -> str:
    """A connection string, of which all is known to be one: a URL or ``host=… password=…``."""
    return _hide(url, [*_in_url(url), *_by_name(url)])


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """Free text: hides the given secrets, and whatever looks like the password of a connection string."""
    return _hide(text, [*_known(text, secrets), *_in_urls(text), *_by_name(text)])


def secrets_of(urls: Iterable[str], environment: Mapping[str, str]) -> frozenset[str]:
    """The passwords in connection strings and in PGPASSWORD, in every spelling that an error may quote."""
    urls = list(urls)
    urls += [inner for url in urls for inner in _urls_within(url)]
    found = {url[start:end] for url in urls for start, end in [*_in_url(url), *_by_name(url)]}
    found.add(environment.get("PGPASSWORD", ""))
    bare = {secret[1:-1] if secret[:1] in ("'", '"') and secret[:1] == secret[-1:] else secret for secret in found}
    return frozenset(
        spelling for secret in bare | found for spelling in _spellings(secret) if len(spelling) >= SHORTEST
    )


def _spellings(secret: str) -> Iterator[str]:
    for plain in {secret, unquote(secret), unquote_plus(secret), re.sub(r"\\(.)", r"\1", secret)}:
        yield plain
        yield repr(plain)[1:-1]
        yield json.dumps(plain)[1:-1]
        yield json.dumps(plain, ensure_ascii=False)[1:-1]
        try:
            yield from (quote(plain), quote(plain, safe=""), quote_plus(plain), quote(plain, safe="").lower())
        except UnicodeEncodeError:
            continue  # a lone surrogate has no percent-encoding


def _in_url(url: str) -> Iterator[Span]:
    """The password before the @, and the values of the query that are called secrets."""
    _, mark, rest = url.partition("://")
    if not mark:
        return
    start = len(url) - len(rest)
    at = _userinfo_end(rest)
    colon = rest.find(":", 0, at) if at > 0 else -1
    if colon >= 0:
        yield start + colon + 1, start + at
    query = url.find("?", start + max(at, 0))
    if query >= 0:
        yield from _in_query(url, query + 1)


def _userinfo_end(rest: str) -> int:
    """Where the @ is that ends user and password; -1 where there is none. Passwords are written raw by people,
    with @, / and ? in them, so it is the last one, unless that one is in a sound query."""
    if rest.startswith("/"):
        return -1  # no host, so nobody to log in as: a file
    head, mark, query = rest.partition("?")
    if mark and re.fullmatch(r"(?:[^=&/@]+=[^=&]*(?:&|$))*", query) and ("@" in head or ":" not in head.split("/")[0]):
        return head.rfind("@")
    return rest.rfind("@")


def _in_query(url: str, start: int) -> Iterator[Span]:
    for pair in url[start:].split("&"):
        name, mark, value = pair.partition("=")
        if mark and (_NAME.search(unquote_plus(name)) or any(_in_url(unquote_plus(value)))):
            yield start + len(name) + 1, start + len(name) + 1 + len(value)
        start += len(pair) + 1


def _urls_within(url: str) -> list[str]:
    """URLs that are values of its query: the way round a pooler has a password too."""
    values = [pair.partition("=")[2] for pair in url.partition("?")[2].split("&")]
    return [unquote_plus(value) for value in values if "://" in unquote_plus(value)]


def _in_urls(text: str) -> Iterator[Span]:
    for url in _URL.finditer(text):
        for start, end in _in_url(url[0]):
            yield url.start() + start, url.start() + end


def _by_name(text: str) -> Iterator[Span]:
    for pattern in (_PAIR, _ENTRY):
        for found in pattern.finditer(text):
            yield found.span("value")


def _known(text: str, secrets: Iterable[str]) -> Iterator[Span]:
    for secret in secrets:
        start = text.find(secret)
        while start >= 0:
            yield start, start + len(secret)
            start = text.find(secret, start + 1)


def _hide(text: str, spans: Iterable[Span]) -> str:
    parts, done = [], 0
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if start >= done:
            parts += [text[done:start], HIDDEN]
        done = max(done, end)
    return "".join([*parts, text[done:]])
