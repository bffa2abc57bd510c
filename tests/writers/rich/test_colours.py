"""Slices of one kind have one correlation id, by which viewers give them one colour."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from profharness.trace.model import Marks, Ops, Requests, Source, Strings, Trace
from profharness.understand.merge.head import write_options
from profharness.writers.perfetto import write
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.writers.decode import decode

NAMES = (
    *("aten::mm", "aten::addmm", "aten::conv2d", "my_op"),
    *("step", "step 3", "step 4", "trial", "trial 1", "range", "a", "b"),
)


def trace() -> Trace:
    strings = Strings(NAMES)
    code = {name: number for number, name in enumerate(NAMES)}
    ops = Ops.build(
        start_ns=[10, 20, 30, 40], dur_ns=5, name=[0, 1, 2, 3], pid=[7, 7, 8, 7], tid=7, source=0
    )
    marks = Marks.build(
        start_ns=[0, 100, 200, 300, 400],
        dur_ns=50,
        name=[code[name] for name in ("step 3", "step 4", "trial 1", "a", "b")],
        kind=[code[name] for name in ("step", "step", "trial", "range", "range")],
        pid=7,
        source=0,
    )
    requests = Requests.build(
        intended_ns=[10, 20, 30], sent_ns=[10, 20, 30], done_ns=[15, 25, 35], ok=[1, 0, 1], source=0
    )
    return Trace((Source("t", "kineto"),), strings, ops=ops, marks=marks, requests=requests)


def ids(path: Path) -> dict[str, set[int]]:
    """The correlation ids of the slices of each name."""
    found = defaultdict(set)
    names: dict[int, dict[int, str]] = defaultdict(dict)
    for packet in decode(path).packets:
        known = names[packet.trusted_packet_sequence_id]
        known.update({e.iid: e.name for e in packet.interned_data.event_names})
        event = packet.track_event
        if packet.HasField("track_event") and event.name_iid:
            found[known[event.name_iid]].add(event.correlation_id)
    return dict(found)


def test_one_kind_has_one_id(tmp_path: Path) -> None:
    write(trace(), tmp_path / "m.pftrace", options=write_options(None))
    found = ids(tmp_path / "m.pftrace")
    assert all(len(one) == 1 for one in found.values())
    one = {name: next(iter(numbers)) for name, numbers in found.items()}
    assert one["aten::mm"] == one["aten::addmm"]
    assert one["step 3"] == one["step 4"]
    assert one["my_op"] == one["a"] == one["b"] == 0  # by their names
    kinds = ("aten::mm", "aten::conv2d", "step 3", "trial 1", "request", "failed request")
    assert len({one[name] for name in kinds} - {0}) == len(kinds)


def test_without_kinds_operators_keep_the_colours_of_their_names(tmp_path: Path) -> None:
    write(trace(), tmp_path / "m.pftrace")
    found = ids(tmp_path / "m.pftrace")
    assert found["aten::mm"] == found["aten::conv2d"] == {0}
    assert found["step 3"] == found["step 4"] != {0}


@pytest.mark.slow
def test_a_trace_processor_takes_the_ids(tmp_path: Path, load_trace: LoadTrace) -> None:  # noqa: F811
    write(trace(), tmp_path / "m.pftrace", options=write_options(None))
    client = load_trace(tmp_path / "m.pftrace")
    assert errors(client) == []
    rows = client.query("SELECT name, extract_arg(arg_set_id, 'correlation_id') AS id FROM slice")
    found = {(r.name, int(r.id.removeprefix("tp:#"))) for r in rows if r.id is not None}
    expected = {
        (name, number)
        for name, numbers in ids(tmp_path / "m.pftrace").items()
        for number in numbers
        if number
    }
    assert found == expected
