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
from profharness.understand.many.figures import linked, summarise_files
from profharness.understand.many.jobs import FileGroup, Workers
from profharness.understand.many.spread import Here, Processes
from profharness.understand.many.tables import hotspots_of_files
from profharness.understand.merge.command import MergeOptions, merge_to_file
from tests.generated import Generated, generate
from tests.readers.kineto.kineto_files import document, event, kernel, launch, one_file
from tests.readers.kineto.kineto_files import write as write_json
from tests.variants import but_for, thorough
from tests.writers.decode import decode

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
@pytest.mark.parametrize(
    ("seed", "options"),
    but_for(SEEDS, lambda one: one[0] in (4, 5)),
    ids=[str(seed) for seed, _ in SEEDS],
)
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
@pytest.mark.parametrize(
    ("seed", "unlinked", "graphs"),
    [*thorough((1, "0", "0"), (2, "0.1", "0"), (3, "0", "0.5")), (4, "0.1", "0.5")],
)
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
        table = hotspots_of_files([one.path], None).table
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
        for row in hotspots_of_files(paths, None, workers=Workers(processes=1)).table.rows
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


@pytest.mark.slow
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
    hotspots = hotspots_of_files(paths, None)
    assert sum(row.calls for row in hotspots.table.rows) == 3_000
    assert [file.path for file in hotspots.unread] == [broken]
    assert not [
        problem for problem in hotspots.problems if problem.severity != "info"
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


@pytest.mark.slow
def test_a_process_that_dies_costs_another_try(tmp_path):
    flag = str(tmp_path / "died")
    found = dict(Processes(2).each(die_once, [(number, flag) for number in range(4)]))
    assert found == {0: 0, 1: 10, 2: 20, 3: 30}
    assert Path(flag).exists()


@pytest.mark.slow
def test_an_item_that_kills_every_process_is_named():
    with pytest.raises(Unavailable, match="worked on 1 died"):
        dict(Processes(2).each(die_always, [0, 1, 2]))


@pytest.mark.parametrize("spread", [Here(), Processes(2)])
def test_errors_come_back_with_their_hint(spread):
    with pytest.raises(InputError, match="item 3") as raised:
        dict(spread.each(fail, [3]))
    assert raised.value.hint == "a hint"


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
    assert FileGroup((Path("a.json"), Path("b.json"))).path == "a.json, b.json"
