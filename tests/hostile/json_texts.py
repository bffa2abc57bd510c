"""Changes of JSON documents: values, keys, kinds and depth; and of their text, which says what no
document object can (a key twice, numbers beyond all types, bytes that are no UTF-8).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from tests.hostile import extremes, raw

_MARK = "@number@"
_NUMBER = re.compile(rb"(?<=[:,\[ ])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[,}\]\s])")
_KEY = re.compile(rb'"[A-Za-z_][\w .]{0,40}"\s*:')
_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"(?=[,}\]])')
_DEEP = (200, 1000, 5000, 100_000)


def _value(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON value; numbers are marked texts, since no object holds all of them."""
    kind = rng.randrange(9 if depth < 2 else 6)
    if kind < 3:
        return _MARK + extremes.number(rng)
    if kind < 5:
        return extremes.text(rng)
    if kind == 5:
        return rng.choice((None, True, False, [], {}))
    if kind == 6:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {extremes.text(rng)[:50]: _value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return _deep(rng.choice((20, 90)), rng)


def _deep(levels: int, rng: random.Random) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def _containers(document: Any) -> list[Any]:
    """All lists and objects that hold something, the root first."""
    found, waiting = [], [document]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list) and one:
            found.append(one)
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return found


def _place(document: Any, rng: random.Random) -> tuple[Any, Any] | None:
    """A container and one of its keys: half of the time anywhere, else near the root, where there
    are few."""
    if rng.random() < 0.5:
        found = _containers(document)
        if not found:
            return None
        one = rng.choice(found)
    else:
        one = document
        while isinstance(one, dict | list) and one:
            children = list(one.values() if isinstance(one, dict) else one[:200])
            child = rng.choice(children)
            if not isinstance(child, dict | list) or not child or rng.random() < 0.3:
                break
            one = child
        if not isinstance(one, dict | list) or not one:
            return None
    return one, rng.choice(list(one)) if isinstance(one, dict) else rng.randrange(len(one))


def set_value(document: Any, rng: random.Random) -> Any:
    place = _place(document, rng)
    if place is None:
        return _value(rng)
    place[0][place[1]] = _value(rng)
    return document


def set_everywhere(document: Any, rng: random.Random) -> Any:
    """One key gets the same new value in all objects that have it, or each its own."""
    objects = [one for one in _containers(document) if isinstance(one, dict)]
    if not objects:
        return _value(rng)
    key, value, share = rng.choice(list(rng.choice(objects))), _value(rng), rng.choice((0.1, 1.0))
    own = rng.random() < 0.3
    for one in objects:
        if key in one and rng.random() < share:
            one[key] = _value(rng) if own else value
    return document


def remove(document: Any, rng: random.Random) -> Any:
    place = _place(document, rng)
    if place is not None:
        del place[0][place[1]]
    return document


def remove_everywhere(document: Any, rng: random.Random) -> Any:
    objects = [one for one in _containers(document) if isinstance(one, dict)]
    if objects:
        key = rng.choice(list(rng.choice(objects)))
        for one in objects:
            one.pop(key, None)
    return document


def rename(document: Any, rng: random.Random) -> Any:
    place = _place(document, rng)
    if place is not None and isinstance(place[0], dict):
        place[0][rng.choice(("x", "", place[1].upper(), "ts", "dur", "args"))] = place[0].pop(
            place[1]
        )
    return document


def wrap(document: Any, rng: random.Random) -> Any:
    """A value goes one level down, or its content one level up."""
    place = _place(document, rng)
    if place is None:
        return [document]
    old = place[0][place[1]]
    if isinstance(old, list) and old and rng.random() < 0.5:
        place[0][place[1]] = old[0]
    else:
        place[0][place[1]] = rng.choice(([old], {"a": old}, [old] * 3, str(old)[:1000]))
    return document


def exchange(document: Any, rng: random.Random) -> Any:
    """Two values of two places change places."""
    first, second = _place(document, rng), _place(document, rng)
    if first is None or second is None:
        return document
    one, other = first[0][first[1]], second[0][second[1]]
    if not isinstance(one, dict | list) and not isinstance(other, dict | list):
        first[0][first[1]], second[0][second[1]] = other, one
    return document


def copy_items(document: Any, rng: random.Random) -> Any:
    lists = [one for one in _containers(document) if isinstance(one, list)]
    if lists:
        one = rng.choice(lists)
        one.extend(one[rng.randrange(len(one)) :][:50] * rng.choice((1, 3)))
    return document


DOCUMENT: tuple[Callable[[Any, random.Random], Any], ...] = (
    set_value, set_value, set_value, set_everywhere, set_everywhere, remove, remove_everywhere,
    rename, wrap, exchange, copy_items,
)  # fmt: skip


def _at(pattern: re.Pattern[bytes], data: bytes, rng: random.Random) -> re.Match[bytes] | None:
    return pattern.search(data, rng.randrange(len(data) + 1)) or pattern.search(data)


def number_text(data: bytes, rng: random.Random) -> bytes:
    found = _at(_NUMBER, data, rng)
    if found is None:
        return data
    return data[: found.start()] + extremes.number(rng).encode() + data[found.end() :]


def key_twice(data: bytes, rng: random.Random) -> bytes:
    found = _at(_KEY, data, rng)
    if found is None:
        return data
    value = rng.choice((extremes.number(rng), '"x"', "null", "[]", "{}"))
    return data[: found.start()] + found.group() + value.encode() + b"," + data[found.start() :]


def deep_text(data: bytes, rng: random.Random) -> bytes:
    found = _at(_VALUE, data, rng) or _at(_NUMBER, data, rng)
    depth = rng.choice(_DEEP)
    opened, closed = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'{"traceEvents":[', b"]}")))
    deep = opened * depth + b"1" + closed * (depth if rng.random() < 0.8 else 0)
    return deep if found is None else data[: found.start()] + deep + data[found.end() :]


def bad_text(data: bytes, rng: random.Random) -> bytes:
    """Escapes and bytes inside of a text that are no characters."""
    found = _at(_VALUE, data, rng)
    if found is None:
        return data
    evil = rng.choice((*extremes.BYTES, b"\\ud800", b"\\u0000", b"\\x", b"\\"))
    return data[: found.start() + 1] + evil + data[found.start() + 1 :]


TEXT: tuple[raw.Change, ...] = (number_text, number_text, key_twice, deep_text, bad_text)


def change(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The document with one change, and its name. What is no document any more, because of earlier
    changes, is changed as bytes.
    """
    if rng.random() < 0.3:
        chosen = rng.choice(TEXT)
        return chosen(data, rng), f"json.{chosen.__name__}"
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return raw.change(data, rng)
    change_it = rng.choice(DOCUMENT)
    document = change_it(document, rng)
    text = json.dumps(document, separators=(",", ":"))
    text = re.sub(f'"{_MARK}([^"]*)"', r"\1", text)
    return text.encode(errors="surrogatepass"), f"json.{change_it.__name__}"
