"""The column encoder against Google's own encoder: the same bytes for the same messages."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from profharness.writers.protobuf import wire
from profharness.writers.protobuf.proto_columns import (
    Double,
    Encoded,
    Message,
    Ragged,
    Same,
    Varint,
    encode,
    integers,
    interleave,
    packets,
)

NUMBERS = st.one_of(
    st.integers(0, 300),
    st.integers(0, 2**63 - 1),
    st.sampled_from([0, 127, 128, 2**14 - 1, 2**14, 2**56, 2**63 - 1]),
)
ROWS = st.lists(
    st.tuples(NUMBERS, NUMBERS, st.booleans(), st.floats(allow_nan=False), st.booleans()),
    min_size=1,
    max_size=20,
)


@given(ROWS)
def test_packets_are_the_bytes_that_protobuf_makes(
    rows: list[tuple[int, int, bool, float, bool]],
) -> None:
    ts, uuid, with_value, value, nested = (np.asarray(column) for column in zip(*rows, strict=True))
    event = Message(
        11, (integers(11, uuid), Double(44, value.astype(np.float64), with_value)), nested
    )
    made = packets((integers(8, ts), Same(wire.integer(10, 300)), event), len(rows))
    expected = []
    for t, u, has, v, inner in rows:
        packet = pb.TracePacket(timestamp=t, trusted_packet_sequence_id=300)
        if inner:
            packet.track_event.track_uuid = u
            if has:
                packet.track_event.double_counter_value = v
        expected.append(pb.Trace(packet=[packet]).SerializeToString())
    assert made.data.tobytes() == b"".join(expected)
    assert made.sizes.tolist() == [len(e) for e in expected]


@given(st.lists(st.tuples(NUMBERS, st.booleans()), min_size=1, max_size=20))
def test_varints_are_as_short_as_protobuf_makes_them(rows: list[tuple[int, bool]]) -> None:
    values, present = (np.asarray(column) for column in zip(*rows, strict=True))
    made = encode((Varint(30, values, present),), len(rows))
    expected = [pb.TrackEvent(counter_value=v).SerializeToString() if p else b"" for v, p in rows]
    assert made.data.tobytes() == b"".join(expected)


@given(
    st.lists(
        st.tuples(st.integers(0, 70).map(lambda bits: (1 << bits) - 1), st.booleans()),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 2**64 - 1),
)
def test_varints_of_every_length_in_columns_and_sizes(
    rows: list[tuple[int, bool]], mask: int
) -> None:
    """Ids are hashes of 64 bits; a message's size is a varint too, and rows may share all of its
    bytes or none.
    """
    values = np.asarray([number & (2**64 - 1) & mask for number, _ in rows], np.uint64)
    sizes = np.asarray([number % 300 for number, _ in rows], np.int64)
    present = np.asarray([flag for _, flag in rows])
    ragged = Ragged(np.full(sizes.sum(), 7, np.uint8), sizes)
    made = encode(
        (
            Varint(1, values),
            Message(2, (Varint(3, values, present), ragged), present),
            Varint(4, values),
        ),
        len(rows),
    )
    expected = [
        wire.integer(1, v)
        + (wire.blob(2, wire.integer(3, v) + b"\7" * n) if p else b"")
        + wire.integer(4, v)
        for v, n, p in zip(values.tolist(), sizes.tolist(), present.tolist(), strict=True)
    ]
    assert made.data.tobytes() == b"".join(expected)
    assert made.sizes.tolist() == [len(e) for e in expected]


def test_a_column_of_varints_of_one_to_ten_bytes() -> None:
    values = [
        0,
        127,
        *(edge for bits in range(7, 64, 7) for edge in (2**bits - 1, 2**bits)),
        2**64 - 1,
    ]
    made = encode((Varint(1, np.asarray(values, np.uint64)),), len(values))
    assert made.data.tobytes() == b"".join(wire.integer(1, value) for value in values)
    assert sorted(set(made.sizes.tolist())) == list(range(2, 12))


@given(st.integers(-(2**63), 2**64 - 1), st.integers(1, 2**29 - 1))
def test_single_fields_are_what_protobuf_makes(value: int, number: int) -> None:
    signed = value - 2**64 if value >= 2**63 else value
    assert wire.integer(30, value) == pb.TrackEvent(counter_value=signed).SerializeToString()
    assert wire.tag(number, 2) == wire.varint(number * 8 + 2)
    assert wire.text(23, "é\ud800") == pb.TrackEvent(name="é?").SerializeToString()


@given(st.lists(st.lists(st.integers(0, 2**40), max_size=5), min_size=1, max_size=10))
def test_repeated_fields_of_any_length(rows: list[list[int]]) -> None:
    ids = encode(
        (Varint(1, np.asarray([x for row in rows for x in row], np.int64)),), sum(map(len, rows))
    )
    total = np.concatenate(([0], np.cumsum(ids.sizes)))
    upto = np.cumsum([len(row) for row in rows])
    sizes = total[upto] - total[upto - [len(row) for row in rows]]
    made = encode((Message(3000, (Ragged(ids.data, sizes),)),), len(rows))
    expected = [wire.blob(3000, b"".join(wire.integer(1, x) for x in row)) for row in rows]
    assert made.data.tobytes() == b"".join(expected)


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=5)), min_size=1, max_size=12))
def test_interleave_restores_one_order(rows: list[tuple[bool, bytes]]) -> None:
    def joined(which: bool) -> Encoded:
        mine = [data for second, data in rows if second is which]
        return Encoded(
            np.frombuffer(b"".join(mine), np.uint8), np.asarray([len(d) for d in mine], np.int64)
        )

    second = np.asarray([flag for flag, _ in rows])
    assert interleave(second, joined(False), joined(True)).tobytes() == b"".join(
        data for _, data in rows
    )
