from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.readers.bytes import json_scan
from profharness.readers.bytes.json_walk import DocumentEnds, JsonWalk

texts = st.text(alphabet='ab{}[],:"\\ é\n', max_size=8)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(10**12), 10**12), texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=20,
)
records = st.lists(
    st.one_of(st.dictionaries(texts, values, max_size=3), st.lists(scalars, max_size=3)),
    max_size=12,
)


class Numbered(msgspec.Struct):
    n: int


def walk_of(tmp: Path, text: str | bytes, block: int = 1 << 20) -> JsonWalk:
    path = tmp / "d.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return JsonWalk(path, block)


def read_all(walk: JsonWalk) -> dict[str, Any]:
    """Each second value is skipped."""
    found: dict[str, Any] = {}
    for number, key in enumerate(walk.members()):
        if number % 2:
            walk.skip()
        else:
            found[key] = walk.value(object)
    return found


@pytest.mark.slow
@settings(max_examples=80)
@given(st.dictionaries(texts, values, max_size=6), st.integers(2, 40), st.sampled_from([None, 1]))
def test_values_are_those_of_the_document(
    tmp_path_factory: pytest.TempPathFactory,
    document: dict[str, Any],
    block: int,
    indent: int | None,
) -> None:
    walk = walk_of(tmp_path_factory.mktemp("w"), json.dumps(document, indent=indent), block)
    assert read_all(walk) == {
        key: value for number, (key, value) in enumerate(document.items()) if not number % 2
    }


@pytest.mark.slow
@settings(max_examples=80)
@given(records, records, st.integers(2, 60), st.sampled_from([None, 2]))
def test_batches_hold_every_element_once(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[Any],
    second: list[Any],
    block: int,
    indent: int | None,
) -> None:
    walk = walk_of(
        tmp_path_factory.mktemp("w"),
        json.dumps({"a": first, "b": second, "c": 7}, indent=indent),
        block,
    )
    found: dict[str, Any] = {}
    for key in walk.members():
        found[key] = (
            walk.value(int)
            if key == "c"
            else [element for batch in walk.batches(object) for element in batch]
        )
    assert found == {"a": first, "b": second, "c": 7}
    assert walk.unreadable == 0


@settings(max_examples=60)
@given(st.integers(0, 400), st.integers(2, 50))
def test_a_cut_document_gives_what_is_whole_and_says_so(
    tmp_path_factory: pytest.TempPathFactory, length: int, block: int
) -> None:
    text = json.dumps({"names": {"x": [1, 2]}, "items": [{"n": n, "s": "},{"} for n in range(20)]})
    walk = walk_of(tmp_path_factory.mktemp("w"), text[:length] or " ", block)
    found: list[int] = []
    try:
        for key in walk.members():
            if key == "names":
                assert walk.value(dict) == {"x": [1, 2]}
            else:
                for batch in walk.batches(Numbered):
                    found += [record.n for record in batch]
        ended = False
    except DocumentEnds:
        ended = True
    assert ended == (length < len(text))
    assert found == list(range(text[:length].count('"},{"}') if length < len(text) else 20))


def test_elements_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    walk = walk_of(tmp_path, '{"items": [{"n": 1}, {"n": "x"}, {"m": 2}, {"n": 3}, [4]]}')
    found = [
        record.n for _ in walk.members() for batch in walk.batches(Numbered) for record in batch
    ]
    assert (found, walk.unreadable) == ([1, 3], 3)
    assert "n" in walk.first_error


def test_lists_are_counted_without_decoding(tmp_path: Path) -> None:
    walk = walk_of(tmp_path, '{"items": [{"n": [{}]}, [], {"m": "]"}], "none": [], "after": 1}', 8)
    counts = {key: walk.count() if key != "after" else walk.value(int) for key in walk.members()}
    assert counts == {"items": 3, "none": 0, "after": 1}


@pytest.mark.parametrize(
    "text",
    ["", "   ", "[1]", '{"a" 1}', '{"a": 1 "b": 2}', '{"a": [1, 2', '{"a": "never', "nothing"],
)
def test_what_is_no_object_ends(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentEnds):
        read_all(walk_of(tmp_path, text))


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert read_all(walk_of(tmp_path, b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}


def test_records_beyond_what_a_files_size_explains_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "many.json.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"[" + b'{"n":1},' * 2_000_000 + b'{"n":1}]')
    lengths: list[int] = []
    with pytest.raises(DocumentEnds, match="more records than a file of its size can"):
        lengths.extend(map(len, JsonWalk(path).batches(Numbered)))
    assert 0 < sum(lengths) < 1_000_000


def test_each_of_many_lists_in_a_block_is_looked_at_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def scan(text: bytes | memoryview) -> json_scan.Scan:
        looked.append(len(text))
        return whole(text)

    whole = json_scan.scan
    monkeypatch.setattr(json_scan, "scan", scan)
    lists = 2000
    text = json.dumps({str(n): [{"n": n}] * 3 for n in range(lists)})
    walk = walk_of(tmp_path, text)
    read = [[one.n for batch in walk.batches(Numbered) for one in batch] for _ in walk.members()]
    assert read == [[n] * 3 for n in range(lists)]
    assert sum(looked) < lists * 10_000  # not the rest of the block for each of them

    looked.clear()
    text = json.dumps({"long": [{"n": n} for n in range(100_000)]})
    walk = walk_of(tmp_path, text)
    for _ in walk.members():
        batches = list(walk.batches(Numbered))
    assert [one.n for batch in batches for one in batch] == list(range(100_000))
    assert sum(looked) < 2 * len(text)


@pytest.mark.parametrize("text", ["[", '{"a":['], ids=["lists", "objects"])
def test_a_value_of_brackets_alone_is_not_looked_through(tmp_path: Path, text: str) -> None:
    """The end of `[[[[` is looked for in numbers of eight bytes for each bracket, several times."""
    path = tmp_path / "d.json.gz"
    path.write_bytes(gzip.compress(('{"n":[' + text * 12_000_000).encode(), 1))
    for use in (JsonWalk.skip, JsonWalk.count, lambda walk: walk.value(list)):
        walk = JsonWalk(path)
        assert next(walk.members()) == "n"
        with pytest.raises(DocumentEnds, match="little but brackets"):
            use(walk)


def test_a_long_value_of_short_texts_is_read(tmp_path: Path) -> None:
    whole = [{"key": at, "value": "a"} for at in range(400_000)]
    walk = walk_of(tmp_path, json.dumps({"n": whole}, separators=(",", ":")))
    assert next(walk.members()) == "n"
    assert len(walk.value(list)) == len(whole)
