"""Secrets in Perfetto traces: wherever rocprof-sys and the SDK may put them, and nothing else is
changed.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from profharness import readers
from profharness.errors import InputError
from profharness.secrets import perfetto as perfetto_secrets
from profharness.secrets import scrub as scrubbing
from profharness.secrets.names import MARKER
from profharness.secrets.patterns import same_length_marker
from tests.readers.rocprofv3.tables_spelled import spelled

TOKEN = "hf_" + "Qx7z" * 9
PASSWORD = "correct-horse"


def made() -> Trace:
    """A kernel, host calls, metadata of a process, annotations with their names written out and
    interned.
    """
    trace = Trace()

    def packet(at: int = 0) -> object:
        one = trace.packet.add()
        one.trusted_packet_sequence_id = 1
        if at:
            one.timestamp, one.timestamp_clock_id = at, 6
        return one

    first = packet()
    first.sequence_flags = 1
    for clock in (1, 3, 6):
        reading = first.clock_snapshot.clocks.add()
        reading.clock_id, reading.timestamp = clock, 1000
    process = packet()
    process.track_descriptor.uuid = 1
    process.track_descriptor.process.pid = 77
    process.track_descriptor.process.process_name = "python"
    process.track_descriptor.process.cmdline.extend(
        [
            "python",
            "train.py",
            "--api-token",
            "abcdefgh1234",
            f"--key-file=a HF_TOKEN={TOKEN}",
            "--epochs",
            "3",
        ]
    )
    queue = packet()
    queue.track_descriptor.uuid, queue.track_descriptor.parent_uuid, queue.track_descriptor.name = (
        2,
        1,
        "HIP Activity Device 0, Queue 0",
    )
    names = packet()
    names.interned_data.debug_annotation_names.add(iid=5, name="DB_PASSWORD")
    names.interned_data.debug_annotation_names.add(iid=6, name="token_count")
    names.interned_data.debug_annotation_string_values.add(iid=9, str=PASSWORD.encode())
    names.interned_data.debug_annotation_string_values.add(iid=10, str=b"a long but harmless value")
    for kind, at in ((TrackEvent.TYPE_SLICE_BEGIN, 2000), (TrackEvent.TYPE_SLICE_END, 7000)):
        event = packet(at)
        event.track_event.type, event.track_event.track_uuid = kind, 2
        if kind == TrackEvent.TYPE_SLICE_BEGIN:
            event.track_event.name = "moe_align_token_kernel<int>"
            event.track_event.categories.append("rocm_kernel_dispatch")
            event.track_event.debug_annotations.add(
                name="WANDB_API_KEY", string_value="0123456789abcdef" * 2
            )
            event.track_event.debug_annotations.add(
                name="environment", string_value=f"HOME=/root HF_TOKEN={TOKEN} LANG=C"
            )
            event.track_event.debug_annotations.add(name="author", string_value="somebody")
            event.track_event.debug_annotations.add(name_iid=5, string_value=PASSWORD)
            event.track_event.debug_annotations.add(name_iid=5, string_value_iid=9)
            event.track_event.debug_annotations.add(name_iid=6, string_value_iid=10)
            nested = event.track_event.debug_annotations.add(name="env")
            nested.dict_entries.add(name="HF_TOKEN", string_value=TOKEN)
            nested.dict_entries.add(name="PATH", string_value="/usr/bin")
    return trace


FOUND = {"HF_TOKEN": 3, "WANDB_API_KEY": 1, "DB_PASSWORD": 2, "api-token": 1}


def packed(trace: Trace) -> bytes:
    """The same in one bundle."""
    bundle = Trace()
    bundle.packet.add().compressed_packets = zlib.compress(trace.SerializeToString())
    return bundle.SerializeToString()


@pytest.mark.parametrize("form", ["plain", "gzip", "bundle"])
def test_values_go_and_everything_else_stays(tmp_path: Path, form: str) -> None:
    trace = made()
    path = tmp_path / "perfetto-trace-77.proto"
    data = packed(trace) if form == "bundle" else trace.SerializeToString()
    path.write_bytes(gzip.compress(data) if form == "gzip" else data)
    before = spelled(readers.read(path))
    assert scrubbing.scan(path) == FOUND
    assert scrubbing.scrub(path) == FOUND
    clean = path.read_bytes()
    clean = gzip.decompress(clean) if form == "gzip" else clean
    for secret in (TOKEN, PASSWORD, "0123456789abcdef", "abcdefgh1234"):
        assert secret.encode() not in clean
    after = Trace.FromString(clean)
    assert after.packet[1].track_descriptor.process.cmdline[:3] == [
        "python",
        "train.py",
        "--api-token",
    ]
    assert after.packet[1].track_descriptor.process.cmdline[-2:] == ["--epochs", "3"]
    notes = after.packet[4].track_event.debug_annotations
    assert notes[0].string_value == same_length_marker(32).decode()
    assert notes[0].string_value.startswith(MARKER)
    assert notes[1].string_value.startswith(f"HOME=/root HF_TOKEN={MARKER}")
    assert notes[1].string_value.endswith(" LANG=C")
    assert [notes[2].string_value, notes[3].string_value] == ["somebody", "*" * len(PASSWORD)]
    assert [entry.string_value for entry in notes[6].dict_entries][1] == "/usr/bin"
    values = after.packet[3].interned_data.debug_annotation_string_values
    assert [value.str for value in values] == [b"*" * len(PASSWORD), b"a long but harmless value"]
    assert spelled(readers.read(path)) == before
    kept = path.read_bytes()
    assert scrubbing.scrub(path) == {}
    assert path.read_bytes() == kept


def test_a_trace_without_secrets_is_not_touched(tmp_path: Path) -> None:
    trace = Trace()
    for number in range(50):
        event = trace.packet.add()
        event.trusted_packet_sequence_id = 1
        event.track_event.name = f"read_secret_key_{number} token"
        event.track_event.categories.append("python")
        event.track_event.debug_annotations.add(
            name="tokens", string_value="a whole sentence of tokens"
        )
    path = tmp_path / "t.pftrace"
    path.write_bytes(trace.SerializeToString())
    assert scrubbing.scrub(path) == {}
    assert path.read_bytes() == trace.SerializeToString()


def test_a_cut_trace_stays_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    path.write_bytes(made().SerializeToString()[:-7])
    raw = path.read_bytes()
    with pytest.raises(InputError, match="damaged"):
        scrubbing.scrub(path)
    assert path.read_bytes() == raw


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["HF_TOKEN", "note", "secret", "env"]),
            st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=80),
        ),
        max_size=6,
    )
)
def test_what_is_written_is_a_trace_of_the_same_shape(
    tmp_path_factory: pytest.TempPathFactory, notes: list[tuple[str, str]]
) -> None:
    trace = made()
    for name, value in notes:
        trace.packet[4].track_event.debug_annotations.add(name=name, string_value=value)
        trace.packet[4].track_event.debug_annotations.add(name=value, string_value=name)
    path = tmp_path_factory.mktemp("p") / "t.pftrace"
    path.write_bytes(trace.SerializeToString())
    assert scrubbing.scrub(path)
    after = Trace.FromString(path.read_bytes())
    assert len(path.read_bytes()) == len(trace.SerializeToString())
    assert not perfetto_secrets.find(path).spans
    for old, new in zip(
        trace.packet[4].track_event.debug_annotations,
        after.packet[4].track_event.debug_annotations,
        strict=True,
    ):
        assert (old.name_iid, old.string_value_iid, len(old.dict_entries)) == (
            new.name_iid,
            new.string_value_iid,
            len(new.dict_entries),
        )
        assert len(old.string_value) == len(new.string_value)


def test_recorded_traces_hold_none(shared: Path) -> None:
    for path in sorted((shared / "fixtures/rocm/rocprofv3/pftrace").iterdir()):
        assert scrubbing.scan(path) == {}


def test_a_token_behind_any_length_byte_is_found(tmp_path: Path) -> None:
    """The length of a text stands before it as one byte, which may look like a letter, and the next
    field's tag behind it.
    """
    for extra in range(20, 90):
        token = "hf_" + ("Qx7z" * 30)[: extra + 15]
        trace = Trace()
        first = trace.packet.add()
        first.trusted_packet_sequence_id, first.timestamp = 1, 5
        first.track_event.debug_annotations.add(name="argument", string_value=token)
        first.track_event.debug_annotations.add(name="key_id", string_value="AKIA" + "Q7" * 8)
        path = tmp_path / f"{extra}.pftrace"
        path.write_bytes(trace.SerializeToString())
        assert perfetto_secrets.find(path).counts.total() == 2, extra
