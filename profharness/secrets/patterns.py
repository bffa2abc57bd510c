"""Which variables hold secrets, and texts without their values: what profharness writes itself, and
what tools wrote. Pure.

A value counts as secret by its variable's name (`HF_TOKEN`, `--password=`) or by its own shape (a
GitHub or Hugging Face token, a cloud access key, a JSON web token). Names are judged word by word,
so that AUTHOR, KEYBOARD and TOKENIZERS are none. Findings name variables and kinds, never values.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

MARKER = "[removed by profharness]"
_MARK = MARKER.encode()

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# secret wherever they stand in a name
_STRONG = frozenset(
    {
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWORDS",
        "PASSWD",
        "PASSPHRASE",
        "APIKEY",
        "CREDENTIAL",
        "CREDENTIALS",
        "JWT",
        "SSHPASS",
    }
)
_PAIRS = frozenset(
    {
        ("API", "KEY"),
        ("ACCESS", "KEY"),
        ("PRIVATE", "KEY"),
        ("SIGNING", "KEY"),
        ("ENCRYPTION", "KEY"),
        ("ACCOUNT", "KEY"),
        ("MYSQL", "PWD"),
    }
)
# secret only as the last word, and with a value long enough to be one: traces of language models
# are full of tokens
_WEAK = frozenset({"TOKEN", "AUTH", "OAUTH", "AUTHORIZATION", "COOKIE"})
_ENDINGS = ("PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "APIKEY")
_NOT_VALUES = frozenset(
    {
        "FILE",
        "PATH",
        "DIR",
        "DIRECTORY",
        "SOCK",
        "SOCKET",
        "LENGTH",
        "LEN",
        "COUNT",
        "SIZE",
        "TYPE",
        "METHOD",
        "MODE",
        "HOST",
        "PORT",
        "LIMIT",
        "TIMEOUT",
        "ENABLED",
    }
)
_OF_LANGUAGE_MODELS = frozenset(
    {"BOS", "EOS", "PAD", "UNK", "MASK", "CLS", "SEP", "SPECIAL", "ADDED", "STOP", "PER"}
)
_PLAIN = frozenset({"", "0", "1", "true", "false", "yes", "no", "on", "off", "none", "null"})
_WEAK_LENGTH = 8

# every secret name holds one of these in small letters: they are found fast, and only their
# surroundings are looked at closely
STEMS = tuple(
    stem.encode()
    for stem in (
        "token",
        "secret",
        "passw",
        "passphrase",
        "sshpass",
        "key",
        "credential",
        "jwt",
        "auth",
        "cookie",
        "pwd",
    )
)
NAME = re.compile(rb"[\w.-]+")
_REST_OF_HEAD = re.compile(rb"""[\w.-]{0,128}(?:\\*"\s*:|=)""")
_NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_LONGEST_NAME = 128
# a value that is longer is no secret; whole blocks keep this much text ahead
_LONGEST_VALUE = 64 << 10

_HEAD = re.compile(rb"""(\w[\w.-]{0,127})(?:(\\*)"\s*:\s*(\\*)"|=)""")
# a double quote after `=` may as well end the surrounding JSON string, so that a quoted value has
# to look like one
_QUOTED = re.compile(rb"""(\\*)"([^\s",:{}\[\]\\]+)\1"|'([^'"\\\n]+)'""")
_BARE = re.compile(rb"""[^\s"'\\,;&<>\x00]+""")


@dataclass(frozen=True)
class _Shape:
    """Values that are secret whatever their variable is called; `stem` stands in each in small
    letters, the last group is the value.

    The pattern is compiled once its stem is met, which in most texts none is.
    """

    label: str
    stem: bytes
    pattern: bytes


_SHAPES = (
    _Shape("(Hugging Face token)", b"hf_", rb"(?<![A-Za-z0-9_])(hf_[A-Za-z0-9]{30,})"),
    *(
        _Shape("(GitHub token)", stem, rb"(?<![A-Za-z0-9_])(" + stem + rb"[A-Za-z0-9_]{30,})")
        for stem in (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_")
    ),
    _Shape("(GitLab token)", b"glpat-", rb"(?<![A-Za-z0-9_])(glpat-[\w-]{20,})"),
    _Shape("(cloud access key)", b"akia", rb"(?<![A-Za-z0-9])(AKIA[A-Z0-9]{16})(?![A-Za-z0-9])"),
    _Shape("(cloud access key)", b"asia", rb"(?<![A-Za-z0-9])(ASIA[A-Z0-9]{16})(?![A-Za-z0-9])"),
    _Shape("(JSON web token)", b"eyj", rb"(?<![A-Za-z0-9_])(eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)"),
    _Shape("(bearer token)", b"bearer ", rb"(?i:bearer) ([\w.~+/-]{16,}=*)"),
    _Shape("(password in an address)", b"://", rb"://[^/\s:@\"'\\]{1,64}:([^/\s:@\"'\\]{1,128})@"),
)


def looks_secret(name: str) -> bool:
    """Whether a variable, option or JSON key of this name holds a secret."""
    return _strength(name) > 0


def is_secret(name: str, value: str) -> bool:
    """Whether this value of this variable is a secret that is still there."""
    strength = _strength(name)
    if not strength or value.startswith(MARKER) or not value.strip("*") or value.lower() in _PLAIN:
        return False
    return strength == 2 or len(value) >= _WEAK_LENGTH


@lru_cache(maxsize=4096)
def _strength(name: str) -> int:
    """2 for names that say so by any word, 1 for those whose last word may mean something else, 0
    for others.
    """
    words = [word.upper() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words or words[-1] in _NOT_VALUES:
        return 0
    if any(word in _STRONG or word.endswith(_ENDINGS) for word in words) or any(
        pair in _PAIRS for pair in itertools.pairwise(words)
    ):
        return 2
    is_weak = words[-1] in _WEAK or words[-1].endswith("TOKEN")
    return int(is_weak and not (len(words) > 1 and words[-2] in _OF_LANGUAGE_MODELS))


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
        if option and not word.startswith("-") and is_secret(option, word):
            cleaned.append(MARKER)
        elif equals and re.fullmatch(r"[\w.-]+", name) and is_secret(name, value):
            cleaned.append(f"{name}={MARKER}")
        else:
            cleaned.append(clean_text(word))
        option = word if word.startswith("-") and not equals else ""
    return tuple(cleaned)


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
        if len(rest) > 2 * _LONGEST_VALUE:
            clean, rest = _cleaned(rest, _cut(rest), found)
            yield clean
    yield _cleaned(rest, len(rest), found)[0]


def secret_spans(text: bytes) -> list[tuple[int, int, str]]:
    """Start, end and variable (or kind) of each secret value in a text, in order and apart from
    each other.
    """
    found: list[tuple[int, int, str]] = []
    small = text.lower()
    # of two that begin together the one that knows the variable's name
    for start, stop, label in sorted(
        (*_named(text, small, len(text)), *_shaped(text, small, len(text))),
        key=lambda span: (span[0], span[2].startswith("(")),
    ):
        if (not found or start >= found[-1][1]) and not text.startswith(_MARK, start):
            found.append((start, stop, label))
    return found


def same_length_marker(length: int) -> bytes:
    """What stands in place of a value of so many bytes where nothing else may move."""
    return _MARK.ljust(length, b"*") if length >= len(_MARK) else b"*" * length


def suspicious(text: bytes, is_name: Callable[[int], bool]) -> Iterator[int]:
    """Places in any bytes where a secret may stand: a name before a value, a value of a known
    shape, or where `is_name` says so of a word.
    """
    small = text.lower()
    for stem in STEMS:
        yield from (
            hit
            for hit in _hits(small, stem, len(small))
            if _REST_OF_HEAD.match(text, hit) or is_name(hit)
        )
    yield from (start for start, _, _ in _shaped(text, small, len(small)))


def may_hold_secrets(small: bytes) -> bool:
    """Whether a text in small letters holds any of the words without which it holds no secret."""
    return any(stem in small for stem in (*STEMS, *(shape.stem for shape in _SHAPES)))


def _cut(text: bytes) -> int:
    """Where no name and no value of a known shape is cut in two, at a distance from the end."""
    at = len(text) - _LONGEST_VALUE
    lowest = at - _LONGEST_VALUE // 2
    while at > lowest and text[at - 1] not in b" \n\t,{":
        at -= 1
    return at


def _cleaned(text: bytes, end: int, found: Counter[str]) -> tuple[bytes, bytes]:
    """The text up to `end` (or up to the end of a value that crosses it) without secrets, and the
    text after it.
    """
    parts: list[bytes] = []
    small = text.lower()
    at = 0
    # of two that begin together the one that knows the variable's name
    for start, stop, label in sorted(
        (*_named(text, small, end), *_shaped(text, small, end)),
        key=lambda span: (span[0], span[2].startswith("(")),
    ):
        if start < at or text.startswith(_MARK, start):
            continue
        parts += (text[at:start], _MARK)
        found[label] += 1
        at = stop
    end = max(end, at)
    return b"".join((*parts, text[at:end])), text[end:]


def _named(text: bytes, small: bytes, end: int) -> Iterator[tuple[int, int, str]]:
    """Start, end and variable of the values whose names look secret and begin before `end`."""
    last = -1
    for hit in sorted({hit for stem in STEMS for hit in _hits(small, stem, end)}):
        start = _name_start(text, hit)
        head = _HEAD.match(text, start) if start != last and start < end else None
        last = start
        span = _value(text, head) if head else None
        if head and span:
            name, value = (
                head[1].decode("ascii", "replace"),
                text[slice(*span)].decode("utf-8", "replace"),
            )
            if is_secret(name, value):
                yield (*span, name)


def _shaped(text: bytes, small: bytes, end: int) -> Iterator[tuple[int, int, str]]:
    for shape in _SHAPES:
        after = 0
        for hit in _hits(small, shape.stem, end):
            match = re.compile(shape.pattern).match(text, hit) if hit >= after else None
            if match:
                after = match.end()
                yield (*match.span(1), shape.label)


def _hits(small: bytes, stem: bytes, end: int) -> Iterator[int]:
    at = small.find(stem)
    while 0 <= at < end:
        yield at
        at = small.find(stem, at + 1)


def _name_start(text: bytes, at: int) -> int:
    lowest = max(at - _LONGEST_NAME, 0)
    while at > lowest and text[at - 1] in _NAME_BYTES:
        at -= 1
    while text[at] in b"-.":
        at += 1
    return at


def _value(text: bytes, head: re.Match[bytes]) -> tuple[int, int] | None:
    """Where the value after a name stands, None where there is none."""
    start = head.end()
    if head[2] is not None:
        stop = _string_end(text, start, len(head[2])) if head[2] == head[3] else -1
        return (start, stop) if stop > start else None
    quoted = _QUOTED.match(text, start)
    if quoted:
        return quoted.span(2 if quoted[2] is not None else 3)
    bare = _BARE.match(text, start, start + _LONGEST_VALUE)
    return bare.span() if bare else None


def _string_end(text: bytes, start: int, depth: int) -> int:
    """Where a JSON string ends whose own quotes carry `depth` backslashes (0, 1 or 3: a string
    inside strings); -1 where it does not.

    RFC 8259: each level of quoting doubles the backslashes and adds one, so that a quote ends the
    string exactly where the number of backslashes before it is `depth` modulo twice `depth + 1`.
    """
    at = text.find(b'"', start, start + _LONGEST_VALUE)
    while at >= 0:
        before = at
        while before > start and text[before - 1] == 0x5C:
            before -= 1
        if (at - before) % (2 * (depth + 1)) == depth:
            return at - depth
        at = text.find(b'"', at + 1, start + _LONGEST_VALUE)
    return -1
