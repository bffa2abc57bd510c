from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.errors import InputError
from profharness.readers.bytes.json_stream import EventStream
from tests.readers.kineto.kineto_files import write


class Numbered(msgspec.Struct):
    n: int
    name: str = ""


nasty = st.text('{}[],"\\ab \n', max_size=10)
args = st.dictionaries(
    nasty, st.lists(st.dictionaries(nasty, nasty, max_size=2), max_size=3) | nasty, max_size=3
)


def read(path: Path, block: int = 1 << 20) -> tuple[list[Numbered], EventStream[Numbered]]:
    stream = EventStream(path, Numbered, block)
    return [event for batch in stream for event in batch], stream


@settings(max_examples=60)
@given(
    st.lists(st.tuples(nasty, args), max_size=12),
    st.integers(2, 400),
    st.sampled_from([None, 2]),
    st.booleans(),
    st.booleans(),
)
def test_any_block_size_gives_the_same_events(
    tmp_path_factory: pytest.TempPathFactory,
    contents: list[tuple[str, Any]],
    block: int,
    indent: int | None,
    as_list: bool,
    compressed: bool,
) -> None:
    path = tmp_path_factory.mktemp("blocks") / ("t.json.gz" if compressed else "t.json")
    events = [{"n": i, "name": name, "args": extra} for i, (name, extra) in enumerate(contents)]
    before = {"note": '"traceEvents": [', "deep": {"traceEvents": [1, {}]}}
    after = {"properties": [{"id": 0}, {"id": 1}], "baseTimeNanoseconds": 5}
    write(path, events if as_list else {**before, "traceEvents": events, **after}, indent=indent)
    found, stream = read(path, block)
    assert [(e.n, e.name) for e in found] == [(e["n"], e["name"]) for e in events]
    assert (stream.damage, stream.unreadable, stream.repaired, stream.events) == (
        "",
        0,
        0,
        len(events),
    )
    assert {key: json.loads(raw) for key, raw in stream.keys.items()} == (
        {} if as_list else before | after
    )
    assert stream.is_list == as_list


@settings(max_examples=60)
@given(st.data(), st.integers(2, 300))
def test_a_file_cut_anywhere_keeps_the_complete_events(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, block: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "t.json"
    events = [
        {"n": i, "name": '{["}, {' * (i % 3), "args": {"x": [{}, {"y": 1}]}} for i in range(9)
    ]
    head, tail = '{"schemaVersion": 1, "traceEvents": [', '], "baseTimeNanoseconds": 7}'
    ends = [
        len(head + ", ".join(json.dumps(e) for e in events[: i + 1])) for i in range(len(events))
    ]
    text = head + ", ".join(map(json.dumps, events)) + tail
    cut = data.draw(st.integers(ends[0], len(text) - 1))
    write(path, text[:cut])
    found, stream = read(path, block)
    assert [e.n for e in found] == [i for i, end in enumerate(ends) if end <= cut]
    assert stream.damage
    assert stream.unreadable == 0
    assert json.loads(stream.keys["schemaVersion"]) == 1
    assert next(p for p in stream.problems() if p.severity == "error").message.endswith(
        f"{len(found)} events were read"
    )


def test_the_clock_base_survives_damage_behind_the_events(tmp_path: Path) -> None:
    text = '{"traceEvents": [{"n": 1}], "baseTimeNanoseconds": 123, "props": [{"id": 0}, {"na'
    _, stream = read(write(tmp_path / "t", text))
    assert stream.keys == {"baseTimeNanoseconds": b"123"}
    assert stream.damage == "it ends early or is damaged behind its events"


def test_a_cut_gzip_keeps_what_was_decompressed(tmp_path: Path) -> None:
    text = json.dumps(
        {"traceEvents": [{"n": i, "name": str(i * 7919)} for i in range(20_000)]}
    ).encode()
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(text)[:-5000])
    found, stream = read(tmp_path / "t.json.gz")
    assert [e.n for e in found] == list(range(len(found)))
    assert 10_000 < len(found) < 20_000
    assert stream.damage == "it ends inside an event"


@pytest.mark.parametrize("tail", ["", ",", " ,\n"])
def test_a_list_that_is_not_closed(tmp_path: Path, tail: str) -> None:
    found, stream = read(write(tmp_path / "t", '[{"n": 1}, {"n": 2}' + tail))
    assert [e.n for e in found] == [1, 2]
    assert stream.damage == "its list of events is not closed"


def test_trailing_comma_before_the_end(tmp_path: Path) -> None:
    found, stream = read(write(tmp_path / "t", '[{"n": 1}, {"n": 2},\n]'))
    assert [e.n for e in found] == [1, 2]
    assert stream.damage == ""


@pytest.mark.parametrize("block", [2, 64, 1 << 20])
def test_events_that_do_not_fit_are_counted_and_the_rest_kept(tmp_path: Path, block: int) -> None:
    text = (
        '{"traceEvents": [{"n": 1}, {"n": "two"}, {"n": 3, "bw": inf}, 17, {"n": 4, "name": '
        '"a\tb"}, {"n": 5}]}'
    )
    found, stream = read(write(tmp_path / "t", text), block)
    assert [e.n for e in found] == [1, 3, 4, 5]
    assert found[2].name == "a\tb"
    assert (stream.unreadable, stream.repaired) == (2, 2)
    assert "Expected `int`" in stream.first_error
    assert [p.count for p in stream.problems()] == [2, 2]


def test_a_quote_that_is_missing_costs_only_its_neighbours(tmp_path: Path) -> None:
    parts = [json.dumps({"n": i, "name": f"k{i}"}) for i in range(50)]
    parts[20] = '{"n": 20, "name": "k20}'
    found, stream = read(write(tmp_path / "t", '{"traceEvents": [' + ", ".join(parts) + "]}"))
    assert {e.n for e in found} >= set(range(20)) | set(range(21, 49))
    assert stream.unreadable + bool(stream.damage) >= 1


def test_an_event_much_larger_than_a_block(tmp_path: Path) -> None:
    found, _ = read(
        write(tmp_path / "t", json.dumps([{"n": 1, "name": "x" * 300_000}, {"n": 2}])), 1000
    )
    assert [(e.n, len(e.name)) for e in found] == [(1, 300_000), (2, 0)]


def test_a_large_preamble(tmp_path: Path) -> None:
    found, stream = read(
        write(
            tmp_path / "t",
            json.dumps({"metadata": {"x": ["y" * 50] * 10_000}, "traceEvents": [{"n": 1}]}),
        ),
        4096,
    )
    assert [e.n for e in found] == [1]
    assert len(stream.keys["metadata"]) > 500_000


def test_no_events_is_no_error(tmp_path: Path) -> None:
    found, stream = read(write(tmp_path / "t", '\ufeff{"traceEvents": []}'))
    assert (found, stream.damage) == ([], "")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        "not json at all",
        '{"traceEvents": 5}',
        '{"traceEvents": [{"n": ',
        '{"x": {"traceEvents": [{"n": 1}]}}',
        '["',
        "[{]}",
        '{"traceEvents": [{"n": "x"}]}',
    ],
)
def test_nothing_usable_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read(write(tmp_path / "t", text))
    assert str(tmp_path / "t") in caught.value.message
    assert caught.value.hint


def test_events_beyond_what_a_files_size_explains_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "many.json.gz"
    with gzip.open(path, "wb") as file:
        file.write(b'{"traceEvents":[' + b'{"n":1},' * 2_000_000 + b'{"n":1}]}')
    events, stream = read(path)
    assert 500_000 <= len(events) < 1_000_000
    assert stream.damage == "it holds more events than a file of its size can"


@pytest.mark.parametrize("filling", [b"[],", b"1,"], ids=["lists", "numbers"])
def test_an_event_of_any_length_is_given_up_in_time(tmp_path: Path, filling: bytes) -> None:
    path = tmp_path / "long.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"traceEvents":[{"n":1},{"args":[' + filling * 10_000_000 + b"1]}]}")
    events, stream = read(path)
    assert [event.n for event in events] == [1]
    assert stream.damage == "an event is longer than 8 MiB"


@pytest.mark.parametrize(
    "text",
    [b'{"a":"' + b" " * (70 << 20), b'{"a":[' + b"1," * (35 << 20)],
    ids=["a string", "a list"],
)
def test_what_stands_before_the_events_is_given_up_in_time(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "late.json.gz"
    path.write_bytes(gzip.compress(text + b'],"traceEvents":[{"n":1}]}', 1))
    with pytest.raises(InputError, match="no list of trace events within its first 64 MiB"):
        read(path)


def test_what_stands_behind_the_events_is_given_up_in_time(tmp_path: Path) -> None:
    path = tmp_path / "long.json.gz"
    tail = b',"baseTimeNanoseconds":7,"a":"' + b" " * (150 << 20) + b'"}'
    path.write_bytes(gzip.compress(b'{"traceEvents":[{"n":1}]' + tail, 1))
    events, stream = read(path)
    assert [event.n for event in events] == [1]
    assert stream.damage == "more than 64 MiB stand behind its events"
    assert stream.keys == {"baseTimeNanoseconds": b"7"}
    assert len(stream._text) < 140 << 20
