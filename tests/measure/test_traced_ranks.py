"""A rank that is not to be traced starts the command as it would start it bare, under every
layer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.launchers.local import LocalLauncher
from profharness.layers import descriptions, named
from profharness.measure import schedule
from profharness.measure.pass_commands import planned_commands
from profharness.measure.plan import RunPlan
from profharness.measure.ranks import RankInfo
from profharness.options.settings import from_mapping
from tests.layers.places import node

LAYERS = tuple(about.name for about in descriptions())


def plan(layer: str, rank: RankInfo, **settings: object) -> RunPlan:
    request = from_mapping(
        {"command": ("python", "t.py"), "profile": layer, **settings}, "the command line"
    )
    passes = schedule.plan_command(named((layer,)), bare=True, allowed=9, agreed=True)
    return RunPlan(
        request, Path("/run"), rank, node("7.2"), LocalLauncher(None), "python", passes, None
    )


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


def test_what_starts_the_ranks_plans_for_one_that_is_traced() -> None:
    assert plan("rocprofv3", RankInfo(), trace_ranks="1", ranks=2).is_traced
    assert not plan("rocprofv3", RankInfo(0, 2, 0, "j"), trace_ranks="1", ranks=2).is_traced
    assert plan("rocprofv3", RankInfo(1, 2, 1, "j"), trace_ranks="1", ranks=2).is_traced
