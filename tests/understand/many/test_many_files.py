"""Many files through real processes: every count equals the generator's truth, and the number of
processes changes nothing.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.errors import InputError, Unavailable, UsageError
from profharness.node import ceilings as calibration
from profharness.node.ceilings import Calibration
from profharness.trace.parts.cutting import Cut
from profharness.understand.load import load
from profharness.understand.many.figures import linked, summarise_files
from profharness.understand.many.jobs import Files, Workers
from profharness.understand.many.spread import Here, Processes
from profharness.understand.many.tables import hotspots_of_files
from profharness.understand.merge import files as file_merging
from profharness.understand.merge.files import merge_files
from profharness.understand.merge.parts import MergeJob
from profharness.understand.merge.sources import MergeOptions, merge_to_file
from profharness.writers.options import WriteOptions
from profharness.writers.perfetto import write
from tests.generated import Generated, generate
from tests.readers.kineto.kineto_files import document, event, kernel, launch
from tests.readers.kineto.kineto_files import write as write_json
from tests.writers.decode import Decoded, decode

SEEDS = (
    (1, ()),
    (2, ("--graph-fraction", "0.5")),
    (3, ("--unlinked-fraction", "0.1")),
    (4, ("--flavor", "cuda", "--graph-fraction", "0.3", "--unlinked-fraction", "0.05")),
    (5, ("--kernels-per-step", "500", "--python-stack")),
)

CALIBRATED = Calibration(
    created="2026",
    kind="rocm",
    name="AMD Instinct MI300X",
    compute_units=304,
    copy_bytes_per_s=4e12,
)


def output(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert run_cli([str(word) for word in words]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "options"), SEEDS, ids=[str(seed) for seed, _ in SEEDS])
def test_answers_equal_the_generators_truth(capsys, tmp_path, seed, options):
    made = generate(
        tmp_path,
        "trace.json.gz" if seed == 5 else "trace.json",
        20_000,
        "--seed",
        str(seed),
        *options,
    )
    table = json.loads(output(capsys, "hotspots", made.path, "--json"))
    assert {row["name"]: (row["calls"], row["total_ns"]) for row in table["rows"]} == made.totals
    truth = made.truth
    assert (table["busy_any_ns"], table["device_span_ns"]) == (
        truth["busy_union_ns"],
        truth["span_ns"],
    )
    shown = json.loads(output(capsys, "metrics", made.path, "--json"))
    counts = shown["trace"]
    assert (counts["kernels"], counts["busy_any_ns"], counts["span_ns"]) == (
        truth["kernels"],
        truth["busy_union_ns"],
        truth["span_ns"],
    )
    assert counts["unlinked_kernels"] == truth["unlinked"]
    assert counts["streams"] == len(truth["per_stream"])
    assert table["busy_ns"] == counts["busy_ns"]


@pytest.mark.slow
@pytest.mark.parametrize("graphs", ["0", "0.5"])
@pytest.mark.parametrize("unlinked", ["0", "0.1"])
@pytest.mark.parametrize("seed", range(1, 6))
def test_every_seed_with_graphs_and_unlinked_kernels_on_several_ranks(
    tmp_path, seed, unlinked, graphs
):
    """Counts, sums, unions and links of each rank and of all together, by both commands."""
    made = [
        generate(
            tmp_path,
            f"rank{rank}.json",
            2_000 + 100 * rank,
            "--seed",
            str(10 * seed + rank),
            "--rank",
            str(rank),
            "--graph-fraction",
            graphs,
            "--unlinked-fraction",
            unlinked,
            "--kernels-per-step",
            "300",
        )
        for rank in range(3)
    ]
    for one in made:
        counts = summarise_files([one.path], Workers(processes=1)).trace
        truth = one.truth
        assert (
            counts.kernels,
            counts.busy_any_ns,
            counts.span_ns,
            counts.unlinked_kernels,
            counts.streams,
        ) == (
            truth["kernels"],
            truth["busy_union_ns"],
            truth["span_ns"],
            truth["unlinked"],
            len(truth["per_stream"]),
        )
        assert (counts.kernels_in_graphs > 0) == (graphs != "0")
        table = hotspots_of_files([one.path], None)[0]
        assert {row.name: (row.calls, row.total_ns) for row in table.rows} == one.totals
        assert (table.busy_any_ns, table.device_span_ns) == (
            truth["busy_union_ns"],
            truth["span_ns"],
        )
    paths = [one.path for one in made]
    counts = summarise_files(paths, Workers(processes=1)).trace
    for name, key in (
        ("kernels", "kernels"),
        ("busy_any_ns", "busy_union_ns"),
        ("unlinked_kernels", "unlinked"),
    ):
        assert getattr(counts, name) == sum(one.truth[key] for one in made)
    totals: Counter[str] = Counter()
    for one in made:
        totals.update({name: total for name, (_, total) in one.totals.items()})
    assert {
        row.name: row.total_ns
        for row in hotspots_of_files(paths, None, workers=Workers(processes=1))[0].rows
    } == totals
    written = decode(
        merge_to_file(
            paths,
            tmp_path / "all.pftrace",
            MergeOptions(allow_unaligned=True, workers=Workers(processes=1)),
        ).path
    )
    found = Counter()
    for work in written.gpu:
        if work.stage == "kernel":
            found[work.name] += work.dur
    assert found == totals


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Generated]:
    folder = tmp_path_factory.mktemp("ranks")
    return [
        generate(
            folder,
            f"rank{rank}.json",
            3_000,
            "--seed",
            str(rank + 10),
            "--rank",
            str(rank),
            "--unlinked-fraction",
            "0.05",
            "--kernels-per-step",
            "500",
        )
        for rank in range(3)
    ]


def _check(summary: dict, ranks: list[Generated]) -> None:
    truths = [made.truth for made in ranks]
    counts = summary["trace"]
    for key, name in (
        ("kernels", "kernels"),
        ("busy_any_ns", "busy_union_ns"),
        ("unlinked_kernels", "unlinked"),
    ):
        assert counts[key] == sum(truth[name] for truth in truths)
    assert counts["span_ns"] == max(t["last_gpu_ns"] for t in truths) - min(
        t["first_gpu_ns"] for t in truths
    )
    assert (counts["ranks"], counts["devices"], counts["streams"]) == (
        len(ranks),
        len(ranks),
        2 * len(ranks),
    )
    assert sorted(summary["devices"]) == [f"-/{rank}/{rank}" for rank in range(len(ranks))]
    assert counts["distinct_kernels"] == len({name for made in ranks for name in made.totals})


@pytest.mark.parametrize("processes", ["1", "2"])
def test_several_ranks_are_summed(capsys, ranks, processes):
    paths = [made.path for made in ranks]
    _check(json.loads(output(capsys, "metrics", *paths, "--processes", processes, "--json")), ranks)
    table = json.loads(output(capsys, "hotspots", *paths, "--processes", processes, "--json"))
    totals: Counter[str] = Counter()
    for made in ranks:
        totals.update({name: total for name, (_, total) in made.totals.items()})
    assert {row["name"]: row["total_ns"] for row in table["rows"]} == totals


def test_figures_of_several_files_lie_between_those_of_each(ranks):
    paths = [made.path for made in ranks]
    alone = [summarise_files([path]) for path in paths]
    together = summarise_files(paths, Workers(processes=1))
    for name in ("busy", "idle", "launch_latency_median", "queue_depth"):
        values = [one.metrics[name].value for one in alone]
        figure = together.metrics[name]
        assert (figure.low, figure.high) == (min(values), max(values))
        assert figure.low <= figure.value <= figure.high
        assert "3 files" in figure.note
    assert together.partition.window_ns == sum(one.partition.window_ns for one in alone)
    assert together.partition.idle_ns == sum(one.partition.idle_ns for one in alone)


def test_a_file_that_cannot_be_read_is_named_and_the_rest_counts(capsys, ranks, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text('{"traceEvents": [')
    paths = [ranks[0].path, broken]
    shown = json.loads(output(capsys, "metrics", *paths, "--json"))
    assert shown["trace"]["kernels"] == 3_000
    first = shown["problems"][0]
    assert (first["source"], first["severity"]) == (str(broken), "error")
    assert "left out" in first["message"]
    table, unread, problems = hotspots_of_files(paths, None)
    assert (sum(row.calls for row in table.rows), [one.path for one in unread]) == (3_000, [broken])
    assert not [
        problem for problem in problems if problem.severity != "info"
    ]  # the file that was read is whole
    with pytest.raises(InputError, match="broken"):
        hotspots_of_files([broken], None)


def test_a_run_among_files_is_refused(ranks, tmp_path):
    with pytest.raises(UsageError, match="read alone"):
        summarise_files([ranks[0].path, tmp_path])


def test_files_that_saw_one_device_are_found():
    identities = [
        ("a", frozenset({("n", "1")})),
        ("b", frozenset({("n", "2")})),
        ("c", frozenset({("n", "1"), ("n", "3")})),
        ("d", frozenset()),
        ("e", frozenset({("n", "3")})),
    ]
    assert sorted(sorted(group) for group in linked(identities)) == [["a", "c", "e"], ["b"], ["d"]]


def _records(got: Decoded) -> tuple[Counter, Counter]:
    events = Counter((e.ts, e.dur, e.name, e.gpu, e.stage, e.args) for e in got.gpu)
    by_id = {e.event_id: (e.ts, e.name, e.gpu) for e in got.gpu}
    assert len(by_id) == len(got.gpu)
    slices = Counter(
        (
            s.ts,
            s.dur,
            s.name,
            s.category,
            s.notes,
            tuple(sorted(by_id[event] for event in s.submits)),
        )
        for s in got.slices
    )
    return events, slices


def test_files_written_in_turn_give_the_records_of_one_merge_in_memory(ranks, tmp_path):
    paths = [made.path for made in ranks]
    report = merge_to_file(
        paths,
        tmp_path / "parts.pftrace",
        MergeOptions(allow_unaligned=True, workers=Workers(processes=2)),
    )
    assert sum("not aligned" in line for line in report.lines) == 3
    whole = write(load(paths, allow_unaligned=True).trace, tmp_path / "whole.pftrace")
    parts, together = (decode(tmp_path / f"{name}.pftrace") for name in ("parts", "whole"))
    assert _records(parts) == _records(together)
    assert len(parts.gpu) == whole.kernels + whole.copies
    assert len({event.pid for event in parts.gpu}) == 3
    assert not list(tmp_path.glob(".profharness-merge-*"))


@pytest.mark.parametrize("limit", [1, 2_000, 100_000])
def test_the_first_kernels_of_all_files_are_kept(ranks, tmp_path, limit):
    paths = [made.path for made in ranks]
    job = MergeJob(
        tmp_path / "m.pftrace",
        Cut(),
        WriteOptions(max_kernels=limit),
        lambda _: {},
        Workers(processes=1),
    )
    merged = merge_files(paths, job, lambda sources: None)
    trace = load(paths, allow_unaligned=True).trace
    assert merged.written.kernels == min(limit, 9_000)
    assert [(one.table, one.count) for one in merged.written.left_out] == (
        [("kernels", 9_000 - limit)] if limit < 9_000 else []
    )
    starts = sorted(trace.kernels.start_ns.tolist())[:limit]
    shown = decode(job.target)
    assert sorted(e.ts for e in shown.gpu if e.stage == "kernel") == starts


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


# functions of the processes below stand here, so that these can import them


def die_once(item: tuple[int, str]) -> int:
    """Kills its own process at the first try of item 2."""
    number, flag = item
    if number == 2 and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * number


def die_always(item: int) -> int:
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def fail(item: int) -> int:
    raise InputError(f"item {item}", "a hint")


def test_a_process_that_dies_costs_another_try(tmp_path):
    flag = str(tmp_path / "died")
    found = dict(Processes(2).each(die_once, [(number, flag) for number in range(4)]))
    assert found == {0: 0, 1: 10, 2: 20, 3: 30}
    assert Path(flag).exists()


def test_an_item_that_kills_every_process_is_named():
    with pytest.raises(Unavailable, match="worked on 1 died"):
        dict(Processes(2).each(die_always, [0, 1, 2]))


@pytest.mark.parametrize("spread", [Here(), Processes(2)])
def test_errors_come_back_with_their_hint(spread):
    with pytest.raises(InputError, match="item 3") as raised:
        dict(spread.each(fail, [3]))
    assert raised.value.hint == "a hint"


def one_file(folder: Path, name: str, host: str, events: int = 1, **keys: object) -> Path:
    pairs = [
        event
        for i in range(events)
        for event in (
            launch("hipLaunchKernel", 10 * i, 1, i + 1),
            kernel("k", 10 * i + 5, 2, correlation=i + 1),
        )
    ]
    return write_json(
        folder / name,
        document(
            pairs, baseTimeNanoseconds=10**18, **({"host_name": host} if host else {}), **keys
        ),
    )


def test_files_of_several_hosts_are_refused_before_they_are_read(tmp_path, monkeypatch):
    paths = [one_file(tmp_path, f"{host}.json", host) for host in ("n0", "n1", "n2")]
    read = []
    monkeypatch.setattr(file_merging, "load_files", lambda *given, **_: read.append(given))
    with pytest.raises(UsageError, match="recorded on n0, n1, n2"):
        merge_to_file(paths, tmp_path / "m.pftrace", MergeOptions())
    assert not read


def test_files_beside_which_a_hook_wrote_another_host_are_refused_unread(tmp_path, monkeypatch):
    paths = [one_file(tmp_path, f"{n}.json", "") for n in range(2)]
    for number, path in enumerate(paths):
        Path(f"{path}.profharness.json").write_text(json.dumps({"v": 1, "host": f"h{number}"}))
    monkeypatch.setattr(file_merging, "load_files", lambda *_given, **_: pytest.fail("was read"))
    with pytest.raises(UsageError, match="recorded on h0, h1"):
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
    whole = file_merging.load_files
    monkeypatch.setattr(
        file_merging,
        "load_files",
        lambda given, **options: taken.append(given) or whole(given, **options),
    )
    with pytest.raises(UsageError, match="does not say which clock or host"):
        merge_to_file(paths, tmp_path / "m.pftrace", MergeOptions())
    assert len(taken) == 2
    assert not list(tmp_path.glob("*.pftrace")) + list(tmp_path.glob(".profharness-merge-*"))


def test_points_of_several_files_are_joined(tmp_path):
    """Point p: busy 2 of 10 us in one file, 6 of 20 in the other, which alone has point q."""

    def made(name: str, spans: tuple[tuple[str, int, int, int], ...]) -> Path:
        events = []
        for number, (point, start, length, busy) in enumerate(spans, 1):
            events += [
                event("user_annotation", f"profharness.point:{point}", start, length),
                launch("hipLaunchKernel", start, 1, number),
                event("user_annotation", f"profharness.trial:{point}:0", start, length),
                kernel("k", start + 2, busy, correlation=number),
            ]
        return write_json(
            tmp_path / name, document(events, baseTimeNanoseconds=10**18, host_name=name)
        )

    paths = [made("a", (("p", 0, 10, 2),)), made("b", (("p", 0, 20, 6), ("q", 100, 10, 5)))]
    together = summarise_files(paths, Workers(processes=1))
    assert [point.point for point in together.points] == ["p", "q"]
    busy = [point.metrics["busy"] for point in together.points]
    assert (busy[0].low, busy[0].high) == pytest.approx((0.2, 0.3))
    assert busy[0].value == pytest.approx(8 / 30)
    assert "2 files" in busy[0].note
    assert busy[1].value == pytest.approx(0.5)
    assert together.points[0].partition.window_ns == 30_000
    assert together.points[0].verdict is not None
    shown = [summarise_files([path]).points for path in paths]
    assert together.points[1].metrics["busy"].value == shown[1][1].metrics["busy"].value


def test_ceilings_of_this_machines_devices_are_known_of_many_files_too(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(calibration, "stored", lambda: asked.append(1) or (CALIBRATED,))
    paths = [
        one_file(
            tmp_path,
            f"{n}.json",
            "n0",
            deviceProperties=[{"id": 0, "name": CALIBRATED.name, "numSms": 304}],
        )
        for n in range(2)
    ]
    one, two = summarise_files(paths[:1]), summarise_files(paths)
    assert asked
    assert two.metrics["ceiling_bandwidth"].value == one.metrics["ceiling_bandwidth"].value == 4e12


def test_jobs_say_what_they_are_about():
    assert Files((Path("a.json"), Path("b.json"))).path == "a.json, b.json"
