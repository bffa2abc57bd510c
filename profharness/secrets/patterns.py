"""Texts without the secret values in them: what profharness writes itself, and what tools wrote.
Pure.

A value counts as secret by its variable's name (`names`, found by `heads`), by its own shape
(`shapes`), or where a library knows it (`known`). Findings name variables and kinds, never values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from profharness.secrets import heads, known, search, shapes
from profharness.secrets.heads import LONGEST_VALUE
from profharness.secrets.names import (
    MARKER,
    STEMS,
    is_given_secret,
    is_placeholder,
    is_secret,
)
from profharness.secrets.search import Span
from profharness.secrets.sieve import may_match, regions, which_may_match

_MARK = MARKER.encode()
_LONGEST_LINE = 4096
_LONGEST_BEGIN = 64
_LOGINS = (
    "-u",
    "--user",
    "--proxy-user",
    "--login",
    "--auth",
    "--creds",
)  # of curl, wget and their kin: name:password


# ---------------------------------------------------------------- what profharness writes


def clean_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment with the secret values replaced."""
    return {
        name: MARKER if is_secret(name, value) else clean_text(value)
        for name, value in variables.items()
    }


def clean_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line with the values of `--token=X`, `--token X` and `NAME_TOKEN=X` replaced."""
    cleaned: list[str] = []
    option = ""
    for word in argv:
        name, equals, value = word.partition("=")
        if option and not word.startswith("-") and is_given_secret(option.lstrip("-"), word):
            cleaned.append(MARKER)
        elif equals and re.fullmatch(r"[\w.-]+", name) and _is_assigned_secret(name, value):
            cleaned.append(f"{name}={MARKER}")
        elif name in _LOGINS and shapes.is_login(value):
            cleaned.append(f"{name}={value.partition(':')[0]}:{MARKER}")
        elif option in _LOGINS and shapes.is_login(word):
            cleaned.append(f"{word.partition(':')[0]}:{MARKER}")
        else:
            cleaned.append(clean_text(word))
        option = word if word.startswith("-") and not equals else ""
    return tuple(cleaned)


def clean_setting(value: object) -> object:
    """A value of a scan's settings, such as an address or a server's command line, with the secret
    values in its texts replaced.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return clean_argv(value)
    return value


def _is_assigned_secret(name: str, value: str) -> bool:
    judge = is_given_secret if name.startswith("-") else is_secret
    return judge(name.lstrip("-"), value)


def clean_text(text: str, found: Counter[str] | None = None) -> str:
    """The text with secret values replaced; `found` counts them by variable or kind."""
    raw = text.encode("utf-8", "surrogateescape")
    return b"".join(clean_blocks((raw,), Counter() if found is None else found)).decode(
        "utf-8", "surrogateescape"
    )


# ---------------------------------------------------------------- what tools wrote


def clean_blocks(blocks: Iterable[bytes], found: Counter[str]) -> Iterator[bytes]:
    r"""A text or JSON file in blocks, with the values of `"NAME": "value"`, of the same inside a
    JSON string (`\"`), of `NAME=value` and of known shapes replaced, and nothing else changed.
    `found` counts what was replaced by variable or kind.

    Memory is that of a block and 64 KiB. An unquoted value after `=` ends at a blank, a quote, a
    comma, `;`, `&`, `<` or `>`.
    """
    rest = b""
    for block in blocks:
        rest += block
        if len(rest) > 2 * LONGEST_VALUE:
            clean, rest = _cleaned(rest, _cut(rest), found)
            yield clean
    yield _cleaned(rest, len(rest), found)[0]


def secret_spans(text: bytes, end: int | None = None) -> list[Span]:
    """Start, end and variable (or kind) of each secret value in a text that begins before `end`, in
    order and apart from each other.
    """
    small = text.lower()
    stop = len(text) if end is None else end
    parts = [(low, min(high, stop)) for low, high in regions(small, _sieve()) if low < stop]
    found: list[Span] = []
    # of two that begin together the one that knows the variable's name
    for low, high, label in sorted(
        (
            *heads.spans(text, small, stop),
            *search.spans(text, parts, small),
            *known.spans(text, parts, small),
        ),
        key=lambda span: (span[0], span[2].startswith("(")),
    ):
        if found and low < found[-1][1]:
            # two views of one value, of which neither may be left in part
            found[-1] = (found[-1][0], max(high, found[-1][1]), found[-1][2])
        elif not is_placeholder(text[low : min(high, low + 256)].decode("utf-8", "replace")):
            found.append((low, high, label))
    return found


def same_length_marker(length: int) -> bytes:
    """What stands in place of a value of so many bytes where nothing else may move."""
    return _MARK.ljust(length, b"*") if length >= len(_MARK) else b"*" * length


def suspicious(block: bytes, is_name: Callable[[int], bool]) -> Iterator[int]:
    """Places in any bytes where a secret may stand: a name before a value, a value of a known
    shape, or where `is_name` says so of a word. What stands before and behind may be binary.
    """
    small = block.lower()
    yield from heads.places(block, small, is_name)
    parts = regions(small, _sieve())
    yield from search.places(block, parts, small)
    for stem in known.stems():
        yield from search.hits(small, stem, parts)


def may_hold_secrets(text: bytes) -> bool:
    """Whether a text holds any of the words without which it holds no secret."""
    small = text.lower()
    return any(stem in small for stem in STEMS) or may_match(small, _sieve())


def which_may_hold_secrets(texts: Sequence[bytes]) -> Sequence[int]:
    """The places of those texts of which `may_hold_secrets` says so."""
    stems = "|".join(re.escape(stem.decode()) for stem in STEMS)
    return which_may_match([text.lower() for text in texts], f"{stems}|{_sieve()}")


@lru_cache(maxsize=1)
def _sieve() -> str:
    """In RE2's syntax, what stands in every text in small letters that holds a value of a shape."""
    words = (re.escape(stem.decode()) for stem in known.stems())
    return "|".join(dict.fromkeys((*search.sieves(), *words)))


def _cut(text: bytes) -> int:
    """Where no name and no value of a known shape is cut in two, at a distance from the end: behind
    a line where lines are short, and never inside of the line before a key.
    """
    at = len(text) - LONGEST_VALUE
    line = text.rfind(b"\n", at - _LONGEST_LINE, at)
    if line >= 0:
        return line + 1
    lowest = at - LONGEST_VALUE // 2
    while at > lowest and text[at - 1] not in b" \n\t,{":
        at -= 1
    begin = text.rfind(b"-----BEGIN", at - _LONGEST_BEGIN, at)
    return begin if begin >= 0 else at


def _cleaned(text: bytes, end: int, found: Counter[str]) -> tuple[bytes, bytes]:
    """The text up to `end` (or up to the end of a value that crosses it) without secrets, and the
    text after it.
    """
    parts: list[bytes] = []
    at = 0
    for start, stop, label in secret_spans(text, end):
        parts += (text[at:start], _MARK)
        found[label] += 1
        at = stop
    end = max(end, at)
    return b"".join((*parts, text[at:end])), text[end:]
