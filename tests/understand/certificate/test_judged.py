"""Runs whose saturation was put in: each is judged by what was, and what cannot be judged is
named.
"""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from profharness.analysis.certificate.records import Judgement
from profharness.errors import UsageError
from profharness.rundir.paths import RunDir
from profharness.understand.certificate.making import judged
from tests.understand.certificate.made_runs import SATURATED, UNSATURATED, Made, make


def of(root: Path, made: Made = SATURATED, point: str = "") -> Judgement:
    return judged(make(root / "run", made).root, point, ())


def states(judgement: Judgement, state: str) -> set[str]:
    return {one.id for one in judgement.judged if one.state == state}


def test_a_saturated_run_meets_all_by_what_was_put_in(tmp_path):
    found = of(tmp_path)
    assert found.outcome == "saturated"
    assert states(found, "met") == {one.id for one in found.judged}
    plateau, busy, limiter = (found.named(name) for name in ("plateau", "busy", "limiter"))
    true = SATURATED.rate(1024) / 40_000
    assert plateau.low <= true <= plateau.high
    assert busy.value == pytest.approx(SATURATED.busy, abs=0.005)
    assert limiter.value == pytest.approx(SATURATED.of_peak * true, rel=0.01)
    assert found.answer.startswith("NVIDIA A100-SXM4-80GB at torch-b1024 is saturated")
    assert {fact.name for fact in found.facts} >= {"driver", "power cap", "clock of the device"}


def test_an_unsaturated_run_fails_each_criterion_of_saturation(tmp_path):
    found = of(tmp_path, UNSATURATED)
    assert found.outcome == "not saturated"
    assert states(found, "not met") == {"plateau", "busy", "fill", "limiter"}
    assert found.named("plateau").high < 0.1  # the truth, far beyond the scan, is 0.03
    assert found.named("busy").value == pytest.approx(0.3, abs=0.005)
    assert found.named("fill").value == pytest.approx(22 / 108, abs=0.005)


def test_a_small_point_of_a_saturated_run_is_not_saturated(tmp_path):
    found = of(tmp_path, point="torch-b4")
    assert found.outcome == "not saturated"
    assert found.named("plateau").value == pytest.approx(4 / 12, rel=0.02)


@pytest.mark.parametrize(
    ("change", "criterion"),
    [
        ({"busy": 0.8}, "busy"),
        ({"filled": 0.6}, "fill"),
        ({"half": 600.0, "noise": 0.0005}, "plateau"),
    ],
)
def test_one_lack_is_enough_and_is_named(tmp_path, change, criterion):
    found = of(tmp_path, replace(SATURATED, **change))
    assert found.outcome == "not saturated"
    assert criterion in states(found, "not met")
    assert criterion in found.answer


@pytest.mark.parametrize(
    ("change", "criterion"),
    [
        ({"state": "running"}, "whole"),
        ({"state": "interrupted"}, "whole"),
        ({"of_peak": 1.3}, "findings"),
        ({"others": 1.0}, "others"),
        ({"thermal": 0.4}, "clocks"),
        ({"limits": (400.0, 300.0)}, "cap"),
    ],
)
@pytest.mark.parametrize("made", [SATURATED, UNSATURATED], ids=["saturated", "unsaturated"])
def test_of_a_broken_run_nothing_is_certified(tmp_path, made, change, criterion):
    """Whether it looks saturated or not."""
    if "of_peak" in change and made is UNSATURATED:
        change = {"of_peak": 100.0}
    found = of(tmp_path, replace(made, **change))
    assert found.outcome == "not trusted"
    assert criterion in states(found, "not met")
    assert f"Not met: {criterion}" in found.answer


def test_a_cut_trace_is_not_trusted(tmp_path):
    run = make(tmp_path / "run").root
    path = next(run.rglob("torch-b1024.json.gz"))
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text[: len(text) // 2]))
    found = judged(run, "", ())
    assert found.outcome == "not trusted"
    assert states(found, "not met") & {"findings", "files"}


def test_a_failed_point_proves_nothing(tmp_path):
    run = make(tmp_path / "run").root
    manifest = RunDir.open(run).read_manifest()
    points = tuple(
        msgspec.structs.replace(point, state="failed", error="out of memory")
        for point in manifest.points
    )
    RunDir.open(run).write_manifest(msgspec.structs.replace(manifest, points=points))
    found = judged(run, "", ())
    assert found.outcome == "not trusted"
    assert "whole" in states(found, "not met")


@pytest.mark.parametrize(
    ("change", "names", "outcome"),
    [
        ({"telemetry": False}, {"clocks", "cap", "others"}, "saturated"),
        ({"traced": False}, {"fill"}, "undecided"),
        ({"traced": False, "telemetry": False}, {"busy", "fill"}, "undecided"),
    ],
)
def test_what_could_not_be_judged_is_named_with_what_it_needs(tmp_path, change, names, outcome):
    """A condition that is not known withholds nothing; a criterion of saturation does."""
    found = of(tmp_path, replace(SATURATED, **change))
    assert found.outcome == outcome
    assert states(found, "not judged") >= names
    for one in found.judged:
        assert bool(one.needs) == (one.state == "not judged")
        assert (one.id in found.answer) == (one.state == "not judged")


def test_an_interval_over_the_threshold_decides_nothing(tmp_path):
    """At 64 the curve is at 88.9 % of its maximum, which the scan does not show well enough."""
    found = of(tmp_path, replace(SATURATED, batches=(1, 4, 16, 64)))
    plateau = found.named("plateau")
    assert plateau.low < 0.9 < plateau.high
    assert plateau.state == "not judged"
    assert found.outcome == "undecided"


def test_a_command_has_no_plateau(tmp_path):
    run = make(tmp_path / "run").root
    manifest = RunDir.open(run).read_manifest()
    command = msgspec.structs.replace(manifest, kind="command", scan=None)
    RunDir.open(run).write_manifest(command)
    assert judged(run, "", ()).named("plateau").state == "not applicable"


def test_a_point_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="no such point"):
        of(tmp_path, point="torch-b3")
