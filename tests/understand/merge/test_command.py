"""`profharness merge` before and after the merge: what is refused unread, which way is taken, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.errors import UsageError
from profharness.rundir.paths import RunDir
from profharness.rundir.private.folders import HIDDEN
from profharness.trace.parts.cutting import Cut
from profharness.understand.many.jobs import Workers
from profharness.understand.merge import command, merger
from profharness.understand.merge.command import MergeOptions, fits_in_memory, merge_to_file
from tests.readers.kineto.kineto_files import document, event, kernel, launch, one_file, op
from tests.readers.kineto.kineto_files import write as write_json
from tests.run_files import run_of
from tests.writers.decode import decode


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return run_of(tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.slow
def test_large_runs_and_several_paths_go_in_parts(run, tmp_path, monkeypatch):
    file = write_json(tmp_path / "a.json", document([]))
    assert fits_in_memory([run.root])
    assert fits_in_memory([file], Workers(processes=2))
    assert not fits_in_memory([run.root], Workers(processes=1))
    assert not fits_in_memory([file, run.root])
    monkeypatch.setattr(command, "LARGE", 1)
    assert not fits_in_memory([run.root])
    taken = []
    parts = command.merge_spilled_parts
    monkeypatch.setattr(
        command, "merge_spilled_parts", lambda paths, job: taken.extend(paths) or parts(paths, job)
    )
    assert merge_to_file([run.root], tmp_path / "large.pftrace", MergeOptions()).path.exists()
    assert taken == [run.root]


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
@pytest.mark.slow
def test_a_selection_says_what_it_left_out(ranks, tmp_path):
    paths = [made.path for made in ranks]
    options = MergeOptions(allow_unaligned=True, cut=Cut(steps=(8, 10), ranks=frozenset({1, 2})))
    lines = merge_to_file(paths, tmp_path / "m.pftrace", options).lines
    assert any(line.startswith("wrote 2\u2009000 kernels") for line in lines)
    assert "left out 4\u2009000 kernels: outside of steps 8:10 and ranks 1, 2" in lines
    assert "left out 1 file of ranks that were not asked for" in lines
    with pytest.raises(UsageError, match="no file is left"):
        merge_to_file(
            paths,
            tmp_path / "n.pftrace",
            MergeOptions(allow_unaligned=True, cut=Cut(ranks=frozenset({7}))),
        )
    with pytest.raises(UsageError, match="no record is left"):
        merge_to_file(
            paths,
            tmp_path / "n.pftrace",
            MergeOptions(allow_unaligned=True, cut=Cut(steps=(900, None))),
        )
    with pytest.raises(UsageError, match="no record is left") as one_file:
        merge_to_file(paths[:1], tmp_path / "n.pftrace", MergeOptions(cut=Cut(steps=(900, None))))
    assert "steps 6 to 11" in one_file.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["m.pftrace"]


def test_what_is_left_keeps_its_operator(tmp_path):
    """The first operator is left out: its step was not asked for, or it starts before time zero."""
    events = []
    for number, begin in enumerate((0, 100, 200)):
        device = {"tid": 7, "device": 0, "stream": 7, "correlation": number + 1}
        events += [
            event("user_annotation", f"ProfilerStep#{number}", begin, 100),
            op(f"aten::copy_{number}", begin + 5, 10, number + 1),
            launch("cudaMemcpyAsync", begin + 6, 3, number + 1),
            event("gpu_memcpy", f"Memcpy {number}", begin + 20, 30, pid=0, **device),
        ]
    steps = write_json(tmp_path / "steps.json", document(events, baseTimeNanoseconds=10**18))
    early = write_json(tmp_path / "early.json", document([op("aten::early", -50, 20, 9), *events]))
    for path, options, kept in ((steps, ["--steps", "1:3"], (1, 2)), (early, [], (0, 1, 2))):
        target = tmp_path / f"{path.stem}.pftrace"
        words = ["merge", str(path), "-o", str(target), "--gpu-repr", "track-event"]
        assert run_cli([*words, *options]) == 0
        copies = [one for one in decode(target).slices if one.name.startswith("Memcpy")]
        assert [(one.name, dict(one.notes)["operator"]) for one in copies] == [
            (f"Memcpy {number}", f"aten::copy_{number}") for number in kept
        ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--window", "5"), "not a range"),
        (("--window", "2s:1s"), "empty"),
        (("--steps", "a:3"), "not the number of a step"),
        (("--only-ranks", "3-1"), "not a rank"),
        (("--steps", ":"), "not a range"),
        (("--gpu-repr", "neither"), "not a representation"),
    ],
)
def test_wrong_selections_are_usage_errors(capsys, tmp_path, words, said):
    path = write_json(
        tmp_path / "a.json",
        document([launch("hipLaunchKernel", 1, 1, 5), kernel("k", 10, 2, correlation=5)]),
    )
    assert run_cli(["merge", str(path), "-o", str(tmp_path / "m.pftrace"), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_window_of_one_file_by_the_command_line(capsys, tmp_path):
    events = [
        event
        for i in range(10)
        for event in (
            launch("hipLaunchKernel", 1000 * i, 1, i + 1),
            kernel(f"k{i}", 1000 * i + 10, 2, correlation=i + 1),
        )
    ]
    path = write_json(tmp_path / "a.json", document(events))
    for representation in ("render-stage", "track-event"):
        assert (
            run_cli(
                [
                    "merge",
                    str(path),
                    "-o",
                    str(tmp_path / "m.pftrace"),
                    "--force",
                    "--window",
                    "2ms:4ms",
                    "--gpu-repr",
                    representation,
                ]
            )
            == 0
        )
        err = capsys.readouterr().err
        assert "wrote 2 kernels" in err
        assert "left out 8 kernels: outside of the window 2 ms to 4 ms" in err


def test_files_of_several_hosts_without_collectives_are_refused_at_the_second(tmp_path):
    paths = [one_file(tmp_path, f"{host}.json", host) for host in ("n0", "n1", "n2")]
    with pytest.raises(UsageError, match=r"recorded on realtime of n0, realtime of n1$"):
        merge_to_file(paths, tmp_path / "m.pftrace", MergeOptions())


def test_files_beside_which_a_hook_wrote_another_host_are_refused(tmp_path):
    paths = [one_file(tmp_path, f"{n}.json", "") for n in range(2)]
    for number, path in enumerate(paths):
        Path(f"{path}.profharness.json").write_text(json.dumps({"v": 1, "host": f"h{number}"}))
    with pytest.raises(UsageError, match="realtime of h0, realtime of h1"):
        merge_to_file(paths, tmp_path / "m.pftrace", MergeOptions())


def test_other_ranks_hosts_do_not_matter(tmp_path):
    paths = [
        one_file(
            tmp_path,
            f"{rank}.json",
            f"n{rank // 2}",
            distributedInfo={"rank": rank, "world_size": 4},
        )
        for rank in range(4)
    ]
    report = merge_to_file(
        paths, tmp_path / "m.pftrace", MergeOptions(cut=Cut(ranks=frozenset({2, 3})))
    )
    assert "left out 2 files of ranks that were not asked for" in report.lines


def test_files_that_only_their_bodies_tell_apart_are_refused_at_the_second(tmp_path, monkeypatch):
    paths = [one_file(tmp_path, f"{n}.json", "") for n in range(5)]
    taken = []
    whole = merger.load_files
    monkeypatch.setattr(
        merger,
        "load_files",
        lambda given, **options: taken.append(given) or whole(given, **options),
    )
    with pytest.raises(UsageError, match="does not say which clock or host"):
        merge_to_file(paths, tmp_path / "m.pftrace", MergeOptions())
    assert len(taken) == 2
    assert not list(tmp_path.glob("*.pftrace")) + list(tmp_path.glob(f"{HIDDEN}*"))
