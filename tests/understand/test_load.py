"""What the user names: nothing of different runs, hosts or files folds together."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.errors import InputError, UsageError
from profharness.trace.merge import merge
from profharness.trace.model import ClockDomain, Device, Kernels, Source, Stream, Strings, Trace
from profharness.understand.load import (
    NO_CLOCK,
    check_clocks,
    check_paths,
    load,
    marked,
    of_run,
    run_names,
)
from tests.readers.kineto.kineto_files import document, kernel, launch, write
from tests.writers.test_perfetto import written


def _run(path: str) -> Trace:
    """One kernel of pass `torch`: the same host, pid, rank and stream number in every run."""
    source = Source(path, "kineto", ClockDomain.RUN, host="n0", rank=0, pid=1, pass_name="torch")
    return Trace(
        (source,),
        Strings(("k",)),
        (Device("0", "n0", identity="pci1"),),
        (Stream(0, "7", 1),),
        kernels=Kernels.build(
            start_ns=[5],
            dur_ns=1,
            name=0,
            device=0,
            stream=0,
            pid=1,
            rank=0,
            source=0,
            correlation=3,
        ),
    )


def test_runs_with_equal_passes_pids_and_devices_stay_apart():
    parts = [of_run(_run("a.json"), name) for name in ("monday", "tuesday")]
    trace = merge(parts)
    assert [source.pass_name for source in trace.sources] == ["monday/torch", "tuesday/torch"]
    assert (len(trace.devices), len(trace.streams)) == (1, 2)
    got, _ = written(trace)
    assert len({event.pid for event in got.gpu}) == 2
    assert {
        track.process.process_name for track in got.tracks.values() if track.HasField("process")
    } == {"monday/torch · rank 0", "tuesday/torch · rank 0"}


def test_without_the_runs_name_they_would_fold():
    got, _ = written(merge([_run("a.json"), _run("b.json")]))
    assert len({event.pid for event in got.gpu}) == 1


def test_runs_are_named_by_as_much_of_their_path_as_tells_them_apart(tmp_path):
    runs = [tmp_path / part for part in ("a/x", "b/x", "c/y")]
    for run in runs:
        run.mkdir(parents=True)
    assert run_names(runs) == ["a/x", "b/x", "c/y"]
    assert run_names([runs[0], runs[2]]) == ["x", "y"]
    assert run_names([runs[0]]) == [""]
    file = tmp_path / "f.json"
    file.touch()
    assert run_names([runs[0], file, runs[2]]) == ["x", "", "y"]


def test_paths_must_exist_and_stand_once(tmp_path):
    file = tmp_path / "f.json"
    file.touch()
    with pytest.raises(InputError, match="no such file"):
        check_paths([tmp_path / "absent"])
    with pytest.raises(UsageError, match="named twice"):
        check_paths([file, Path(f"{tmp_path}/./f.json")])
    with pytest.raises(UsageError, match="nothing to read"):
        check_paths([])


def test_sources_without_a_common_clock_are_refused_or_marked():
    one = Source("a", "kineto", ClockDomain.REALTIME, host="n0")
    other = Source("b", "kineto", ClockDomain.REALTIME, host="n1", alignment="snapshots")
    assert check_clocks([one], allow_unaligned=False)
    assert check_clocks([one, one], allow_unaligned=False)
    with pytest.raises(UsageError, match="n0, realtime of n1"):
        check_clocks([one, other], allow_unaligned=False)
    assert not check_clocks([one, other], allow_unaligned=True)
    assert [source.alignment for source in marked([one, other])] == [NO_CLOCK, "snapshots"]


def test_loose_files_without_identity_have_devices_of_their_own(tmp_path):
    paths = [
        write(
            tmp_path / f"{rank}.json",
            document(
                [launch("hipLaunchKernel", 1, 1, 5), kernel("k", 10 + rank, 2, correlation=5)]
            ),
        )
        for rank in range(2)
    ]
    loaded = load(paths, allow_unaligned=True)
    assert len(loaded.trace.devices) == 2
    assert [source.alignment for source in loaded.trace.sources] == [NO_CLOCK] * 2
    with pytest.raises(UsageError, match="one clock"):
        load(paths)
