"""Python's functions, modules and operators nest on their threads in a merged trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from profharness.readers import read
from profharness.trace.model import Trace
from profharness.trace.parts.select import without_frames
from profharness.trace.wanted import Wanted
from profharness.understand.merge.command import MergeOptions, merge_to_file
from tests.conftest import shared_path
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.writers.decode import decode
from tests.writers.rich.kineto_file import BACKWARD, DEVICE, FRAMES, HOST, MAIN, write_kineto

BASE = 1_795_000_000_000_000_000
NESTED = """
SELECT s.name AS name, s.category AS category, s.depth AS depth, p.name AS parent, t.tid AS tid
FROM slice s JOIN thread_track k ON s.track_id = k.id JOIN thread t USING (utid)
LEFT JOIN slice p ON s.parent_id = p.id
"""


def merged(tmp_path: Path, source: Path) -> Path:
    merge_to_file([source], tmp_path / "m.pftrace", MergeOptions())
    return tmp_path / "m.pftrace"


def of_file(events: list[dict[str, object]]) -> Counter[tuple[int, int, str]]:
    return Counter(
        (BASE + round(e["ts"] * 1000), round(e["dur"] * 1000), str(e["name"]))  # type: ignore[operator]  # numbers
        for e in events
    )


@pytest.mark.slow
def test_a_trace_processor_nests_all_that_the_source_holds(
    tmp_path: Path,
    load_trace: LoadTrace,  # noqa: F811
) -> None:
    client = load_trace(merged(tmp_path, write_kineto(tmp_path / "t.json")))
    assert errors(client) == []
    found = {(r.name, r.category, r.depth, r.parent, r.tid) for r in client.query(NESTED)}
    assert found == {
        ("train.py(10): main", "python_function", 0, None, MAIN),
        ("nn.Module: Net_0", "module", 1, "train.py(10): main", MAIN),
        ("forward", "range", 2, "nn.Module: Net_0", MAIN),
        ("nn.Module: Linear_0", "module", 3, "forward", MAIN),
        ("aten::linear", "op", 4, "nn.Module: Linear_0", MAIN),
        ("aten::mm", "op", 5, "aten::linear", MAIN),
        ("cudaLaunchKernel", "cuda", 6, "aten::mm", MAIN),
        ("cudaMemcpyAsync", "cuda", 4, "nn.Module: Linear_0", MAIN),
        ("aten::mul", "op", 0, None, BACKWARD),
    }
    slices = client.query("SELECT ts, dur, name FROM slice")
    assert Counter((r.ts, r.dur, r.name) for r in slices) == of_file([*FRAMES, *HOST, *DEVICE])


def frames(trace: Trace) -> Counter[tuple[int, int, str]]:
    marks = trace.marks
    rows = marks.take(marks.kind == trace.strings.find("frame"))
    names = [trace.strings[code] for code in rows.name.tolist()]
    return Counter(zip(rows.start_ns.tolist(), rows.dur_ns.tolist(), names, strict=True))


def test_frames_are_read_back_where_they_are_wanted(tmp_path: Path) -> None:
    path = merged(tmp_path, write_kineto(tmp_path / "t.json"))
    assert frames(read(path, wanted=Wanted.STACKS)) == of_file(FRAMES)
    plain = read(path)
    assert not frames(plain)
    assert not plain.problems
    assert not read(path, wanted=Wanted.SHOWN).problems


def test_a_shown_trace_without_its_frames_is_the_one_that_figures_are_made_of(
    tmp_path: Path,
) -> None:
    path = write_kineto(tmp_path / "t.json")
    plain, shown = read(path), read(path, wanted=Wanted.SHOWN)
    assert shown.problems == plain.problems
    assert "python_function" not in " ".join(p.message for p in plain.problems)
    assert frames(shown) == of_file(FRAMES)
    without = without_frames(shown)
    assert {name: len(table) for name, table in without.tables()} == {
        name: len(table) for name, table in plain.tables()
    }
    assert without.marks.start_ns.tolist() == plain.marks.start_ns.tolist()


@pytest.mark.usefixtures("shared")
def test_recorded_stacks_are_all_there(tmp_path: Path) -> None:
    source = shared_path("fixtures/kineto/mi300x_bert_small.json.gz")
    got = decode(merged(tmp_path, source))
    shown = Counter(
        (s.ts, s.dur, s.name) for s in got.slices if s.category in {"module", "python_function"}
    )
    assert shown == frames(read(source, wanted=Wanted.STACKS))
    assert shown.total() == 1389
