"""Messages of very many fields, which are read one after the other."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pytest

from profharness.readers.bytes import proto_scan
from tests.steps import calls_of


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def message(count: int, seed: int) -> bytes:
    """Fields of all wire types, at random."""
    r = random.Random(seed)
    out = []
    for _ in range(count):
        wire = r.choice((0, 1, 2, 5))
        body = {
            0: varint(r.getrandbits(r.choice((3, 30, 64)))),
            1: r.randbytes(8),
            2: b"\x03abc",
            5: r.randbytes(4),
        }[wire]
        out.append(varint(r.randint(1, 40) << 3 | wire) + body)
    return b"".join(out)


@pytest.mark.parametrize("end", [b"", b"\x0a\x7f", b"\x08\xff", b"\x07", b"\x00\x00", b"\x0d\x01"])
def test_fields_behind_the_first_are_the_same_one_by_one(
    monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    texts = [message(60, 1) + end, message(40, 2), b"", message(55, 3)]
    data = np.frombuffer(b"".join(texts), np.uint8)
    stop = np.cumsum([len(text) for text in texts])
    start = stop - [len(text) for text in texts]
    together = proto_scan.scan(data, start, stop)
    monkeypatch.setattr(proto_scan, "_STEPS_TOGETHER", 7)
    alone = proto_scan.scan(data, start, stop)
    assert len(together.damaged) == bool(end)
    order = [np.argsort(found.row, kind="stable") for found in (together, alone)]
    for column in fields(proto_scan.Fields):
        a, b = (getattr(found, column.name) for found in (together, alone))
        if column.name != "damaged":
            a, b = a[order[0]], b[order[1]]
        assert a.tolist() == b.tolist(), column.name


def test_the_fields_of_a_long_message_take_little_time() -> None:
    data = np.frombuffer(b"\x40\x01" * 50_000, np.uint8)

    def scanned(count: int) -> proto_scan.Fields:
        return proto_scan.scan(data, np.array([0]), np.array([2 * count]))

    assert len(scanned(50_000).row) == 50_000
    # in NumPy's steps, which suit many short messages, a field takes forty calls and more
    assert calls_of(lambda: scanned(50_000)) - calls_of(lambda: scanned(10_000)) < 15 * 40_000


def test_long_messages_hold_a_number_of_fields_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proto_scan, "_STEPS_TOGETHER", 10)
    monkeypatch.setattr(proto_scan, "_MOST_FIELDS", 1000)
    data = np.frombuffer(b"\x08\x01" * 4000, np.uint8)
    start = np.arange(0, 8000, 1000, np.int64)
    found = proto_scan.scan(data, start, start + 1000)
    # ten of each of the eight, then a thousand and one for 32 bytes
    assert len(found.row) == 8 * 10 + 1000 + 8000 // 32
    assert found.damaged.tolist() == [2, 3, 4, 5, 6, 7]
