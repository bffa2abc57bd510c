"""Values whose variable, option or key says that they are secret, in the spellings of files:
`NAME=X`, `"NAME": "X"` at any depth of strings, `NAME: X`, `--name X`, cells of tables and tags.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from profharness.secrets.names import STEMS, is_expression, is_loose_secret, is_secret, looks_secret
from profharness.secrets.search import Span, hits

NAME = re.compile(rb"[\w.-]+")
_NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_LONGEST_NAME = 128
_WHOLE_NAME = re.compile(rb"\w[\w.-]{0,127}")
# a value that is longer is no secret; whole blocks keep this much text ahead
LONGEST_VALUE = 64 << 10
_JUDGED = 1024  # bytes of a value: what is no secret for its words or its form is shorter

_KEY = re.compile(rb"""(\\*)"\s*:\s*(\\*)\"""")
# a double quote after `=` may as well end the surrounding JSON string, so that a quoted value has
# to look like one
_QUOTED = re.compile(rb"""(\\*)"([^\s",:{}\[\]\\]+)\1"|'([^'"\\\n]+)'""")
_BARE = re.compile(rb"""[^\s"'\\,;&<>\x00]+""")
_REST_OF_HEAD = re.compile(
    rb"""[\w.-]{0,128}(?:\\*"\s*[:,]|\\*'\s*[:,]|=|:\s|[ \x00,\t]|\s*=|\s*</?|>|&(?:quot|\#34);)"""
)
_LOOSE = rb"""([^\s"'\\,;&<>()\[\]{}$\x00]+)(?=[\s"'\\,;&<>\x00]|$)"""
_ENTITY = rb"""&(?:quot|\#34|\#x27|\#39);"""

Value = tuple[int, int, bool]
"""Start and end of a value, and whether words of a sentence may stand in the same way."""


@dataclass(frozen=True)
class _Form:
    """How a value stands behind its name; the last group is the value."""

    pattern: re.Pattern[bytes]
    is_loose: bool


def _strict(pattern: bytes) -> _Form:
    return _Form(re.compile(pattern), is_loose=False)


def _loose(pattern: bytes) -> _Form:
    return _Form(re.compile(pattern), is_loose=True)


# by the byte that follows the name
_FORMS: dict[bytes, tuple[_Form, ...]] = {
    b"'": (_strict(rb"""'\s*:\s*'([^'\\\n]{1,4096})'"""),),
    b"&": (_strict(_ENTITY + rb"""\s*:\s*""" + _ENTITY + rb"""([^<>&\n]{1,4096})""" + _ENTITY),),
    b"<": (_strict(rb"""</t[dh]>\s*<t[dh][^>]{0,256}>([^<>\n]{1,4096})<"""),),
    b">": (_strict(rb""">([^<>\n]{1,4096})</"""),),
    b":": (_loose(rb""":[ \t]+\\*["']?""" + _LOOSE),),
    b" ": (
        _strict(rb"""[ \t]+=[ \t]*\\*["]([^"\\\s]{5,4096})\\*["]"""),
        _loose(rb"""[ \t]+[:=][ \t]*["']?""" + _LOOSE),
    ),
    b"\t": (_loose(rb"""\t""" + _LOOSE), _loose(rb"""\t+=[ \t]*["']?""" + _LOOSE)),
    b",": (_loose(rb""",["']?""" + _LOOSE),),
    # `- name: X` and `value: Y` below it, as pods and services are described
    b"\n": (_strict(rb"""\n[ ]*value:[ \t]+["']?([^\s"'\\]{1,4096})"""),),
}
_AFTER_EQUALS = (
    _strict(rb"""=[ \t]+\\*["]([^"\\\s]{5,4096})\\*["]"""),
    _loose(rb"""=[ \t]+\\*["']?""" + _LOOSE),
)
# behind an option, whose hyphens stand before it
_OF_OPTIONS: dict[bytes, tuple[_Form, ...]] = {
    b" ": (_loose(rb"""[ ]+["']?([^\s"'\\,;&<>\x00-][^\s"'\\,;&<>\x00]*)"""),),
    b"\x00": (_strict(rb"""\x00([^-\x00][^\x00]*)"""),),
    b"'": (_strict(rb"""'\s*,\s*'([^'\\\n-][^'\\\n]*)'"""),),
}
_CELLS = (b",", b"\t")
_CELL_STARTS = (b"", b"\n", b",", b"\t", b'"', b"n")  # `n`: of a line's end in a JSON string
_LISTED = re.compile(rb"""(\\*)"\s*,\s*(\\*)"(?!-)""")
_CELL = re.compile(rb"""","([^"\\\n]{5,4096})\"""")
_CALLED = re.compile(rb"""(?:name|key|tag|variable|env)\\*"\s*:\s*\\*"\Z""")
_VALUE_BEHIND = re.compile(rb"""(\\*)"\s*,\s*\\*"value\\*"\s*:\s*(\\*)\"""")


def spans(text: bytes, small: bytes, end: int) -> Iterator[Span]:
    """Start, end and name of the values whose names begin before `end`; `small` is the text in
    small letters.
    """
    last = -1
    assigned = (0, 0)
    for hit in sorted({hit for stem in STEMS for hit in hits(small, stem, ((0, end),))}):
        start = _name_start(text, hit)
        if start == last or start >= end:
            continue
        last = start
        whole = _WHOLE_NAME.match(text, start)
        name = whole[0].decode("ascii", "replace") if whole else ""
        if not whole or not looks_secret(name.rstrip(".-")):
            continue
        if _is_inside(assigned, text, whole.end()):
            continue
        value = _value(text, start, whole.end())
        if value is None:
            continue
        held = text[value[0] : min(value[1], value[0] + _JUDGED)].decode("utf-8", "replace")
        if (is_loose_secret if value[2] else is_secret)(name, held):
            yield value[0], value[1], name
            if value[0] == whole.end() + 1 and text[whole.end() : value[0]] == b"=":
                assigned = value[:2]


def _is_inside(assigned: tuple[int, int], text: bytes, at: int) -> bool:
    """Whether a value behind `=` at this place lies within one that was found already and is not
    quoted: a line of a million assignments is one value, and must not be read to its end for each.
    Near the end of a value that was not read to its own end, a further one may be longer.
    """
    begin, end = assigned
    is_cut = end - begin >= LONGEST_VALUE - 1
    return text[at : at + 1] == b"=" and begin <= at and at + 1 < end - (_JUDGED if is_cut else 0)


def places(block: bytes, small: bytes, is_name: Callable[[int], bool]) -> Iterator[int]:
    """Where in any bytes a secret name may stand with a value behind it, or where `is_name` says
    so of a word.
    """
    for stem in STEMS:
        yield from (
            hit
            for hit in hits(small, stem, ((0, len(small)),))
            if _REST_OF_HEAD.match(block, hit) or is_name(hit)
        )


def _name_start(text: bytes, at: int) -> int:
    lowest = max(at - _LONGEST_NAME, 0)
    while at > lowest and text[at - 1] in _NAME_BYTES:
        at -= 1
    while text[at] in b"-.":
        at += 1
    # the letter of an escaped line's end inside a JSON string
    return at + (text[at - 1 : at] == b"\\" and text[at : at + 1] in (b"n", b"t", b"r"))


def _value(text: bytes, start: int, stop: int) -> Value | None:
    """Where the value of the name in between stands, None where there is none."""
    mark = text[stop : stop + 1]
    if mark == b"=":
        return _assigned(text, stop)
    is_option = text[max(start - 1, 0) : start] == b"-"
    if mark in b'"\\' and mark:
        return _in_strings(text, start, stop, is_option)
    if mark == b">" and text[max(start - 1, 0) : start] != b"<":
        return None
    if mark in _CELLS and text[max(start - 1, 0) : start] not in _CELL_STARTS:
        return None
    forms = _FORMS.get(mark, ())
    return _first((*_OF_OPTIONS.get(mark, ()), *forms) if is_option else forms, text, stop)


def _first(forms: Iterable[_Form], text: bytes, at: int) -> Value | None:
    for form in forms:
        if match := form.pattern.match(text, at, at + LONGEST_VALUE):
            return (*match.span(match.re.groups), form.is_loose)
    return None


def _assigned(text: bytes, at: int) -> Value | None:
    """Behind `=`; `==` compares, or names a version."""
    if text.startswith(b"==", at):
        return None
    quoted = _QUOTED.match(text, at + 1, at + LONGEST_VALUE)
    if quoted:
        return (*quoted.span(2 if quoted[2] is not None else 3), False)
    bare = _BARE.match(text, at + 1, at + LONGEST_VALUE)
    if bare is None:
        return _first(_AFTER_EQUALS, text, at)
    head = text[bare.start() : min(bare.end(), bare.start() + _JUDGED)].decode("utf-8", "replace")
    return None if is_expression(head) else (*bare.span(), False)


def _in_strings(text: bytes, start: int, stop: int, is_option: bool) -> Value | None:
    """Behind a name that ends its own string: `"NAME": "X"`, `"--name", "X"`, and
    `"name": "NAME", "value": "X"`.
    """
    for pattern, applies in (
        (_KEY, True),
        (_LISTED, is_option),
        (_VALUE_BEHIND, _CALLED.search(text, max(start - 32, 0), start) is not None),
    ):
        head = pattern.match(text, stop) if applies else None
        if head and head[1] == head[2]:
            end = _string_end(text, head.end(), len(head[1]))
            return (head.end(), end, False) if end > head.end() else None
    cell = _CELL.match(text, stop) if text[start:stop].isupper() else None
    return (*cell.span(1), True) if cell else None


def _string_end(text: bytes, start: int, depth: int) -> int:
    """Where a JSON string ends whose own quotes carry `depth` backslashes (0, 1 or 3: a string
    inside strings); -1 where it does not.

    RFC 8259: each level of quoting doubles the backslashes and adds one, so that a quote ends the
    string exactly where the number of backslashes before it is `depth` modulo twice `depth + 1`.
    """
    at = text.find(b'"', start, start + LONGEST_VALUE)
    while at >= 0:
        before = at
        while before > start and text[before - 1] == 0x5C:
            before -= 1
        if (at - before) % (2 * (depth + 1)) == depth:
            return at - depth
        at = text.find(b'"', at + 1, start + LONGEST_VALUE)
    return -1
