"""What the hooks tell of Python's work, in a run: on its clock, of its process and pass, discreet,
and in the merged trace.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.rundir.paths import RunDir
from profharness.trace.columns.stacks import frames_of
from profharness.trace.model import ClockDomain, Trace
from profharness.trace.parts import cutting, select
from profharness.understand.load_run import load_run
from profharness.writers import perfetto
from tests.readers.own.host_files import STACKS, write
from tests.run_files import BOOT, run_of

AT = BOOT + 5_000_000
EARLY = BOOT - 120_000_000_000
FILE = "artifacts/host/n0/1/host-101.jsonl"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = run_of(tmp_path_factory.mktemp("host"), ranks=2, kernels=20, lend=False)
    record(run)
    return run


def record(run: RunDir, pass_name: str = "torch") -> None:
    secret = {"file": [1, "/home/me/--api-key=sk-abcdefghijklmnopqrstuvwx0123456789ABCDEFGH/x.py"]}
    write(
        run.root / FILE,
        {"v": 1, "clock": "boottime", "pass_name": pass_name},
        *STACKS,
        secret,
        {"frame": [2, 1, 9, "f"]},
        {"stack": [2, -1, 2]},
        {"gc": [[EARLY, 150_000, 1, 3, 101], [AT, 200_000, 2, 3, 101]]},
        {
            "samples": {
                "tid": 101,
                "at_ns": AT,
                "cpu_ns": 7,
                "rows": [0, 1, 0, 4, 1000, 2, 5, 0],
            }
        },
    )


def of_host(trace: Trace) -> Trace:
    return select.by_source(trace, [source.format == "host" for source in trace.sources])


def test_they_have_their_process_and_the_clock_of_the_run(run: RunDir) -> None:
    part = of_host(load_run(run.root).trace)
    (source,) = part.sources
    assert (source.path, source.host, source.rank, source.pid) == (FILE, "n0", 1, 101)
    assert (source.pass_name, source.layer, source.clock) == ("torch", "python", ClockDomain.RUN)
    assert part.marks.start_ns.tolist() == [EARLY, AT]
    assert part.host_samples.at_ns.tolist() == [AT, AT + 1000]
    assert part.strings.decode(part.host_samples.host) == ["n0", "n0"]
    whole = load_run(run.root).trace
    assert set(whole.strings.decode(whole.host_samples.stack)) == set(
        part.strings.decode(part.host_samples.stack)
    )


def test_a_path_that_holds_a_secret_does_not_show_it(run: RunDir) -> None:
    trace = load_run(run.root).trace
    texts = trace.strings.decode(trace.host_samples.stack)
    assert [frame.function for frame in frames_of(texts[0])] == ["step", "<module>"]
    assert "sk-abcdef" not in texts[1]
    assert not any("sk-abcdef" in text for text in trace.strings.texts)


def test_a_pass_that_the_run_does_not_have_is_none(tmp_path: Path) -> None:
    run = run_of(tmp_path, ranks=2, kernels=20, lend=False)
    record(run, "no such pass")
    (source,) = of_host(load_run(run.root).trace).sources
    assert source.pass_name == ""


def test_a_window_counts_from_the_same_time_with_them(run: RunDir) -> None:
    """Collections during start-up lie before everything else."""
    trace = load_run(run.root).trace
    without = select.by_source(trace, [source.format != "host" for source in trace.sources])
    assert cutting.first_ns(trace) == cutting.first_ns(without)
    window = cutting.Cut(window=(0, None))
    part, _ = cutting.cut(trace, window, cutting.first_ns(trace) or 0)
    assert of_host(part).marks.start_ns.tolist() == [AT]


def test_the_merged_trace_shows_collections_on_their_thread(run: RunDir, tmp_path: Path) -> None:
    trace = load_run(run.root).trace
    target = tmp_path / "m.pftrace"
    perfetto.write(trace, target, attributes={})
    assert b"garbage collection, generation 2" in target.read_bytes()
