"""Nodes that onnxruntime ran on the CPU, from the details that its profiles' reader leaves."""

from __future__ import annotations

from profharness.analysis.time.device_work import work_of
from profharness.analysis.verdict.providers import nodes_on_cpu
from profharness.findings import Finding
from profharness.trace.model import Source, Strings, Trace

CPU, GPU = "nodes CPUExecutionProvider", "nodes CUDAExecutionProvider"


def found(*profiles: dict[str, str]) -> list[Finding]:
    sources = tuple(
        Source(path=f"{at}.json", format="onnxruntime", details=tuple(details.items()))
        for at, details in enumerate(profiles)
    )
    trace = Trace(sources=sources, strings=Strings())
    return list(nodes_on_cpu(trace, work_of(trace)))


def test_sessions_that_share_their_nodes_alike_are_one_finding() -> None:
    shared = {"providers": "x", CPU: "TopK 2, Gather 1", GPU: "Conv 15"}
    (one,) = found(shared, dict(reversed(shared.items())), {CPU: "Identity 1"})
    assert (one.id, one.severity) == ("nodes-on-cpu", "info")
    assert one.message.startswith(
        "onnxruntime ran 3 of 18 recorded nodes of the model on the CPU (TopK 2, Gather 1;"
    )
    assert one.figures == {"nodes": 18, "on_cpu": 3}
    assert len(found(shared, {**shared, CPU: "TopK 1"})) == 2


def test_a_session_of_one_provider_is_none() -> None:
    assert found({CPU: "Conv 15, Relu 2"}, {GPU: "Conv 15"}, {"providers": "x"}, {}) == []
