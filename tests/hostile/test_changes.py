"""The changes themselves: always the same for the same number, and really changes."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import program
from tests.hostile import (
    databases,
    extremes,
    folders,
    json_texts,
    lines,
    messages,
    packed,
    raw,
    tables,
)
from tests.hostile.choosing import Chooser
from tests.hostile.seeds import File, Seed

EVENTS = {
    "traceEvents": [{"name": f"k{n}", "ts": n, "dur": 2.5, "args": {"a": [1, 2]}} for n in range(9)]
}
TEXTS = {
    "json": json.dumps(EVENTS).encode(),
    "csv": b"Name,Start,End\n" + b"".join(b'"k,%d",%d,%d\n' % (n, n, n + 5) for n in range(9)),
    "lines": b"".join(b":3: %d us: hipLaunchKernel ( 0x%x, %d )\n" % (n, n, n) for n in range(9)),
    "protobuf": messages.Field(
        1, 2, messages.Field(8, 0, messages.varint(300)).encoded() * 3
    ).encoded()
    * 4,
}
CHANGES = {
    "json": json_texts.change,
    "csv": tables.change,
    "lines": lines.change,
    "protobuf": messages.change,
}


@pytest.mark.parametrize("kind", CHANGES)
def test_most_changes_change_something_and_come_again(kind: str) -> None:
    names, changed = Counter(), 0
    for number in range(300):
        data, name = CHANGES[kind](TEXTS[kind], random.Random(number))
        assert (data, name) == CHANGES[kind](TEXTS[kind], random.Random(number))
        names[name] += 1
        changed += data != TEXTS[kind]
    assert changed > 240
    assert len(names) >= 5, names


@pytest.mark.parametrize("kind", CHANGES)
@settings(max_examples=60)
@given(data=st.binary(max_size=300), seed=st.integers(0, 1 << 30))
def test_what_earlier_changes_left_is_changed_on(kind: str, data: bytes, seed: int) -> None:
    assert isinstance(CHANGES[kind](data, random.Random(seed))[0], bytes)
    assert isinstance(packed.cut(data, random.Random(seed)), bytes)
    for change in raw.CHANGES:
        assert isinstance(change(data, random.Random(seed)), bytes)


@given(st.recursive(st.integers(0, 1 << 63).map(messages.varint), lambda inner: st.lists(
    st.tuples(st.integers(1, 3000), inner), max_size=4).map(
    lambda fields: b"".join(messages.Field(n, 2, value).encoded() for n, value in fields))))  # fmt: skip
def test_a_message_is_its_fields(data: bytes) -> None:
    fields = messages.parse(data)
    assert fields is None or b"".join(field.encoded() for field in fields) == data


def test_databases_are_changed_by_sql_and_stay_databases(tmp_path: Path) -> None:
    data = write_rocpd(tmp_path / "given.db", program(1, 6)).read_bytes()
    names: Counter[str] = Counter()
    for number in range(60):
        changed, name = databases.change(data, random.Random(number), tmp_path)
        names[name] += changed != data
        assert not (tmp_path / "changing.db").exists()
    assert len([name for name, count in names.items() if count]) >= 12, names
    path = tmp_path / "cell.db"
    path.write_bytes(data)
    with sqlite3.connect(path, isolation_level=None) as database:
        before = set(database.iterdump())
        for number in range(9):
            databases.set_column(database, random.Random(number))
        assert set(database.iterdump()) != before
    database.close()


def test_a_packed_file_that_grows_is_small_and_grows(tmp_path: Path) -> None:
    data = packed.bomb(b"head", random.Random(3))
    assert len(data) < 6 << 20
    path = tmp_path / "bomb.gz"
    path.write_bytes(data)
    with gzip.open(path) as file:
        assert file.read(4) == b"head"
        file.seek(64 << 20)
        assert len(set(file.read(1000))) == 1


@pytest.mark.parametrize("change", sorted(set(folders.CHANGES), key=lambda one: one.__name__))
def test_folders_are_changed(tmp_path: Path, change: folders.Change) -> None:
    def state() -> list[tuple[object, ...]]:
        return [
            (path, path.is_symlink(), path.is_fifo(), path.is_file() and path.stat().st_size < 99 and path.read_bytes())
            for path in sorted(tmp_path.rglob("*"))
        ]  # fmt: skip

    for name in ("a/one.csv", "a/two.csv", "three.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    before = state()
    for number in range(4):  # two equal choices exchange nothing
        if state() == before:
            change(tmp_path, random.Random(number))
    if change is folders.sparse:
        assert max(path.stat().st_size for path in tmp_path.rglob("*")) > 1 << 28
    else:
        assert state() != before


def test_no_change_leaves_the_folder(tmp_path: Path) -> None:
    """What a link of an earlier change leads to is not written to."""
    outside = tmp_path / "outside"
    outside.write_text("as it was")
    for number in range(80):
        inside = tmp_path / str(number)
        inside.mkdir()
        for name in ("one", "two"):
            (inside / name).symlink_to(outside)
        (inside / "three").write_text("3")
        (inside / "up").symlink_to(tmp_path)
        for change in range(5):
            folders.change(inside, random.Random(5 * number + change))
    assert outside.read_text() == "as it was"
    assert len(list(tmp_path.iterdir())) == 81


def test_a_try_comes_again_from_its_number(tmp_path: Path) -> None:
    seeds = [Seed("a", "x.json", (File("x.json", TEXTS["json"], "json"),)),
             Seed("b", "run", (File("c/y.csv", TEXTS["csv"], "csv"), File("z.json", TEXTS["json"], "json")), "run")]  # fmt: skip
    chooser = Chooser(seeds, 7)
    made = {}
    for number in (1, 2, 3, 4, 5, 6, 2, 5):
        one = chooser.make(number, tmp_path / "work")
        held = [
            path.read_bytes()
            for path in sorted(one.path.rglob("*"))
            if path.is_file() and path.stat().st_size < 1 << 20
        ]
        held += [one.path.read_bytes()] if one.path.is_file() else []
        assert made.setdefault(number, (one, held)) == (one, held)
    assert {one.format for one, _ in made.values()} == {"a", "b"}
    assert Chooser(seeds, 7, ["b"]).make(1, tmp_path / "work").format == "b"


def test_extremes_hold_numbers_of_every_size() -> None:
    found = {extremes.number(random.Random(n)) for n in range(2000)}
    assert {"9223372036854775808", "NaN", "1e309"} <= found
