"""A real Dask cluster of several processes on this machine: the same answers, a worker killed in
the middle included.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from profharness.analysis.kernels.facts import NO_YARDSTICK
from profharness.cli import run_cli
from profharness.errors import Unavailable, UsageError
from profharness.trace.parts.cutting import Cut
from profharness.understand.many import spread as spread_of_files
from profharness.understand.many.figures import part_of, summarise_files
from profharness.understand.many.jobs import FileGroup, Workers, read_each
from profharness.understand.many.spread import dask_cluster
from profharness.understand.many.tables import hotspots_of_files, tally_of
from profharness.understand.merge.command import MergeOptions, merge_to_file
from tests import needs
from tests.analysis.operators import launched
from tests.generated import Generated, generate
from tests.understand.many.test_many_files import die_once
from tests.writers.decode import decode

if TYPE_CHECKING:
    import distributed

needs.packages("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Generated]:
    folder = tmp_path_factory.mktemp("ranks")
    return [
        generate(
            folder,
            f"rank{rank}.json",
            4_000,
            "--seed",
            str(rank),
            "--rank",
            str(rank),
            "--kernels-per-step",
            "500",
        )
        for rank in range(6)
    ]


@pytest.fixture(scope="module")
def nannies() -> Iterator[distributed.LocalCluster]:
    """Three worker processes, each with a nanny that starts another when it dies."""
    import distributed

    with distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        yield cluster


@pytest.fixture
def cluster(nannies: distributed.LocalCluster) -> distributed.LocalCluster:
    """All three of them, also where the test before killed one."""
    import distributed

    with distributed.Client(nannies) as client:
        client.wait_for_workers(3, timeout=120)
    return nannies


def test_metrics_hotspots_and_merge_are_those_of_this_machine(capsys, cluster, ranks, tmp_path):
    paths = [made.path for made in ranks]
    words = [str(path) for path in paths]
    workers = Workers(dask=cluster.scheduler_address)
    assert run_cli(["metrics", *words, "--json", "--dask", cluster.scheduler_address]) == 0
    there = json.loads(capsys.readouterr().out)
    assert run_cli(["metrics", *words, "--json", "--processes", "1"]) == 0
    assert there == json.loads(capsys.readouterr().out)
    assert hotspots_of_files(paths, None, workers=workers) == hotspots_of_files(
        paths, None, workers=Workers(processes=1)
    )
    options = MergeOptions(allow_unaligned=True, cut=Cut(steps=(7, 9)), workers=workers)
    lines = merge_to_file(paths, tmp_path / "window.pftrace", options).lines
    assert "left out 18\u2009000 kernels: outside of steps 7:9" in lines
    assert (
        sum(event.stage == "kernel" for event in decode(tmp_path / "window.pftrace").gpu) == 6_000
    )


def test_the_report_is_that_of_this_machine(capsys, cluster, ranks, tmp_path):
    words = [str(made.path) for made in ranks[:3]]
    pages = {}
    for name, where in (
        ("there", ("--dask", cluster.scheduler_address)),
        ("here", ("--processes", "1")),
    ):
        page = tmp_path / name / "report.html"
        page.parent.mkdir()
        assert run_cli(["report", *words, "-o", str(page), "--json", *where]) == 0
        pages[name] = page.read_bytes(), capsys.readouterr().out
    assert pages["there"] == pages["here"]
    assert json.loads(pages["here"][1])["trace"]["busy_any_ns"] == sum(
        made.truth["busy_union_ns"] for made in ranks[:3]
    )


def held_at_once(folder: str) -> int:
    """How many items this worker holds while it works on one, itself included."""
    import tempfile
    import time

    with tempfile.NamedTemporaryFile(dir=folder, prefix=f"{os.getpid()}-"):
        time.sleep(0.05)
        return len(list(Path(folder).glob(f"{os.getpid()}-*")))


def test_a_worker_of_many_threads_holds_one_item(tmp_path):
    """And one that comes while the other works takes part."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=4, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as local,
        dask_cluster(local.scheduler_address, 0) as spread,
    ):
        assert spread.width == 1
        results = spread.each(held_at_once, [str(tmp_path)] * 60)
        found = dict([next(results)])
        local.scale(2)
        local.wait_for_workers(2, timeout=120)
        found.update(results)
        assert sorted(found) == list(range(60))
        assert set(found.values()) == {1}
        with distributed.Client(local) as client:
            assert len(client.nthreads()) == 2


def test_threads_of_a_worker_take_turns(tmp_path):
    """Where a worker is given the item of one that was lost, beside its own."""
    held = partial(spread_of_files._in_turn, held_at_once, str(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        assert {done.result() for done in [pool.submit(held) for _ in range(8)]} == {1}


def test_a_worker_killed_in_the_middle_changes_no_answer(cluster, ranks):
    groups = [FileGroup((made.path,)) for made in ranks]
    with dask_cluster(cluster.scheduler_address, 0) as spread:
        assert spread.width == 3
        results = spread.each(partial(tally_of, by=None, ops=True), groups)
        found = dict([next(results)])
        os.kill(next(iter(cluster.workers.values())).process.process.pid, signal.SIGKILL)
        found.update(results)
    assert sorted(found) == list(range(len(ranks)))
    for position, made in enumerate(ranks):
        assert {
            row.name: (row.calls, row.total_ns) for row in found[position].tally.table().rows
        } == made.totals


@pytest.mark.thorough
def test_sixteen_ranks_on_three_workers_of_which_one_is_killed(cluster, tmp_path):
    made = [
        generate(
            tmp_path,
            f"rank{rank}.json",
            1_500,
            "--seed",
            str(rank),
            "--rank",
            str(rank),
            "--unlinked-fraction",
            "0.05",
        )
        for rank in range(16)
    ]
    paths = [one.path for one in made]
    workers = Workers(dask=cluster.scheduler_address)
    killed = []

    def kill_one(*_: object) -> None:
        if not killed:
            killed.append(next(iter(cluster.workers.values())).process.process.pid)
            os.kill(killed[0], signal.SIGKILL)

    with dask_cluster(cluster.scheduler_address, 0) as spread:
        groups = [FileGroup((path,)) for path in paths]
        read = read_each(spread, partial(part_of, yardstick=NO_YARDSTICK), groups, kill_one)
    assert killed
    assert not read.unread
    assert [one.summary.source for one in read.results] == [str(path) for path in paths]
    assert [one.summary.trace.busy_any_ns for one in read.results] == [
        one.truth["busy_union_ns"] for one in made
    ]
    assert [one.summary.trace.unlinked_kernels for one in read.results] == [
        one.truth["unlinked"] for one in made
    ]
    assert summarise_files(paths, workers) == summarise_files(paths, Workers(processes=1))
    there, here = (
        merge_to_file(
            paths,
            tmp_path / name,
            MergeOptions(allow_unaligned=True, max_kernels=5_000, workers=own),
        ).lines
        for name, own in (("there.pftrace", workers), ("here.pftrace", Workers(processes=1)))
    )
    assert there == here


def test_a_worker_that_dies_of_its_own_work(cluster, tmp_path):
    flag = str(tmp_path / "died")
    with dask_cluster(cluster.scheduler_address, 0) as spread:
        assert dict(spread.each(die_once, [(number, flag) for number in range(4)])) == {
            0: 0,
            1: 10,
            2: 20,
            3: 30,
        }
    assert Path(flag).exists()


@pytest.mark.thorough  # as the tables of the first test above are
def test_files_are_summarised_where_the_workers_are(cluster, ranks):
    summary = summarise_files(
        [made.path for made in ranks[:2]], Workers(dask=cluster.scheduler_address)
    )
    assert summary.trace.busy_any_ns == sum(made.truth["busy_union_ns"] for made in ranks[:2])


def test_no_scheduler_and_no_jobs_are_said(tmp_path):
    with (
        pytest.raises(Unavailable, match="no Dask scheduler answers"),
        dask_cluster("tcp://127.0.0.1:9", 0),
    ):
        pass
    for word in ("local", str(tmp_path / "absent.json")):
        with (
            pytest.raises(UsageError, match="neither slurm, nor a scheduler's address"),
            dask_cluster(word, 0),
        ):
            pass
    with pytest.raises(UsageError, match="how many jobs"), dask_cluster("slurm", 0):
        pass


def test_a_greeting_that_another_client_disturbs_is_said(monkeypatch):
    """distributed's client asserts that it is one message. A real one that failed so would be left
    to the garbage collector, which waits for ever where it closes it while another begins.
    """
    import distributed

    def disturbed(**_options: object) -> None:
        raise AssertionError

    monkeypatch.setattr(distributed, "Client", disturbed)
    with (
        pytest.raises(Unavailable, match="told all its clients something"),
        dask_cluster("tcp://127.0.0.1:9", 0),
    ):
        pass


def test_a_finished_spread_tells_other_clients_nothing(cluster, monkeypatch):
    told = []
    with dask_cluster(cluster.scheduler_address, 0) as spread:
        monkeypatch.setattr(cluster.scheduler, "report", told.append)
        assert sorted(spread.each(abs, [-1, -2, -3])) == [(0, 1), (1, 2), (2, 3)]
    assert told == []


def test_slurm_without_configuration_is_said(tmp_path, monkeypatch):
    if importlib.util.find_spec("dask_jobqueue") is None:
        pytest.skip("needs dask-jobqueue")
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(Unavailable, match="no Dask workers through Slurm"),
        dask_cluster("slurm", 1),
    ):
        pass


def test_workers_of_a_cluster_get_the_table_of_formulas_itself(cluster, tmp_path, capsys):
    """As text: they need not see the file."""
    paths = [str(launched.write(tmp_path / f"rank{rank}.pt.trace.json")) for rank in range(2)]
    table = tmp_path / "mine.toml"
    table.write_text(launched.FORMULA)
    words = ("--json", "--formulas", str(table), "--dask", cluster.scheduler_address)
    assert run_cli(["metrics", *paths, *words]) == 0
    assert json.loads(capsys.readouterr().out)["work"]["known_ns"] == 60_000
    assert run_cli(["hotspots", *paths, "--by", "op", *words]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["flops"] for row in rows if row["name"] == "my::fused"] == [2 * launched.FLOPS]
