"""Fallbacks of devices and execution providers, nodes on the CPU, compiling inside of trials."""

from __future__ import annotations

from profharness.analysis.run.provider_findings import (
    provider_findings,
    providers_of,
    recompiled,
)
from profharness.rundir.manifest import PointRecord

MIGRAPHX, CPU = "MIGraphXExecutionProvider", "CPUExecutionProvider"
ALL_THERE = {"providers": f"{MIGRAPHX},{CPU}", "nodes": f"{MIGRAPHX} 55", "optimization": "all"}


def record(name: str, backend: str = "onnxruntime", **notes: str) -> PointRecord:
    return PointRecord(id=name, pass_name="bare", backend=backend, notes=notes)


def test_a_session_on_what_was_asked_says_nothing() -> None:
    records = [record("b1", **ALL_THERE), record("b2"), record("t", backend="torch")]
    assert list(provider_findings(records)) == []
    assert [found for one in records for found in recompiled(one)] == []


def test_a_fallback_is_said_once_for_all_points_that_have_it() -> None:
    left_out = f"onnxruntime left out {MIGRAPHX}; it ran on {CPU} instead"
    records = [record("b1", fallback=left_out), record("b2", fallback=left_out)]
    records.append(record("t1", "torch", fallback="--device cuda: torch sees no GPU"))
    of_all, of_one = provider_findings(records)
    assert (of_all.id, of_all.severity, of_all.point) == ("device-fallback", "warning", None)
    assert of_all.message == left_out
    assert (of_one.point, of_one.message) == ("t1", "--device cuda: torch sees no GPU")
    (named,) = provider_findings([record("s", "server", fallback="no GPU")])
    assert named.message == "server: no GPU"


def test_nodes_on_the_cpu_are_counted() -> None:
    notes = {"nodes": f"{MIGRAPHX} 52, {CPU} 3", "nodes_on_cpu": "TopK 2, Gather 1"}
    (found,) = provider_findings([record("b1", **notes), record("b2", **notes)])
    assert (found.id, found.severity) == ("nodes-on-cpu", "info")
    assert found.message == (
        "onnxruntime left 3 of 55 nodes of the model to the CPU (TopK 2, Gather 1)"
    )
    assert found.figures == {"nodes": 55, "on_cpu": 3}
    # several processes that differ: the first one's
    notes["nodes"] += f"; {MIGRAPHX} 55"
    (found,) = provider_findings([record("b1", **notes)])
    assert (found.figures["nodes"], found.point) == (55, None)


def test_the_share_of_an_engine_is_said_once_where_it_is_not_all() -> None:
    notes = {"supported_operators": "0.8047"}
    (found,) = provider_findings(
        [record(name, "deepsparse", **notes) for name in ("b1", "b2", "b2")]
    )
    assert (found.id, found.severity, found.point) == ("operators-unsupported", "info", None)
    assert found.message.startswith("deepsparse supports 80 % of the model's operators")
    assert found.figures == {"supported_operators": 0.8047}
    (found,) = provider_findings([record("b1", "deepsparse", supported_operators="0.0000; 0.5")])
    assert "supports none of the model's operators" in found.message
    assert not list(provider_findings([record("b1", "deepsparse", supported_operators="1.0000")]))


def test_memory_that_could_not_be_bound_is_said_once() -> None:
    refused = "memory policy bind was refused: Operation not permitted"
    records = [record(name, memory_policy=refused) for name in ("n1", "n2")]
    (found,) = provider_findings(records)
    assert (found.id, found.severity, found.message) == ("memory-not-bound", "warning", refused)


def test_compiling_inside_of_trials_is_of_its_point() -> None:
    text = "1 of 6 trials took up to 2 s where the median is 0.01 s"
    (found,) = recompiled(record("b8", recompiled=text))
    assert (found.id, found.point) == ("compiled-in-trials", "b8")
    assert found.message.endswith(text)


def test_the_providers_of_a_point_are_those_of_its_session() -> None:
    assert providers_of(record("b1", **ALL_THERE)) == (MIGRAPHX, CPU)
    assert providers_of(record("b1")) == ()
    assert providers_of(None) == ()
