"""A large run is understood from its parts: the same trace, figures and findings as in memory, in
less of it.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profharness.rundir.manifest import Artifact
from profharness.rundir.paths import RunDir
from profharness.rundir.private.folders import HIDDEN
from profharness.trace.merge import merge
from profharness.trace.model import Trace
from profharness.trace.parts.cutting import Cut
from profharness.understand import report_run as understand
from profharness.understand.load import of_records
from profharness.understand.load_run import load_run
from profharness.understand.merge import command, merger
from profharness.understand.merge.spilled import merge_spilled, spill
from tests.run_files import run_of
from tests.samples.keep import unpacked
from tests.understand.merge.decoded_records import records
from tests.writers.decode import decode
from tests.writers.strategies import traces


def assert_equal(found: Trace, expected: Trace) -> None:
    """Every column, pool and problem."""
    assert found.strings.texts == expected.strings.texts
    for name in ("sources", "devices", "streams", "problems", "statistics"):
        assert getattr(found, name) == getattr(expected, name), name
    for name, table in expected.tables():
        for column in table.__dataclass_fields__:
            one, other = getattr(getattr(found, name), column), getattr(table, column)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other, err_msg=f"{name}.{column}")


@pytest.mark.slow
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(traces(), min_size=1, max_size=3))
def test_what_was_set_aside_comes_back_as_it_was(tmp_path_factory, given_traces):
    folder = tmp_path_factory.mktemp("parts")
    parts = [spill(trace, folder / str(number), Cut()) for number, trace in enumerate(given_traces)]
    alone = Trace((), type(given_traces[0].strings)())
    assert_equal(merge_spilled(parts), merge([*given_traces, alone]))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "ranks", "lend"), [(1, 4, True), (2, 1, False), (3, 3, True)])
def test_the_same_records_trace_and_figures(tmp_path, monkeypatch, seed, ranks, lend):
    run = run_of(tmp_path / "run", seed=seed, ranks=ranks, lend=lend)
    expected = load_run(run.root)
    in_memory = understand.finish(run.root)
    written = {path.name: path.read_bytes() for path in (run.summary, run.hotspots, run.report)}
    whole = records(decode(run.merged))
    run.merged.unlink()
    seen = []
    load = merger.merge_and_load
    monkeypatch.setattr(command, "LARGE", 1)
    monkeypatch.setattr(
        merger, "merge_and_load", lambda *given: seen.append(load(*given)) or seen[-1]
    )
    in_parts = understand.finish(run.root)
    assert_equal(of_records(seen[0], run.root).trace, of_records(expected, run.root).trace)
    assert seen[0].findings == expected.findings
    assert msgspec.json.encode(in_parts) == msgspec.json.encode(in_memory)
    assert {name: (run.root / name).read_bytes() for name in written} == written
    assert records(decode(run.merged)) == whole
    assert not list(run.root.glob(f"{HIDDEN}*"))


def add_functions(path: Path) -> None:
    """Python's functions and a module around the operators of each thread of a Kineto file: the
    module holds the first half of the time.
    """
    document = json.loads(gzip.decompress(path.read_bytes()))
    events = document["traceEvents"]
    threads: dict[tuple[int, int], list[dict]] = {}
    for event in events:
        if event.get("cat") == "cpu_op":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    for (pid, tid), operators in threads.items():
        start = min(one["ts"] for one in operators) - 1
        long = max(one["ts"] + one["dur"] for one in operators) + 1 - start
        for name, share in (("train.py(10): main", 1.0), ("nn.Module: Net_0", 0.5)):
            span = {"ph": "X", "cat": "python_function", "name": name, "pid": pid, "tid": tid}
            events.append({**span, "ts": start, "dur": round(long * share, 3), "args": {}})
    path.write_bytes(gzip.compress(json.dumps(document).encode()))


@pytest.mark.slow
def test_a_large_run_has_the_flame_graphs_of_functions_and_modules(tmp_path, monkeypatch):
    """Of all ranks, some of which recorded neither: their time is outside."""
    run = run_of(tmp_path / "run", ranks=3, lend=False)
    for path in sorted(run.root.rglob("trace.json.gz"))[:2]:
        add_functions(path)
    in_memory = understand.finish(run.root)
    page = run.report.read_bytes()
    monkeypatch.setattr(command, "LARGE", 1)
    in_parts = understand.finish(run.root)
    assert in_memory.pictures is not None
    flames = in_memory.pictures.flames
    assert [flame.by for flame in flames] == ["module", "op", "stack"]
    assert len({flame.total_ns for flame in flames}) == 1
    assert any("Net" in name for name in flames[0].names)
    assert "outside of modules" in flames[0].names
    assert "outside of recorded functions" in flames[2].names
    assert in_parts.pictures is not None
    assert in_parts.pictures.flames == flames
    assert in_memory.host is not None
    assert in_memory.partition is not None
    assert in_memory.host.total_ns == in_memory.partition.idle_ns > 0
    assert any(part.name == "train.py(10): main" for part in in_memory.host.parts)
    assert in_parts.host == in_memory.host
    assert run.report.read_bytes() == page


@pytest.mark.slow
def test_flame_graphs_of_a_large_run_are_those_of_the_pass_that_speaks_for_kernels(
    tmp_path, monkeypatch
):
    """That of rocprofv3, which knows neither operators nor functions."""
    run = run_of(tmp_path / "run", ranks=2, lend=True)
    for path in run.root.rglob("trace.json.gz"):
        add_functions(path)
    monkeypatch.setattr(command, "LARGE", 1)
    pictures = understand.finish(run.root).pictures
    assert pictures is not None
    assert pictures.flames == ()


def test_a_large_run_of_which_nothing_can_be_read(tmp_path, monkeypatch):
    run = RunDir.create(tmp_path / "run")
    monkeypatch.setattr(command, "LARGE", 0)
    manifest = run_of(tmp_path / "other", ranks=1).read_manifest()
    run.write_manifest(
        msgspec.structs.replace(
            manifest, artifacts=tuple(one for one in manifest.artifacts[:1]), points=()
        )
    )
    path = run.root / manifest.artifacts[0].path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{")
    summary = understand.finish(run.root)
    assert run.merged.exists()
    assert any("left out" in problem.message for problem in summary.problems)


# on one core: on several it is chance how much of one part waits for another
PEAK = """
import os
import sys
import tempfile
from pathlib import Path
from profharness.understand.merge import command; from profharness.understand import report_run as understand
command.LARGE = int(sys.argv[2])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
understand.finish(Path(sys.argv[1]))
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_ranks_that_are_written(tmp_path):
    """What two more ranks of 20,000 kernels need are their columns, with operators and calls, and
    what the figures need: less than their files, which have 1,680 B per kernel. Nothing that is
    loaded for one rank alone, such as a library for plots, covers the difference.
    """
    peaks = []
    for ranks in (1, 3):
        run = _of_ranks(tmp_path / f"run{ranks}", ranks, 20_000)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(run.root), "1"],
            capture_output=True,
            text=True,
            check=True,
            # which arena of malloc a thread gets is chance, and each has its own rest
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
        )
        peaks.append(int(done.stdout.splitlines()[-1]))
    assert (peaks[1] - peaks[0]) * 2**20 / 40_000 < 1_680, peaks


def _of_ranks(root: Path, ranks: int, kernels: int) -> RunDir:
    """A run of a pass that left a generated trace per rank."""
    run = run_of(root, ranks=1, lend=False)
    manifest, artifacts = run.read_manifest(), []
    make = Path(__file__).parent.parent.parent / "benchmarks" / "make_kineto.py"
    for rank in range(ranks):
        path = run.artifacts_dir("torch", "n0", str(rank)) / "large.json"
        subprocess.run(
            [
                sys.executable,
                str(make),
                "--kernels",
                str(kernels),
                "--seed",
                str(rank),
                "-o",
                str(path),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        path.write_bytes(
            path.read_bytes()
            .replace(b"4711", b"471%d" % rank)
            .replace(b'"rank": 0', b'"rank": %d' % rank)
        )
        artifacts.append(
            Artifact(
                path=run.relative(path),
                layer="torch",
                format="kineto",
                pass_name="torch",
                host="n0",
                pid=4710 + rank,
                rank=rank,
            )
        )
    run.write_manifest(msgspec.structs.replace(manifest, artifacts=tuple(artifacts)))
    return run


def test_a_run_that_takes_its_report_needs_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = unpacked("0.1-command", tmp_path)
    (root / "report.html").unlink(missing_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))  # as TMPDIR on a full disk
    understand.finish(root)
    assert (root / "report.html").is_file()
