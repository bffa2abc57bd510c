from __future__ import annotations

import pytest

from profharness.analysis.records import Figure, IdleCauses, Partition
from profharness.analysis.verdict import verdict
from profharness.findings import finding


def split(compute: int = 0, communication: int = 0, copy: int = 0, idle: int = 0, causes: IdleCauses | None = None) -> Partition:
    return Partition(window_ns=compute + communication + copy + idle, compute_ns=compute, exposed_communication_ns=communication,
                     exposed_copy_ns=copy, idle_ns=idle, communication_ns=2 * communication, copy_ns=copy, idle_causes=causes)


def share(value: float | None) -> Figure:
    return Figure(value=value, unit="share")


def test_idle_names_its_causes_and_bounds_the_gain():
    found = verdict(split(compute=20, idle=80, causes=IdleCauses(host_not_ready_ns=60, launch_in_progress_ns=15, queued_gap_ns=5)), {}, ())
    assert (found.limiter, found.share, found.headroom) == ("idle", 0.8, pytest.approx(5.0))
    assert "the host not ready 60.0 %, launches in progress 15.0 %" in found.evidence
    assert "queued" not in found.evidence
    assert found.trusted


def test_communication_and_copies():
    found = verdict(split(compute=30, communication=60, idle=10), {}, ())
    assert (found.limiter, found.headroom) == ("communication", pytest.approx(2.5))
    assert "of 120.0 % in all" in found.evidence
    assert verdict(split(compute=30, copy=60, idle=10), {}, ()).limiter == "copy"


def test_underfilled_kernel_time_is_taken_off_compute():
    found = verdict(split(compute=90, idle=10), {"underfilled": share(0.6), "fill_busy": share(0.31)}, ())
    assert (found.limiter, found.share) == ("underfilled", 0.6)
    assert "0.31" in found.evidence


def test_filled_time_is_undetermined_and_the_largest_loss_is_named():
    found = verdict(split(compute=78, idle=22), {"underfilled": share(0.1), "fill_busy": share(0.9)}, ())
    assert (found.limiter, found.share, found.headroom) == ("undetermined", pytest.approx(0.68), None)
    assert "largest loss: the device is idle 22.0 %" in found.evidence
    assert "1.28x" in found.evidence
    assert "not measured" in verdict(split(compute=78, idle=22), {"underfilled": share(None)}, ()).evidence


def test_an_incomplete_trace_gives_no_verdict():
    missing = finding("kernels-missing", "50 of 100 kernel launches have no kernel in the trace")
    found = verdict(split(compute=20, idle=80), {}, (missing,))
    assert (found.trusted, found.limiter, found.headroom) == (False, "none", None)
    assert "50 of 100" in found.evidence


@pytest.mark.parametrize("harmless", [
    finding("launches-missing", "a warning"), finding("kernels-missing", "a few", severity="warning"),
    finding("warmup-leak", "an error about trials"),
])
def test_other_findings_do_not_stop_it(harmless):
    assert verdict(split(compute=20, idle=80), {}, (harmless,)).trusted


def test_a_fully_idle_window_has_no_bound():
    assert verdict(split(idle=10), {}, ()).headroom is None


@pytest.mark.parametrize(("used", "limiter", "headroom"), [(1.0, "idle", 8.0), (6.0, "undetermined", None), (7.9, "undetermined", None)])
def test_the_cpu_is_judged_by_its_cores(used, limiter, headroom):
    found = verdict(None, {"cores_used": Figure(value=used, unit="cores"), "cores_allowed": Figure(value=8, unit="cores")}, ())
    assert (found.limiter, found.headroom) == (limiter, pytest.approx(headroom) if headroom else None)
    assert f"{used:.1f} of 8 allowed cores" in found.evidence


def test_without_any_measure_there_is_no_verdict():
    assert verdict(None, {}, ()) is None
    assert verdict(split(), {}, ()) is None
