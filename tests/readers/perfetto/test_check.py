"""The validator: files of our writer have no fault, and each planted fault is found by its rule,
and no other.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from profharness.errors import InputError
from profharness.readers.bytes.limits import packets_of
from profharness.readers.bytes.proto_scan import scan
from profharness.readers.perfetto.check import check_file
from profharness.readers.perfetto.faults import RULES, Check
from profharness.readers.perfetto.packets import read_packets
from profharness.trace.model import Trace
from profharness.writers.perfetto import WriteOptions, write
from tests.conftest import shared_path
from tests.writers.strategies import traces

PROFILE = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
SEQUENCE = 7


def sample() -> pb.Trace:
    """A small faultless trace: two slices, one in the other, a counter, two GPU events."""
    trace = pb.Trace()
    snapshot = trace.packet.add(trusted_packet_sequence_id=1).clock_snapshot
    snapshot.clocks.add(clock_id=6, timestamp=10)
    snapshot.primary_trace_clock = 6
    first = trace.packet.add(trusted_packet_sequence_id=SEQUENCE, sequence_flags=1)
    first.interned_data.event_names.add(iid=1, name="outer")
    first.interned_data.event_names.add(iid=2, name="inner")
    first.interned_data.gpu_specifications.add(iid=1, name="queue")
    first.interned_data.graphics_contexts.add(iid=1, pid=5)
    for uuid, parent in ((1, 0), (2, 1), (3, 1)):
        track = trace.packet.add(trusted_packet_sequence_id=SEQUENCE).track_descriptor
        track.uuid, track.name = uuid, f"track {uuid}"
        if parent:
            track.parent_uuid = parent
        if uuid == 3:
            track.counter.unit = 1
    for ts, kind, name in ((100, 1, 1), (120, 1, 2), (130, 2, 0), (200, 2, 0)):
        event = event_at(trace, ts, kind)
        if name:
            event.name_iid = name
    counter = event_at(trace, 110, 4, track=3)
    counter.double_counter_value = 2.5
    for number, ts in enumerate((140, 160), 1):
        packet = trace.packet.add(
            timestamp=ts, trusted_packet_sequence_id=SEQUENCE, sequence_flags=2
        )
        gpu = packet.gpu_render_stage_event
        gpu.event_id, gpu.duration, gpu.hw_queue_iid, gpu.stage_iid, gpu.name_iid, gpu.context = (
            number,
            10,
            1,
            1,
            2,
            1,
        )
    trace.packet[-1].gpu_render_stage_event.event_wait_ids.append(1)
    return trace


def event_at(trace: pb.Trace, ts: int, kind: int, track: int = 2) -> pb.TrackEvent:
    packet = trace.packet.add(timestamp=ts, trusted_packet_sequence_id=SEQUENCE, sequence_flags=2)
    packet.track_event.type, packet.track_event.track_uuid = kind, track
    return packet.track_event


def checked(data: bytes, folder: Path) -> Check:
    path = folder / "t.pftrace"
    path.write_bytes(data)
    return check_file(path)


def events(trace: pb.Trace, kind: int) -> list[pb.TracePacket]:
    return [p for p in trace.packet if p.HasField("track_event") and p.track_event.type == kind]


def gpu(trace: pb.Trace) -> list[pb.TracePacket]:
    return [p for p in trace.packet if p.HasField("gpu_render_stage_event")]


def without_sequence(trace: pb.Trace) -> None:
    # the counter uses no interned name, so that nothing else breaks
    packet = events(trace, 4)[0]
    packet.ClearField("trusted_packet_sequence_id")
    packet.ClearField("sequence_flags")


def without_clear(trace: pb.Trace) -> None:
    for packet in trace.packet:
        if packet.sequence_flags == 1:
            packet.sequence_flags = 0


def unknown_name(trace: pb.Trace) -> None:
    events(trace, 1)[0].track_event.name_iid = 99


def unknown_queue(trace: pb.Trace) -> None:
    gpu(trace)[0].gpu_render_stage_event.hw_queue_iid = 99


def name_given_too_late(trace: pb.Trace) -> None:
    trace.packet[1].interned_data.event_names[0].iid = 50
    trace.packet.add(trusted_packet_sequence_id=SEQUENCE).interned_data.event_names.add(
        iid=1, name="outer"
    )


def undeclared_track(trace: pb.Trace) -> None:
    events(trace, 4)[0].track_event.track_uuid = 77


def undeclared_parent(trace: pb.Trace) -> None:
    trace.packet[3].track_descriptor.parent_uuid = 88


def counter_on_slices(trace: pb.Trace) -> None:
    events(trace, 4)[0].track_event.track_uuid = 2


def instant_on_counter(trace: pb.Trace) -> None:
    event_at(trace, 115, 3, track=3)


def stray_end(trace: pb.Trace) -> None:
    event_at(trace, 50, 2)


def stray_begin(trace: pb.Trace) -> None:
    event_at(trace, 300, 1).name_iid = 1


def crossing(trace: pb.Trace) -> None:
    """outer 100..130 and inner 120..200 with ends that say which they mean."""
    ends = events(trace, 2)
    ends[0].track_event.name_iid, ends[1].track_event.name_iid = 1, 2


def tie(trace: pb.Trace) -> None:
    """Two touching slices, the later one written first."""
    for ts, kind in ((320, 1), (340, 2), (310, 1), (320, 2)):
        event = event_at(trace, ts, kind)
        if kind == 1:
            event.name_iid = 1


def huge_time(trace: pb.Trace) -> None:
    events(trace, 4)[0].timestamp = 2**63 + 5


def huge_duration(trace: pb.Trace) -> None:
    gpu(trace)[0].gpu_render_stage_event.duration = 2**64 - 1


def same_event_id(trace: pb.Trace) -> None:
    gpu(trace)[1].gpu_render_stage_event.event_id = 1


def lost_wait(trace: pb.Trace) -> None:
    gpu(trace)[1].gpu_render_stage_event.event_wait_ids[0] = 9


def lost_submission(trace: pb.Trace) -> None:
    packet = events(trace, 1)[0]
    packet.track_event.MergeFromString(
        b"\xc2\xbb\x01\x02\x08\x09"
    )  # gpu_correlation (3000): submission id 9


def no_queue(trace: pb.Trace) -> None:
    gpu(trace)[0].gpu_render_stage_event.ClearField("hw_queue_iid")


def no_snapshot(trace: pb.Trace) -> None:
    del trace.packet[0]


def unknown_clock(trace: pb.Trace) -> None:
    events(trace, 4)[0].timestamp_clock_id = 3


PLANTED: list[tuple[str, Callable[[pb.Trace], None]]] = [
    ("no-sequence", without_sequence),
    ("state-not-cleared", without_clear),
    ("unresolved-name", unknown_name),
    ("unresolved-name", unknown_queue),
    ("unresolved-name", name_given_too_late),
    ("undeclared-track", undeclared_track),
    ("undeclared-parent", undeclared_parent),
    ("wrong-track-kind", counter_on_slices),
    ("wrong-track-kind", instant_on_counter),
    ("end-without-begin", stray_end),
    ("begin-without-end", stray_begin),
    ("crossing-slices", crossing),
    ("tie-order", tie),
    ("negative-time", huge_time),
    ("negative-time", huge_duration),
    ("duplicate-event-id", same_event_id),
    ("unresolved-event", lost_wait),
    ("unresolved-event", lost_submission),
    ("incomplete-gpu-event", no_queue),
    ("no-clock-snapshot", no_snapshot),
    ("unrelated-clock", unknown_clock),
]


@pytest.mark.parametrize(
    ("rule", "plant"), PLANTED, ids=[f"{rule}: {plant.__name__}" for rule, plant in PLANTED]
)
def test_a_planted_fault_is_found_and_nothing_else(
    rule: str, plant: Callable[[pb.Trace], None], tmp_path: Path
) -> None:
    trace = sample()
    plant(trace)
    assert {fault.rule for fault in checked(trace.SerializeToString(), tmp_path).faults} == {rule}


def test_every_rule_that_needs_no_damaged_bytes_is_planted() -> None:
    assert set(RULES) - {rule for rule, _ in PLANTED} == {
        "framing",
        "packet-damaged",
        "bundle-damaged",
        "bundle-too-large",
    }


def test_a_faultless_file_is_counted(tmp_path: Path) -> None:
    trace = sample()
    check = checked(trace.SerializeToString(), tmp_path)
    assert check.faults == ()
    held = check.holdings
    assert (held.slices, held.counter_values, held.gpu_events, held.arrows, held.tracks) == (
        2,
        1,
        2,
        1,
        3,
    )
    assert (held.packets, held.sequences, held.machines, held.first_ns, held.last_ns) == (
        len(trace.packet),
        2,
        1,
        100,
        200,
    )


def test_the_first_offender_is_named_with_its_place(tmp_path: Path) -> None:
    trace = sample()
    unknown_name(trace)
    data = trace.SerializeToString()
    (fault,) = checked(data, tmp_path).faults
    assert trace.packet[fault.packet].track_event.name_iid == 99
    packet = trace.packet[fault.packet].SerializeToString()
    assert data[fault.offset : fault.offset + len(packet)] == packet


def test_a_cut_file_stops_at_a_byte(tmp_path: Path) -> None:
    data = sample().SerializeToString()
    (fault,) = [f for f in checked(data[:-3], tmp_path).faults if f.rule == "framing"]
    last = sample().packet[-1].SerializeToString()
    assert fault.offset == len(data) - len(last) - 2


def test_damaged_bytes_inside_a_packet(tmp_path: Path) -> None:
    data = bytearray(sample().SerializeToString())
    data += b"\x0a\x03\x5a\x7f\x00"  # a track event that claims 127 bytes
    assert {f.rule for f in checked(bytes(data), tmp_path).faults} == {"packet-damaged"}


def test_bundles_are_unpacked_and_damaged_ones_found(tmp_path: Path) -> None:
    packed = pb.Trace()
    packed.packet.add(compressed_packets=zlib.compress(sample().SerializeToString()))
    assert checked(packed.SerializeToString(), tmp_path).holdings.slices == 2
    assert checked(packed.SerializeToString(), tmp_path).faults == ()
    packed.packet.add(compressed_packets=b"no deflate")
    assert [f.rule for f in checked(packed.SerializeToString(), tmp_path).faults] == [
        "bundle-damaged"
    ]
    large = pb.Trace()
    large.packet.add(trusted_packet_sequence_id=1).trigger.trigger_name = "x" * 600_000
    packed = pb.Trace()
    packed.packet.add(compressed_packets=zlib.compress(large.SerializeToString()))
    assert [f.rule for f in checked(packed.SerializeToString(), tmp_path).faults] == [
        "bundle-too-large"
    ]


def test_incremental_and_related_clocks_are_replayed(tmp_path: Path) -> None:
    trace = pb.Trace()
    snapshot = trace.packet.add(trusted_packet_sequence_id=SEQUENCE).clock_snapshot
    snapshot.clocks.add(clock_id=6, timestamp=1_000_000)
    snapshot.clocks.add(clock_id=64, timestamp=500, is_incremental=True, unit_multiplier_ns=1000)
    snapshot.clocks.add(clock_id=3, timestamp=400_000)
    first = trace.packet.add(trusted_packet_sequence_id=SEQUENCE, sequence_flags=1)
    first.trace_packet_defaults.timestamp_clock_id = 64
    first.trace_packet_defaults.track_event_defaults.track_uuid = 5
    trace.packet.add(trusted_packet_sequence_id=SEQUENCE).track_descriptor.uuid = 5
    for delta, kind in ((10, 1), (20, 2)):
        trace.packet.add(
            timestamp=delta, trusted_packet_sequence_id=SEQUENCE
        ).track_event.type = kind
    late = trace.packet.add(
        timestamp=500_000, timestamp_clock_id=3, trusted_packet_sequence_id=SEQUENCE
    )
    late.track_event.type = 3
    check = checked(trace.SerializeToString(), tmp_path)
    assert check.faults == ()
    assert (check.holdings.first_ns, check.holdings.last_ns, check.holdings.slices) == (
        1_010_000,
        1_100_000,
        1,
    )


@pytest.mark.slow
@PROFILE
@given(
    traces(),
    st.sampled_from(("render-stage", "track-event")),
    st.sampled_from(("t.pftrace", "t.pftrace.gz")),
)
def test_what_we_write_has_no_fault(tmp_path: Path, trace: Trace, gpu_repr: str, name: str) -> None:
    report = write(trace, tmp_path / name, options=WriteOptions(gpu_repr=gpu_repr))
    check = check_file(tmp_path / name)
    assert check.faults == ()
    device = report.kernels + report.copies
    typed = gpu_repr == "render-stage"
    assert (check.holdings.gpu_events, check.holdings.slices) == (
        (device, report.slices) if typed else (0, report.slices + device)
    )
    assert check.holdings.counter_values >= report.samples
    if typed:
        assert check.holdings.arrows == report.flows


@PROFILE
@given(st.binary(min_size=1, max_size=200), st.integers(0, 400))
def test_damaged_bytes_never_raise_anything_but_input_errors(
    tmp_path: Path, noise: bytes, at: int
) -> None:
    data = sample().SerializeToString()
    broken = data[: at % len(data)] + noise + data[at % len(data) + len(noise) :]
    for content in (broken, gzip.compress(broken)[:-5], noise):
        try:
            checked(content, tmp_path)
        except InputError:
            pass


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_scanning_agrees_with_protobuf_on_what_parses(messages: list[bytes]) -> None:
    ends = np.cumsum([len(m) for m in messages], dtype=np.int64)
    starts = ends - [len(m) for m in messages] if messages else ends
    found = scan(np.frombuffer(b"".join(messages), np.uint8), starts, ends)
    for row, message in enumerate(messages):
        try:
            parsed = pb.TraceUuid.FromString(message)
        except Exception:  # noqa: BLE001  DecodeError has moved between protobuf versions
            continue
        if row not in found.damaged:
            assert found.last(1, len(messages))[row] == parsed.msb


@pytest.mark.parametrize(
    ("name", "slices", "counters"),
    [
        ("mi300a_3648722_results.pftrace", True, True),
        ("mi300a_3634743_results_EMPTY.pftrace", False, False),
    ],
)
def test_files_of_rocprofv3_are_counted_as_the_protos_say(
    shared: Path, name: str, slices: bool, counters: bool
) -> None:
    path = shared_path(f"fixtures/rocm/rocprofv3/pftrace/{name}")
    check = check_file(path)
    trace = pb.Trace.FromString(path.read_bytes())
    assert check.faults == ()
    assert check.holdings.packets == len(trace.packet)
    assert check.holdings.slices == len(events(trace, 1))
    assert check.holdings.counter_values == len(events(trace, 4))
    assert (check.holdings.slices > 0, check.holdings.counter_values > 0) == (slices, counters)


@pytest.mark.parametrize(
    "content", [b"", b'{"traceEvents": []}', b"\x0a", b"\x0a\x00", b"PK\x03\x04" * 20]
)
def test_what_is_no_trace_is_said_so(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError):
        checked(content, tmp_path)


def test_a_missing_file_and_a_folder_are_said_so(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pftrace", tmp_path):
        with pytest.raises(InputError):
            check_file(path)


def test_bundles_together_unpack_to_what_the_size_of_the_file_allows(tmp_path: Path) -> None:
    """Bundles of 1.5 MB, none too large by itself, became 3 GB in memory."""
    packed = pb.Trace()
    for _ in range(12):
        packed.packet.add(compressed_packets=zlib.compress(bytes(8 << 20)))
    path = tmp_path / "bomb.pftrace"
    path.write_bytes(packed.SerializeToString())
    packets, framing = read_packets(path)
    assert len(packets.data) < 32 << 20
    assert framing.bad_bundles >= 9


def test_packets_beyond_what_a_trace_of_the_size_has_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "tiny.pftrace.gz"
    path.write_bytes(gzip.compress(b"\x0a\x02\x50\x01" + b"\x0a\x00" * 3_000_000))
    packets, framing = read_packets(path)
    assert len(packets) == packets_of(path) < 520_000
    assert "more than" in framing.damage


def test_a_gzipped_trace_grows_to_what_bundles_may(tmp_path: Path) -> None:
    path = tmp_path / "long.pftrace.gz"
    filler = b"\x0a\x80\x80\x40" + bytes(1 << 20)
    path.write_bytes(gzip.compress(b"\x0a\x02\x50\x01" + filler * 40))
    packets, framing = read_packets(path)
    assert len(packets.data) < 24 << 20
    assert "20 times its size" in framing.damage


def test_telemetry_that_packs_well_is_read_whole(tmp_path: Path) -> None:
    # 100,000 values of ten gauges that stand still: nothing of a real run packs closer
    whole = b"".join(
        _gauge(10**15 + 10_000_000 * (row // 10), 10**18 + row % 10) for row in range(100_000)
    )
    path = tmp_path / "still.pftrace.gz"
    path.write_bytes(gzip.compress(whole))
    packets, framing = read_packets(path)
    assert (len(packets), framing.damage) == (100_000, "")
    assert len(whole) / path.stat().st_size < 20
    assert len(packets) < path.stat().st_size / 2


def _gauge(at: int, track: int) -> bytes:
    trace = pb.Trace()
    one = trace.packet.add(timestamp=at, trusted_packet_sequence_id=1)
    one.track_event.type = pb.TrackEvent.TYPE_COUNTER
    one.track_event.track_uuid = track
    one.track_event.double_counter_value = 0.0
    return trace.SerializeToString()
