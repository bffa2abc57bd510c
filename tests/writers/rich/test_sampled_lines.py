"""Lines of Python that samples saw are a track of the merged trace beside their thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.readers import read as read_any
from profharness.readers.own.host import read
from profharness.trace.model import Trace
from profharness.writers.perfetto import write
from tests.readers.own.host_files import HEAD, STACKS
from tests.readers.own.host_files import write as write_record
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.writers.decode import decode

MS = 1_000_000
AT = 1000 * MS
MAIN, STEP, SAVE = "train.py:40 <module>", "train.py:7 step", "ckpt.py:9 save"
NAME = "Python lines (sampled, a step is 20.00 ms)"
# four samples 20 ms apart (two in step, one in save below it, one in main alone), a pause of half a
# second that no delay explains, and one more; the first tells no time
STACKS_SEEN = ((0, 1), (20, 1), (20, 1), (20, 2), (20, 0), (500, 1), (20, 1))
SPANS = {
    (MAIN, 0, 80, 0),
    (STEP, 0, 60, 1),
    (SAVE, 40, 60, 2),
    (MAIN, 500, 600, 0),  # at most four steps before the sample that ends the pause
    (STEP, 500, 600, 1),
}


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    rows = [number for wait, stack in STACKS_SEEN for number in (wait * MS, stack, 0, 0)]
    return read(
        write_record(
            tmp_path / "host-101.jsonl",
            HEAD,
            *STACKS,
            {"file": [1, "/home/me/ckpt.py"]},
            {"frame": [2, 1, 9, "save"]},
            {"stack": [2, 1, 2]},
            {"samples": {"tid": 101, "at_ns": AT, "cpu_ns": None, "rows": rows}},
        )
    )


@pytest.mark.slow
def test_a_trace_processor_shows_them_as_nested_spans(
    tmp_path: Path,
    trace: Trace,
    load_trace: LoadTrace,  # noqa: F811
) -> None:
    report = write(trace, tmp_path / "m.pftrace")
    assert report.slices == len(SPANS)
    client = load_trace(tmp_path / "m.pftrace")
    assert errors(client) == []
    rows = client.query(
        "SELECT s.name AS name, s.ts AS ts, s.dur AS dur, s.depth AS depth, t.name AS track, "
        "p.pid AS pid FROM slice s JOIN process_track t ON s.track_id = t.id "
        "JOIN process p USING (upid)"
    )
    found = [
        (row.name, (row.ts - AT) / MS, (row.ts + row.dur - AT) / MS, row.depth) for row in rows
    ]
    assert len(found) == len(SPANS)
    assert set(found) == SPANS


def test_the_track_names_the_distance_of_its_samples(tmp_path: Path, trace: Trace) -> None:
    write(trace, tmp_path / "m.pftrace")
    assert NAME in {track.name for track in decode(tmp_path / "m.pftrace").tracks.values()}


def test_the_merged_trace_can_be_read_again_without_them(tmp_path: Path, trace: Trace) -> None:
    write(trace, tmp_path / "m.pftrace")
    again = read_any(tmp_path / "m.pftrace")
    assert len(again.marks) == len(again.ops) == len(again.api) == 0
    assert any("sampled_line 5" in problem.message for problem in again.problems)
