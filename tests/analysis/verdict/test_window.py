from __future__ import annotations

import pytest

from profharness.analysis.records import Figure, IdleCauses, Partition
from profharness.analysis.verdict.window import verdict
from profharness.findings import finding


def split(
    compute: int = 0,
    communication: int = 0,
    copy: int = 0,
    idle: int = 0,
    causes: IdleCauses | None = None,
) -> Partition:
    return Partition(
        window_ns=compute + communication + copy + idle,
        compute_ns=compute,
        exposed_communication_ns=communication,
        exposed_copy_ns=copy,
        idle_ns=idle,
        communication_ns=2 * communication,
        copy_ns=copy,
        idle_causes=causes,
    )


def share(value: float | None) -> Figure:
    return Figure(value=value, unit="share")


def test_idle_names_its_causes_and_bounds_the_gain():
    found = verdict(
        split(
            compute=20,
            idle=80,
            causes=IdleCauses(host_not_ready_ns=60, launch_in_progress_ns=15, queued_gap_ns=5),
        ),
        {},
        (),
    )
    assert (found.limiter, found.share, found.headroom) == ("idle", 0.8, pytest.approx(5.0))
    assert "the host not ready 60.0 %, launches in progress 15.0 %" in found.evidence
    assert "queued" not in found.evidence
    assert found.trusted


def test_idle_time_that_is_one_gap_says_so():
    def said(longest: int) -> str:
        return verdict(
            split(compute=20, idle=80), {"idle_longest_gap": Figure(value=longest, unit="ns")}, ()
        ).evidence

    assert said(70).endswith("; one gap of 70 ns makes up 70.0 %")
    assert "gap" not in said(40)
    assert "gap" not in said(80)  # there is no other one


def test_a_loss_of_nothing_is_not_named():
    found = verdict(split(compute=996, idle=4), {"fill_busy": share(0.9)}, ())
    assert found.limiter == "undetermined"
    assert "loss" not in found.evidence


def test_communication_and_copies():
    found = verdict(split(compute=30, communication=60, idle=10), {}, ())
    assert (found.limiter, found.headroom) == ("communication", pytest.approx(2.5))
    assert "of 120.0 % in all" in found.evidence
    assert verdict(split(compute=30, copy=60, idle=10), {}, ()).limiter == "copy"


def test_underfilled_kernel_time_is_taken_off_compute():
    found = verdict(
        split(compute=90, idle=10), {"underfilled": share(0.6), "fill_busy": share(0.31)}, ()
    )
    assert (found.limiter, found.share) == ("underfilled", 0.6)
    assert "0.31" in found.evidence


def test_filled_time_is_undetermined_and_the_largest_loss_is_named():
    found = verdict(
        split(compute=78, idle=22), {"underfilled": share(0.1), "fill_busy": share(0.9)}, ()
    )
    assert (found.limiter, found.share, found.headroom) == (
        "undetermined",
        pytest.approx(0.68),
        None,
    )
    assert "largest loss: the device is idle 22.0 %" in found.evidence
    assert "1.28x" in found.evidence
    assert (
        "not measured"
        in verdict(split(compute=78, idle=22), {"underfilled": share(None)}, ()).evidence
    )


def test_an_incomplete_trace_gives_no_verdict():
    missing = finding("kernels-missing", "50 of 100 kernel launches have no kernel in the trace")
    found = verdict(split(compute=20, idle=80), {}, (missing,))
    assert (found.trusted, found.limiter, found.headroom) == (False, "none", None)
    assert "50 of 100" in found.evidence


@pytest.mark.parametrize(
    "harmless",
    [
        finding("launches-missing", "a warning"),
        finding("kernels-missing", "a few", severity="warning"),
        finding("warmup-leak", "an error about trials"),
    ],
)
def test_other_findings_do_not_stop_it(harmless):
    assert verdict(split(compute=20, idle=80), {}, (harmless,)).trusted


def test_a_fully_idle_window_has_no_bound():
    assert verdict(split(idle=10), {}, ()).headroom is None


def cpu(**values):
    return {name: Figure(value=value, unit="") for name, value in values.items()}


@pytest.mark.parametrize(
    ("used", "limiter", "headroom"),
    [(1.0, "idle", 8.0), (6.0, "undetermined", None), (7.9, "undetermined", None)],
)
def test_the_cpu_is_judged_by_its_cores(used, limiter, headroom):
    found = verdict(None, cpu(cores_used=used, cores_allowed=8, throughput=10.0), ())
    assert (found.limiter, found.headroom) == (
        limiter,
        pytest.approx(headroom) if headroom else None,
    )
    assert f"{used:.1f} of 8 allowed cores" in found.evidence


def test_idle_cores_bound_a_gain_only_where_steps_or_points_show_one():
    assert verdict(None, cpu(cores_used=2.0, cores_allowed=8), ()).headroom is None
    assert verdict(
        None, cpu(cores_used=2.0, cores_allowed=8, steps_per_second=3.0), ()
    ).headroom == pytest.approx(4)
    assert "gains at most" not in verdict(None, cpu(cores_used=5.0, cores_allowed=8), ()).evidence
    assert (
        "gains at most 1.60x"
        in verdict(None, cpu(cores_used=5.0, cores_allowed=8, throughput=3.0), ()).evidence
    )


@pytest.mark.parametrize(
    ("more", "findings", "why"),
    [
        ({"cpu_node": 2.0}, (), "other work held the cores (1.4 on average)"),
        ({"cpu_node": 2.0, "cpu_tree_wait": 0.7}, (), "other work held the cores"),
        (
            {"cpu_node": 0.65, "cpu_tree_wait": 0.7},
            (),
            (
                "it waited for cores although nothing else ran here (its own threads on the same "
                "cores, or a virtual machine's host); "
            ),
        ),
        ({}, (finding("cpu-pressure", "waited"),), "other work held the cores"),
        (
            {"cpu_node": 1.6, "cpu_tree_wait": 0.7, "client_cores": 0.9},
            (),
            (
                "the load generator held the other cores (1.0 on average): "
                "load the server from another machine (--url)"
            ),
        ),
        (
            {"cpu_node": 2.0, "cpu_tree_wait": 0.7, "client_cores": 0.9},
            (),
            "other work held the cores (1.4 on average)",
        ),
        (
            {"cpu_throttled": 0.3},
            (),
            "the CPU quota of its cgroup stopped the process (30.0 % of the time); ",
        ),
        (
            {"cpu_sampled": 90_000_000},
            (),
            "sampled for less than 1 s (90.00 ms), too short to judge the cores; ",
        ),
    ],
)
def test_cores_that_the_process_could_not_have_are_not_idle(more, findings, why):
    found = verdict(None, cpu(cores_used=0.6, cores_allowed=2, throughput=100.0, **more), findings)
    assert (found.limiter, found.trusted, found.headroom) == ("none", False, None)
    assert found.evidence.startswith(f"no verdict: {why}")


def test_other_work_is_taken_off_the_allowed_cores():
    found = verdict(None, cpu(cores_used=2.0, cores_allowed=16, cpu_node=8.0, throughput=1.0), ())
    assert (found.limiter, found.share, found.headroom) == (
        "idle",
        pytest.approx(0.8),
        pytest.approx(5.0),
    )
    busy = verdict(
        None,
        cpu(cores_used=7.8, cores_allowed=8, cpu_node=12.0, cpu_tree_wait=9.0),
        (finding("cpu-pressure", "waited"),),
    )
    assert (busy.limiter, busy.trusted) == ("undetermined", True)


def test_a_point_that_did_not_wait_is_judged_whatever_the_rest_of_the_run_did():
    figures = cpu(cores_used=2.0, cores_allowed=16, cpu_tree_wait=0.01, throughput=1.0)
    assert verdict(None, figures, (finding("cpu-pressure", "waited"),)).limiter == "idle"
    slow = figures | {
        "cpu_tree_wait": Figure(value=0.01, unit="cores", note="sampled too slowly: every 2 s")
    }
    assert not verdict(None, slow, (finding("cpu-pressure", "waited"),)).trusted


def test_a_process_that_sleeps_is_said_to_wait():
    found = verdict(
        None,
        cpu(
            cores_used=0.01, cores_allowed=2, steps_per_second=1.0, cpu_node=0.1, cpu_tree_wait=0.0
        ),
        (),
    )
    assert (found.limiter, found.headroom, found.trusted) == ("none", None, True)
    assert found.evidence.startswith("the process waits")
    beside_others = verdict(
        None,
        cpu(cores_used=0.01, cores_allowed=2, cpu_node=2.0, cpu_tree_wait=0.002),
        (finding("cpu-pressure", "waited"),),
    )
    assert beside_others.evidence.startswith("the process waits")


def test_without_any_measure_there_is_no_verdict():
    assert verdict(None, {}, ()) is None
    assert verdict(split(), {}, ()) is None


def groups(compute=0.0, bandwidth=0.0, inside=0.0):
    notes = {
        "compute_bound": "gemm at 90.0 % of the measured GEMM",
        "bandwidth_bound": "gather at 71.0 % of the measured copy",
        "inside_kernel": "atomics",
    }
    return {
        name: Figure(value=value, unit="share", note=notes[name])
        for name, value in (
            ("compute_bound", compute),
            ("bandwidth_bound", bandwidth),
            ("inside_kernel", inside),
        )
    }


@pytest.mark.parametrize(
    ("parts", "limiter", "share"),
    [
        ({"compute": 0.5, "bandwidth": 0.1}, "compute", 0.5),
        ({"bandwidth": 0.45, "inside": 0.2}, "bandwidth", 0.45),
        ({"inside": 0.6}, "inside-kernel", 0.6),
    ],
)
def test_filled_time_is_named_by_its_largest_group(parts, limiter, share):
    found = verdict(split(compute=80, idle=20), groups(**parts), ())
    assert (found.limiter, found.share, found.headroom) == (
        limiter,
        share,
        pytest.approx(1 / (1 - share)),
    )
    assert "such kernels run" in found.evidence


def test_groups_never_take_more_than_the_filled_time():
    found = verdict(
        split(compute=50, idle=50),
        {"underfilled": share(0.3), "fill_busy": share(0.4)} | groups(compute=0.9),
        (),
    )
    assert (found.limiter, found.share) == ("idle", 0.5)
    assert verdict(
        split(compute=90, idle=10), {"underfilled": share(0.3)} | groups(compute=0.9), ()
    ).share == pytest.approx(0.6)


def test_idle_time_outweighs_a_small_group():
    assert verdict(split(compute=60, idle=40), groups(compute=0.3), ()).limiter == "idle"


def test_a_window_that_runs_at_a_ceiling_as_a_whole_is_bound_by_it():
    rates = {"flops_of_ceiling": share(0.6), "bandwidth_share": share(0.2)}
    found = verdict(split(compute=90, idle=10), rates, ())
    assert (found.limiter, found.share) == ("compute", 0.9)
    assert found.evidence.startswith("useful FLOP/s at 60.0 % of the ceiling")
    assert (
        verdict(split(compute=90, idle=10), {"bandwidth_share": share(0.7)}, ()).limiter
        == "bandwidth"
    )
    assert (
        verdict(split(compute=90, idle=10), {"flops_of_ceiling": share(0.5)}, ()).limiter
        == "undetermined"
    )
    # kernels that were judged on their own are not overruled
    assert (
        verdict(split(compute=90, idle=10), rates | groups(bandwidth=0.8), ()).limiter
        == "bandwidth"
    )


@pytest.mark.parametrize(
    ("rates", "limiter"),
    [
        ({"flops_of_ceiling": 0.7}, "compute"),
        ({"bandwidth_share": 0.9, "flops_of_ceiling": 0.7}, "bandwidth"),
        ({"flops_of_ceiling": 0.5}, "undetermined"),
    ],
)
def test_the_cpu_is_judged_by_its_ceilings_too(rates, limiter):
    figures = {
        "cores_used": Figure(value=7.9, unit="cores"),
        "cores_allowed": Figure(value=8, unit="cores"),
    }
    found = verdict(None, figures | {name: share(value) for name, value in rates.items()}, ())
    assert found.limiter == limiter
    assert "7.9 of 8" in found.evidence


def test_a_power_cap_modifies_the_verdict_and_never_is_the_limiter():
    capped = {
        "compute_bound": share(0.7),
        "throttle_power": share(0.42),
        "throttle_thermal": share(0.05),
    }
    found = verdict(split(compute=95, idle=5), capped, ())
    plain = verdict(split(compute=95, idle=5), {"compute_bound": share(0.7)}, ())
    assert (
        (found.limiter, found.share, found.headroom)
        == (plain.limiter, plain.share, plain.headroom)
        == ("compute", 0.7, pytest.approx(1 / 0.3))
    )
    assert (
        found.evidence
        == f"{plain.evidence}; its power limit held the clock down 42.0 % of the time"
    )


def test_the_clock_speaks_where_the_driver_tells_nothing_of_throttling():
    figures = {"compute_bound": share(0.7), "mfu": share(0.36), "mfu_at_clock": share(0.45)}
    assert verdict(split(compute=95, idle=5), figures, ()).evidence.endswith(
        "; the clock was at 80.0 % of its peak, for a reason that the driver does not tell"
    )
    for other in (
        {"throttle_power": share(0.0)},
        {"mfu_at_clock": share(0.37)},
        {"mfu": share(None)},
    ):
        assert "clock" not in verdict(split(compute=95, idle=5), figures | other, ()).evidence
    assert (
        "clock" not in verdict(split(compute=75, idle=25), figures, ()).evidence
    )  # an idle device lowers its clock by itself


def test_an_idle_device_is_not_said_to_be_capped():
    assert (
        "power"
        not in verdict(split(compute=20, idle=80), {"throttle_power": share(0.5)}, ()).evidence
    )
