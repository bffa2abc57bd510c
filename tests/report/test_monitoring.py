from __future__ import annotations

import pytest

from profharness.analysis.records import Figure
from profharness.report.monitoring import node_verdict, on_device


def cores(used: float | None, allowed: float) -> dict[str, Figure]:
    return {"cores_used": Figure(value=used, unit="cores"), "cores_allowed": Figure(value=allowed, unit="cores")}


@pytest.mark.parametrize(("used", "limiter", "share", "said"), [
    (2.0, "undetermined", 1.0, "kept 2 of its 2 cores"), (0.5, "idle", 0.75, "kept 0.5 of its 2 cores"), (0.001683, "idle", 0.999, "kept 0.00168 of its"),
    (2.1, "undetermined", 1.0, "kept 2.1 of its 2 cores")])
def test_the_node_is_judged_by_its_cores_without_a_bound_on_a_gain(used: float, limiter: str, share: float, said: str) -> None:
    verdict = node_verdict(cores(used, 2.0))
    assert verdict is not None
    assert (verdict.limiter, verdict.share, verdict.headroom) == (limiter, pytest.approx(share, abs=1e-3), None)
    assert said in verdict.evidence
    assert "process" not in verdict.evidence


def test_without_samples_of_the_cpu_there_is_no_verdict() -> None:
    assert node_verdict({"cores_allowed": Figure(value=2.0, unit="cores")}) is None
    assert node_verdict(cores(None, 2.0)) is None


def test_a_sampled_device_is_what_the_verdict_is_about() -> None:
    assert on_device({"gpu_percent": Figure(value=0.0, unit="%")})
    assert not on_device({"gpu_percent": Figure(value=None, unit="%"), "cpu_node": Figure(value=1.0, unit="cores")})
