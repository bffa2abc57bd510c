"""A run merged in parts gives what it gives in memory: every record, arrow, process, queue, counter
and attribute.
"""

from __future__ import annotations

import json
import re
import weakref
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.errors import UsageError
from profharness.rundir.paths import RunDir
from profharness.trace.parts.cutting import Cut
from profharness.understand.many.jobs import IN_ONE, Workers
from profharness.understand.merge import sources as merging
from profharness.understand.merge.sources import MergeOptions, MergeReport, merge_to_file
from profharness.writers import perfetto
from tests.run_files import run_of

# fixtures
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401
from tests.writers.decode import Decoded, decode

IN_PARTS = Workers(processes=1)
CUTS = {
    "all": Cut(),
    "window": Cut(window=(20_000_000, 60_000_150_000)),
    "steps": Cut(steps=(2, 4)),
    "steps-open": Cut(steps=(3, None)),
    "ranks": Cut(ranks=frozenset({1, 2})),
    "steps-of-ranks": Cut(steps=(None, 3), ranks=frozenset({3})),
    "window-of-ranks": Cut(window=(None, 90_000), ranks=frozenset({0, 3})),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return run_of(tmp_path_factory.mktemp("runs") / "run")


def records(got: Decoded) -> dict[str, Counter]:
    """Everything that a file says, without the numbers that its writer chose."""
    processes = {
        (got.machine_of_track[uuid], track.process.pid): (
            track.process.process_name,
            tuple(label for label in track.process.process_labels if " on its host" not in label),
        )
        for uuid, track in got.tracks.items()
        if track.HasField("process")
    }

    def place(uuid: int) -> tuple:
        return got.machine_of_track[uuid], got.path(uuid)

    devices = {
        (packet.machine_id, number): re.sub(r"#\d+", "", str(one))
        for packet in got.packets
        if packet.HasField("gpu_info")
        for number, one in enumerate(packet.gpu_info.gpus)
    }
    assert all(value == e.gpu for e in got.gpu for name, value in e.args if name == "device")
    gpu = {
        e.event_id: (
            e.ts,
            e.dur,
            e.name,
            e.machine,
            devices[e.machine, e.gpu],
            e.queue,
            e.stage,
            processes[e.machine, e.pid],
            tuple(arg for arg in e.args if arg[0] != "device"),
        )
        for e in got.gpu
    }
    assert len(gpu) == len(got.gpu)
    slices = Counter(
        (
            s.ts,
            s.dur,
            s.name,
            s.category,
            s.machine,
            place(s.track),
            s.notes,
            tuple(sorted(gpu[event] for event in s.submits)),
        )
        for s in got.slices
    )
    attributes = [
        packet.trace_attributes for packet in got.packets if packet.HasField("trace_attributes")
    ]
    return {
        "gpu": Counter(gpu.values()),
        "slices": slices,
        "counters": Counter((place(track), ts, value) for track, ts, value in got.counters),
        "tracks": Counter(place(uuid) for uuid in got.tracks),
        "processes": Counter(processes.values()),
        "attributes": Counter(str(one) for found in attributes for one in found.attribute),
        "gpus": Counter((machine, text) for (machine, _), text in devices.items()),
    }


def both(run: RunDir, folder: Path, options: MergeOptions) -> tuple[MergeReport, MergeReport]:
    whole = merge_to_file([run.root], folder / "whole.pftrace", replace(options, workers=IN_ONE))
    parts = merge_to_file([run.root], folder / "parts.pftrace", replace(options, workers=IN_PARTS))
    expected, found = records(decode(whole.path)), records(decode(parts.path))
    for kind, counted in expected.items():
        assert found[kind] == counted, kind
    return whole, parts


def test_parts_are_what_memory_gives(run, tmp_path):
    whole, parts = both(run, tmp_path, MergeOptions())
    assert parts.lines == tuple(
        line.replace(whole.path.name, parts.path.name) for line in whole.lines
    )
    got = records(decode(parts.path))
    assert sum(got["gpu"].values()) == 2 * 4 * 44
    assert (
        sum(any(name == "registers_per_thread" for name, _ in event[-1]) for event in got["gpu"])
        > 200
    )  # geometry was lent
    assert any(
        "taken from the rocprofv3 pass" in line and "160 of 160" in line for line in parts.lines
    )
    assert {path[-1] for (_, path), _, _ in got["counters"]} >= {"throughput", "power"}


@pytest.mark.parametrize("cut", [name for name in CUTS if name != "all"])
def test_what_is_cut_is_the_same(run, tmp_path, cut):
    _, parts = both(run, tmp_path, MergeOptions(cut=CUTS[cut]))
    assert any(line.startswith("left out") for line in parts.brief)


@pytest.mark.parametrize("cut", ["all", "window", "steps"])
def test_laid_over_the_bare_pass(run, tmp_path, cut):
    both(run, tmp_path, MergeOptions(overlay=True, cut=CUTS[cut]))


@pytest.mark.parametrize("limit", [1, 100, 351, 10_000])
def test_the_first_kernels(run, tmp_path, limit):
    whole, parts = both(run, tmp_path, MergeOptions(max_kernels=limit))
    assert parts.brief == whole.brief
    assert any("more than the" in line for line in parts.brief) == (limit < 320)


@pytest.mark.parametrize(
    ("seed", "ranks", "lend"), [(2, 1, True), (3, 2, False), (4, 3, True), (5, 4, False)]
)
@pytest.mark.parametrize("representation", ["render-stage", "track-event"])
def test_other_runs(tmp_path, seed, ranks, lend, representation):
    made = run_of(tmp_path / "run", seed=seed, ranks=ranks, kernels=30 + seed, lend=lend)
    both(made, tmp_path, MergeOptions(gpu_repr=representation))


def test_ranks_that_are_not_stated_are_looked_at_together(run, tmp_path):
    made = run_of(tmp_path / "run")
    manifest = made.read_manifest()
    made.write_manifest(
        type(manifest)(
            **{
                **{name: getattr(manifest, name) for name in manifest.__struct_fields__},
                "artifacts": tuple(_without_rank(one) for one in manifest.artifacts),
            }
        )
    )
    both(made, tmp_path, MergeOptions())


def _without_rank(artifact):
    return type(artifact)(
        path=artifact.path,
        layer=artifact.layer,
        format=artifact.format,
        pass_name=artifact.pass_name,
        host=artifact.host,
        pid=artifact.pid,
    )


def test_damage_and_absence_are_told_alike(tmp_path):
    made = run_of(tmp_path / "run", ranks=2)
    artifacts = made.read_manifest().artifacts
    (made.root / artifacts[0].path).write_bytes(b'{"traceEvents": [')
    (made.root / artifacts[3].path).unlink()
    whole, parts = both(made, tmp_path, MergeOptions())
    assert [line for line in parts.lines if "left out" in line] == [
        line for line in whole.lines if "left out" in line
    ]
    assert sum("the file is left out" in line for line in parts.lines) == 2


def test_large_runs_go_in_parts_and_small_ones_do_not(run, tmp_path, monkeypatch):
    taken = []
    monkeypatch.setattr(
        merging,
        "merge_run",
        lambda root, job, **_: taken.append(root) or (_ for _ in ()).throw(UsageError("seen", "")),
    )
    merge_to_file([run.root], tmp_path / "small.pftrace", MergeOptions())
    assert not taken
    monkeypatch.setattr(merging, "LARGE", 1)
    with pytest.raises(UsageError, match="seen"):
        merge_to_file([run.root], tmp_path / "large.pftrace", MergeOptions())
    assert taken == [run.root]


def test_no_two_groups_are_in_memory_at_once(run, tmp_path, monkeypatch):
    seen: list[weakref.ref] = []
    add = perfetto._Job.add

    def counted(job, trace):
        assert not any(one() is not None for one in seen), "an earlier group is still held"
        add(job, trace)
        seen.append(weakref.ref(trace.kernels))

    monkeypatch.setattr(perfetto._Job, "add", counted)
    merge_to_file(
        [run.root], tmp_path / "m.pftrace", MergeOptions(workers=IN_PARTS, cut=CUTS["window"])
    )
    assert len(seen) == 7  # four ranks, the trials, two hosts' telemetry


def test_nothing_left_is_refused_and_leaves_no_file(run, tmp_path):
    for cut in (Cut(steps=(900, None)), Cut(ranks=frozenset({77}))):
        said = []
        for workers in (IN_ONE, IN_PARTS):
            with pytest.raises(UsageError) as refused:
                merge_to_file(
                    [run.root], tmp_path / "n.pftrace", MergeOptions(cut=cut, workers=workers)
                )
            said.append((refused.value.message, refused.value.hint))
        assert said[0] == said[1]
    assert not list(tmp_path.iterdir())


def test_by_the_command_line_with_processes(run, tmp_path, capsys):
    target = tmp_path / "m.pftrace"
    assert (
        run_cli(
            [
                "merge",
                str(run.root),
                "-o",
                str(target),
                "--processes",
                "2",
                "--only-ranks",
                "0-1",
                "--max-kernels",
                "10",
            ]
        )
        == 0
    )
    err = capsys.readouterr().err
    assert "wrote 10 kernels" in err
    assert "left out 6 files of ranks that were not asked for" in err
    assert "left out 150 kernels: more than the 10 kernels asked for" in err


# the fixture
def test_a_trace_processor_finds_the_same(run, tmp_path, load_trace: LoadTrace):  # noqa: F811
    both(run, tmp_path, MergeOptions())
    queries = (
        (
            "SELECT s.ts, s.dur, s.name, t.name AS track FROM slice s JOIN track t ON s.track_id = "
            "t.id"
        ),
        "SELECT c.ts, c.value, t.name FROM counter c JOIN track t ON c.track_id = t.id",
        "SELECT name, COUNT(*) FROM process GROUP BY name",
        (
            "SELECT o.name, i.name, i.ts FROM flow f JOIN slice o ON f.slice_out = o.id JOIN slice "
            "i ON f.slice_in = i.id"
        ),
    )
    answers = []
    for name in ("whole", "parts"):
        client = load_trace(tmp_path / f"{name}.pftrace")
        assert errors(client) == []
        answers.append(
            [
                Counter(
                    json.dumps(row.__dict__, sort_keys=True, default=str)
                    for row in client.query(query)
                )
                for query in queries
            ]
        )
    assert all(answers[0])
    assert answers[0] == answers[1]
