from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.readers.bytes.json_scan import (
    last_border,
    pieces_at_borders,
    repair,
    scan,
    skip_gap,
)

nasty = st.text('{}[],:"\\ab \n', max_size=8)
values = st.recursive(
    nasty | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(nasty, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(nasty, values, max_size=4)


@pytest.mark.slow
@given(st.lists(objects, max_size=8), st.sampled_from([None, 1]), st.booleans())
def test_ends_of_elements_and_of_the_list(
    elements: list[Any], indent: int | None, escaped: bool
) -> None:
    pieces = [json.dumps(e, indent=indent, ensure_ascii=escaped).encode() for e in elements]
    text = b" ,\n ".join(pieces)
    found = scan(text + b'\n] , "more": [{}]')
    assert found.closed == len(text) + 1
    ends, at = [], 0
    for piece in pieces:
        at = text.index(piece, at) + len(piece)
        ends.append(at)
    assert found.ends.tolist() == ends


@pytest.mark.slow
@given(st.lists(objects, min_size=1, max_size=5), st.data())
def test_a_cut_text_has_the_elements_before_the_cut(
    elements: list[Any], data: st.DataObject
) -> None:
    pieces = [json.dumps(e).encode() for e in elements]
    text = b",".join(pieces)
    cut = data.draw(st.integers(0, len(text)))
    found = scan(text[:cut])
    assert found.closed is None
    lengths = [len(b",".join(pieces[: i + 1])) for i in range(len(pieces))]
    assert found.ends.tolist() == [length for length in lengths if length <= cut]


@pytest.mark.parametrize("slashes", range(6))
def test_escaped_quotes(slashes: int) -> None:
    text = b'{"a":"' + b"\\" * slashes + b'"}'
    assert (len(scan(text).ends) == 1) == (slashes % 2 == 0)


def test_borders_and_gaps() -> None:
    text = b'{"a":1} ,\n {"b":2}, {"c"'
    assert last_border(text, 0, 1000) == (text.index(b", {"), text.index(b'{"c"'))
    assert last_border(text, 0, 3) is None
    assert pieces_at_borders(text) == [b'{"a":1}', b'{"b":2}', b'{"c"']
    assert skip_gap(b" ,\n {") == 4


@given(objects)
def test_valid_json_is_not_changed_by_a_repair(value: Any) -> None:
    assert json.loads(repair(json.dumps(value, ensure_ascii=False).encode())) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            b'{"a": nan, "b": -inf, "c": Infinity, "d": "nan"}',
            {"a": None, "b": None, "c": None, "d": "nan"},
        ),
        (b'{"a": -nan(ind)}', {"a": None}),
        (b'{"a": "x\ty\n"}', {"a": "x\ty\n"}),
        (b'{"a": "C:\\Users\\new"}', {"a": "C:\\Users\new"}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
    ],
)
def test_repairs(text: bytes, value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        json.loads(text, parse_constant=_refuse)
    assert json.loads(repair(text)) == value


def _refuse(constant: str) -> None:
    raise ValueError(constant)
