from __future__ import annotations

import gzip
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.errors import InputError
from profharness.rundir.blocks import ANY_RATIO_BYTES, LARGEST_RATIO, Blocks, read_head

TEXT = b"".join(b"line %d of something that compresses\n" % i for i in range(20_000))


def all_of(path: Path, size: int = 1 << 16) -> tuple[bytes, str]:
    blocks = Blocks(path, size)
    return b"".join(blocks), blocks.damage


@pytest.mark.parametrize("size", [2, 100, 1 << 20])
def test_plain_and_gzip_give_the_same_bytes(tmp_path: Path, size: int) -> None:
    text = TEXT[:20_000]
    (tmp_path / "a").write_bytes(text)
    (tmp_path / "b").write_bytes(gzip.compress(text))
    for name in "ab":
        assert all_of(tmp_path / name, size) == (text, "")


def test_blocks_are_bounded_and_not_empty(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(gzip.compress(bytes(1_000_000)))
    lengths = [len(block) for block in Blocks(tmp_path / "b", 4096)]
    assert max(lengths) <= 4096
    assert min(lengths) > 0
    assert sum(lengths) == 1_000_000


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(gzip.compress(b"one ") + gzip.compress(b"two"))
    assert all_of(tmp_path / "b") == (b"one two", "")


@pytest.mark.slow
@given(st.integers(30, 2000))
def test_a_cut_gzip_gives_what_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "b"
    compressed = gzip.compress(TEXT)
    path.write_bytes(compressed[:-cut])
    text, damage = all_of(path)
    assert TEXT.startswith(text)
    assert "ends early" in damage
    assert len(text) > len(TEXT) * (1 - (cut + 1024) / len(compressed)) - 200_000


def test_damage_inside_gzip_keeps_what_is_before_it(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(400_000)
    compressed = bytearray(gzip.compress(noise))
    compressed[300_000:300_200] = b"\xff" * 200
    (tmp_path / "b").write_bytes(compressed)
    text, damage = all_of(tmp_path / "b")
    assert "damaged" in damage
    assert len(text) >= 290_000
    assert text[:290_000] == noise[:290_000]


def test_bytes_behind_the_gzip_data_are_named(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(gzip.compress(b"one") + b"garbage")
    assert all_of(tmp_path / "b") == (b"one", "bytes that are not gzip follow its compressed data")


def test_head(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    assert read_head(tmp_path / "a", 10) == TEXT[:10]
    (tmp_path / "short").write_bytes(b"ab")
    assert read_head(tmp_path / "short", 10) == b"ab"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty", b"", "is empty"),
        ("cut.gz", gzip.compress(TEXT, mtime=0)[:8], "ends early"),
        ("broken.gz", b"\x1f\x8b" + bytes(100), "damaged"),
    ],
)
def test_head_of_nothing_readable(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_head(tmp_path / name, 10)
    assert caught.value.hint


def test_missing_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_head(tmp_path / "no", 10)
    with pytest.raises(InputError, match="is a folder"):
        read_head(tmp_path, 10)


@settings(max_examples=30, deadline=None)
@given(
    st.binary(max_size=3000),
    st.integers(2, 700),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 60)), max_size=8),
    st.booleans(),
)
def test_buffers_hold_what_was_kept_and_the_next_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    text: bytes,
    size: int,
    asked: list[tuple[int, int]],
    compressed: bool,
) -> None:
    path = tmp_path_factory.mktemp("behind") / "b"
    path.write_bytes(gzip.compress(text) if compressed or text.startswith(b"\x1f\x8b") else text)
    blocks, taken, used = Blocks(path, size), b"", bytearray()
    for least, kept in [*asked, *[(0, 0)] * (len(text) // size + 2)]:
        lead = bytes(used[len(used) - kept :]) if kept else b""
        used = blocks.behind(lead, least, used=used)
        assert used[: len(lead)] == lead
        added = bytes(used[len(lead) :])
        taken += added
        assert len(added) >= min(least, len(text) - len(taken) + len(added))
    assert taken == text
    assert blocks.behind(b"rest", used=used) == b"rest"


def test_a_buffer_that_something_refers_to_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(bytes(range(8)))
    blocks = Blocks(tmp_path / "b", 4)
    first = blocks.behind(b"")
    view = memoryview(first)
    second = blocks.behind(b"", used=first)
    assert (bytes(view), bytes(second)) == (bytes(range(4)), bytes(range(4, 8)))
    assert second is not first


def test_a_buffer_that_nothing_refers_to_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(bytes(range(8)))
    blocks = Blocks(tmp_path / "b", 4)
    first = blocks.behind(b"")
    assert blocks.behind(b"", used=first) is first
    assert first == bytes(range(4, 8))


def test_a_gzip_bomb_ends_at_a_multiple_of_its_size(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(160):
            file.write(bytes(1 << 20))
    blocks = Blocks(path)
    given = sum(map(len, blocks))
    assert given <= ANY_RATIO_BYTES + LARGEST_RATIO * path.stat().st_size + blocks.size
    assert "times its size" in blocks.damage


def test_many_short_members_are_given_together(tmp_path: Path) -> None:
    path = tmp_path / "members.gz"
    path.write_bytes(b"".join(gzip.compress(b"ab") + gzip.compress(b"") for _ in range(3000)))
    blocks = list(Blocks(path))
    assert b"".join(blocks) == b"ab" * 3000
    assert len(blocks) == 1
    assert b"".join(Blocks(path, 2)) == b"ab" * 3000


def test_empty_members_take_time_as_their_number(tmp_path: Path) -> None:
    """What stands behind a member is not copied for each of them."""

    def cpu(count: int) -> float:
        path = tmp_path / f"{count}.gz"
        path.write_bytes(gzip.compress(b"x") + gzip.compress(b"") * count)
        spent = []
        for _ in range(3):
            begun = time.process_time()
            assert list(Blocks(path)) == [b"x"]
            spent.append(time.process_time() - begun)
        return min(spent)

    assert cpu(80_000) < 40 * max(cpu(8_000), 0.01)  # copies would make it 100


def test_holes_in_a_text_are_passed_over_and_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    hole = 3 << 30
    with path.open("wb") as file:
        file.write(TEXT[:4096])
        file.truncate(hole)
        file.seek(hole)
        file.write(b"behind it")
    blocks = Blocks(path, 4096, text=True)
    assert b"".join(blocks) == TEXT[:4096] + b"behind it"
    assert "zero bytes" in blocks.damage
    path.write_bytes(gzip.compress(TEXT[:4096] + bytes(1 << 20)))
    blocks = Blocks(path, 4096, text=True)
    assert len(b"".join(blocks)) < len(TEXT[:4096]) + 3 * 4096
    assert "zero bytes" in blocks.damage


def test_a_hole_is_passed_over_where_blocks_are_read_behind_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.write(TEXT[:4096])
        file.truncate(3 << 30)
    blocks, text = Blocks(path, 4096, text=True), b""
    while len(more := blocks.behind(text, len(text))) > len(text):
        text = bytes(more)
    assert text.rstrip(b"\0") == TEXT[:4096]
    assert len(text) < 3 * 4096
    assert "zero bytes" in blocks.damage
