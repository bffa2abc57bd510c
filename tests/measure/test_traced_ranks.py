"""A rank that is not to be traced starts the command as it would start it bare, under every
layer.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from profharness.launchers import Outcome
from profharness.launchers.local import LocalLauncher
from profharness.layers import descriptions, named
from profharness.measure import rank_exchange, schedule
from profharness.measure.meeting import waiting
from profharness.measure.pass_commands import planned_commands
from profharness.measure.passes import EndedPass, Execution
from profharness.measure.plan import RunPlan
from profharness.measure.ranks import RankInfo
from profharness.measure.recorder import Recorder
from profharness.options.settings import from_mapping
from profharness.rundir.manifest import Manifest, RankOutcome
from profharness.rundir.paths import RunDir, write_atomic
from profharness.supervise.tool import ToolPass
from tests.layers.places import node

# what stands beside the process is no rank's own
LAYERS = tuple(about.name for about in descriptions() if about.scope != "sidecar")


def plan(layer: str, rank: RankInfo, root: Path = Path("/run"), **settings: object) -> RunPlan:
    request = from_mapping(
        {"command": ("python", "t.py"), "profile": layer, **settings}, "the command line"
    )
    passes = schedule.plan_command(named((layer,)), bare=True, allowed=9, agreed=True)
    return RunPlan(request, root, rank, node("7.2"), LocalLauncher(None), "python", passes, None)


@pytest.mark.parametrize("layer", LAYERS)
def test_the_others_start_bare(layer: str) -> None:
    of_rank = [plan(layer, RankInfo(rank, 3, rank, "j"), trace_ranks="1") for rank in range(3)]
    bare, traced = of_rank[0].schedule.passes
    assert (bare.layers, traced.layers) == ((), named((layer,)))
    own = [planned_commands(run_plan, traced)[0] for run_plan in of_rank]
    plain = [planned_commands(run_plan, bare)[0] for run_plan in of_rank]
    for rank in (0, 2):
        name = {"PROFHARNESS_PASS": traced.name}
        assert own[rank].argv == plain[rank].argv == ("python", "t.py")
        assert {**own[rank].env} == {**plain[rank].env, **name}
    assert (own[1].argv, own[1].env) != (plain[1].argv, {**plain[1].env, "PROFHARNESS_PASS": layer})
    everywhere = plan(layer, RankInfo(0, 3, 0, "j"))
    assert planned_commands(everywhere, traced)[0].argv == tuple(
        word.replace("/1/", "/0/") for word in own[1].argv
    )


def test_what_starts_the_ranks_knows_of_them() -> None:
    """A tool that starts the command many times says what that means for ranks."""
    for settings, expected in (
        ({}, (1, False)),
        ({"ranks": 2}, (2, False)),
        ({"ranks": 2, "trace_ranks": "0-1"}, (2, False)),
        ({"ranks": 2, "trace_ranks": "1"}, (2, True)),
    ):
        run_plan = plan("rocprof-compute", RankInfo(), **settings)
        where = run_plan.where(run_plan.schedule.passes[1], is_worker=False)
        assert (where.ranks, where.untraced) == expected


def test_what_starts_the_ranks_plans_for_one_that_is_traced() -> None:
    assert plan("rocprofv3", RankInfo(), trace_ranks="1", ranks=2).is_traced
    assert not plan("rocprofv3", RankInfo(0, 2, 0, "j"), trace_ranks="1", ranks=2).is_traced
    assert plan("rocprofv3", RankInfo(1, 2, 1, "j"), trace_ranks="1", ranks=2).is_traced


@pytest.mark.parametrize(
    ("layer", "options", "expected"),
    [
        ("rocprofv3", {}, 5),
        ("rocprof-compute", {}, 5 + 19 * 3),
        ("rocprof-compute", {"one_execution": True}, 5),
    ],
)
def test_rank_0_without_the_tool_waits_for_all_executions_of_the_others(
    layer: str, options: dict[str, object], expected: float
) -> None:
    run_plan = plan(layer, RankInfo(0, 2, 0, "j"), trace_ranks="1", exit_limit=5.0, **options)
    of_pass = run_plan.schedule.passes[1]
    tool = ToolPass(of_pass, run_plan.where(of_pass, is_worker=False), 1.0)
    ended = EndedPass(tool, Execution((Outcome(0, 6, 10**9, 4 * 10**9),)), "")
    assert rank_exchange._behind_s(run_plan, ended) == expected


@pytest.mark.parametrize("traced", ["0", "1"])
def test_rank_0_without_the_tool_waits_for_the_tools_around_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, traced: str
) -> None:
    """The outcome of rank 1 comes later than ranks that all run alike would need."""
    monkeypatch.setattr(waiting, "END_S", 0.05)
    run_plan = plan("rocprofv3", RankInfo(0, 2, 0, "j"), tmp_path / "run", trace_ranks=traced)
    run = RunDir.create(run_plan.root)
    manifest = Manifest(id="r", created="", profharness="", kind="command", argv=())
    recorder = Recorder(run, manifest)
    of_pass = run_plan.schedule.passes[1]
    late = RankOutcome(
        rank=1,
        host="n",
        pid=7,
        exit_status=0,
        pass_name=of_pass.name,
        start_boot_ns=0,
        end_boot_ns=1,
    )
    path = run.root / "control" / "ranks" / f"{of_pass.name}-1.json"
    writer = threading.Timer(0.4, write_atomic, (path, msgspec.json.encode(late)))
    writer.start()
    tool = ToolPass(of_pass, run_plan.where(of_pass, is_worker=False), 1.0)
    ended = EndedPass(tool, Execution((Outcome(0, 6, 0, 1),)), "")
    rank_exchange.gather(run_plan, ended, recorder)
    writer.join()
    found = [(one.id, one.figures) for one in recorder.manifest.findings]
    ranks = [outcome.rank for outcome in recorder.manifest.rank_outcomes]
    assert (found, ranks) == (
        ([], [0, 1]) if traced == "1" else ([("rank-lost", {"missing": 1})], [0])
    )
