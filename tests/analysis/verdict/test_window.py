from __future__ import annotations

import pytest

from profharness.analysis.records import Figure, IdleCauses, Partition
from profharness.analysis.verdict.records import CategoryTime, Grounds, KernelParts
from profharness.analysis.verdict.window import NOTHING_MEASURED, judge, verdict
from profharness.findings import finding


def split(
    compute: int = 0,
    communication: int = 0,
    copy: int = 0,
    idle: int = 0,
    causes: IdleCauses | None = None,
    kernels: KernelParts | None = None,
) -> Partition:
    """A partition with the given parts; idle time of no stated cause is the host's."""
    return Partition(
        window_ns=compute + communication + copy + idle,
        compute_ns=compute,
        exposed_communication_ns=communication,
        exposed_copy_ns=copy,
        idle_ns=idle,
        communication_ns=2 * communication,
        copy_ns=copy,
        idle_causes=causes or IdleCauses(host_not_ready_ns=idle),
        kernel_parts=kernels,
    )


def share(value: float | None) -> Figure:
    return Figure(value=value, unit="share")


def test_idle_names_its_causes_and_bounds_the_gain():
    causes = IdleCauses(host_not_ready_ns=60, launch_in_progress_ns=15, queued_gap_ns=5)
    found = verdict(split(compute=20, idle=80, causes=causes), {}, ())
    assert (found.kind, found.share, found.at_most) == ("idle-host-not-ready", 0.8, 5.0)
    assert found.text == (
        "Not saturated: the device is idle 80.0 % of the time (the host not ready 60.0 %, launches "
        "in progress 15.0 %); without any idle time the work would run at most 5.00 times as fast."
    )


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("waiting_copy_or_event_ns", "idle-waiting-copy-or-event"),
        ("queued_gap_ns", "idle-queued-gap"),
        ("launch_in_progress_ns", "idle-launch-in-progress"),
        ("synchronisation_ns", "idle-synchronisation"),
        ("host_not_ready_ns", "idle-host-not-ready"),
    ],
)
def test_idle_time_is_named_by_its_largest_cause(field, kind):
    causes = IdleCauses(**{"host_not_ready_ns": 10, "queued_gap_ns": 9, field: 50})
    partition = split(compute=20, idle=80, causes=causes)
    assert verdict(partition, {}, ()).kind == kind


def test_idle_time_of_no_known_cause_is_undetermined_and_not_saturated():
    causes = IdleCauses(no_host_record_ns=40, host_not_ready_ns=40)
    found = verdict(split(compute=20, idle=80, causes=causes), {}, ())
    assert (found.kind, found.at_most) == ("undetermined", None)
    assert found.text.startswith("Not saturated: the device is idle 80.0 % of the time (")
    known = IdleCauses(no_host_record_ns=39, host_not_ready_ns=41)
    assert verdict(split(compute=20, idle=80, causes=known), {}, ()).kind == "idle-host-not-ready"


def test_idle_time_without_any_host_call_gives_no_verdict():
    grounds = Grounds(host_calls=False)
    found = judge(split(compute=20, idle=80), {}, (), grounds)
    assert found.verdict is None
    assert found.needs.startswith("host calls")
    assert found.partition is not None
    # other parts need no host calls
    assert judge(split(compute=80, idle=20), {}, (), grounds).verdict.kind == "kernels"


def test_one_gap_makes_no_bound():
    def of_gap(longest):
        return verdict(split(compute=20, idle=80), {}, (), Grounds(longest_gap_ns=longest))

    assert of_gap(70).at_most is None
    assert "; one gap of 70 ns makes up 70.0 %" in of_gap(70).text
    assert of_gap(40).at_most == 5.0
    assert "gap" not in of_gap(40).text
    assert of_gap(80).at_most is None  # there is no other gap
    assert "gap" not in of_gap(80).text


@pytest.mark.parametrize(
    "partition", [split(compute=20, idle=80), split(compute=20, communication=80)]
)
def test_a_handful_of_kernels_makes_no_bound(partition):
    few, enough = (verdict(partition, {}, (), Grounds(records=count)) for count in (9, 10))
    assert (few.at_most, enough.at_most) == (None, 5.0)
    assert "only 9 kernels and copies ran" in few.text
    assert "only" not in enough.text


def test_a_bound_beyond_a_hundred_thousand_is_none():
    assert verdict(split(compute=1, idle=99_999), {}, ()).at_most == 100_000
    assert verdict(split(compute=1, idle=100_000), {}, ()).at_most is None
    assert verdict(split(idle=10), {}, ()).at_most is None


def test_communication_and_copies():
    found = verdict(split(compute=30, communication=60, idle=10), {}, ())
    assert (found.kind, found.at_most) == ("communication", 2.5)
    assert "of 120.0 % in all" in found.text
    assert verdict(split(compute=30, copy=60, idle=10), {}, ()).kind == "copy"


def test_underfilled_kernel_time():
    parts = KernelParts(underfilled_ns=60, compute_bound_ns=30)
    found = verdict(split(compute=90, idle=10, kernels=parts), {"fill_busy": share(0.31)}, ())
    assert (found.kind, found.share, found.at_most) == ("underfilled", 0.6, 2.5)
    assert found.text.startswith("Not saturated: kernels that leave more than half")
    assert "0.31" in found.text


def test_kernels_of_unknown_work_are_named_by_category_with_the_largest_loss():
    parts = KernelParts(underfilled_ns=10, unknown_work_ns=68)
    grounds = Grounds(
        unknown=(
            CategoryTime(category="gemm", total_ns=60),
            CategoryTime(category="other", total_ns=20),
        ),
        remedy="record the operators' shapes",
    )
    found = verdict(
        split(compute=78, idle=22, kernels=parts), {"fill_busy": share(0.9)}, (), grounds
    )
    assert (found.kind, found.share, found.at_most) == ("kernels", 0.68, None)
    assert found.text == (
        "Busy 78.0 % of the time, and whether saturated then is not known: kernels of unknown work "
        "(gemm 75.0 %, other 25.0 %) fill the device 68.0 % of the time: record the operators' "
        "shapes; the largest loss: the device is idle 22.0 % of the time (the host not ready 22.0 "
        "%) (removing it gains at most 1.28x)."
    )
    assert "is not measured" in verdict(split(compute=78, idle=22), {}, ()).text


@pytest.mark.parametrize(
    ("ceilings", "said"),
    [("data sheet", "below the data sheet"), ("none", "not known"), ("measured", "--pmc")],
)
def test_kernels_of_known_work_that_no_ceiling_judges(ceilings, said):
    partition = split(compute=100, kernels=KernelParts(undetermined_ns=60, unknown_work_ns=40))
    found = verdict(partition, {}, (), Grounds(ceilings=ceilings))
    assert (found.kind, found.at_most) == ("undetermined", None)
    assert said in found.text


def test_a_loss_of_nothing_is_not_named():
    found = verdict(split(compute=996, idle=4), {"fill_busy": share(0.9)}, ())
    assert found.kind == "kernels"
    assert "loss" not in found.text


def test_an_incomplete_trace_gives_no_verdict():
    missing = finding("kernels-missing", "50 of 100 kernel launches have no kernel in the trace")
    found = judge(split(compute=20, idle=80), {}, (missing,))
    assert found.verdict is None
    assert found.needs == (
        "a complete trace, as 50 of 100 kernel launches have no kernel in the trace"
    )
    assert found.partition is not None


def test_records_that_carry_no_verdict_say_what_it_takes():
    found = judge(split(copy=20, idle=80), {}, (), Grounds(withheld="kernels"))
    assert (found.verdict, found.needs, found.partition.window_ns) == (None, "kernels", 100)


@pytest.mark.parametrize(
    "harmless",
    [
        finding("launches-missing", "a warning"),
        finding("kernels-missing", "a few", severity="warning"),
        finding("warmup-leak", "an error about trials"),
    ],
)
def test_other_findings_do_not_stop_it(harmless):
    assert verdict(split(compute=20, idle=80), {}, (harmless,)) is not None


def cpu(**values):
    return {name: Figure(value=value, unit="") for name, value in values.items()}


@pytest.mark.parametrize(
    ("used", "kind", "at_most"),
    [(1.0, "idle-cores", 8.0), (6.0, "undetermined", None), (7.9, "undetermined", None)],
)
def test_the_cpu_is_judged_by_its_cores(used, kind, at_most):
    found = verdict(None, cpu(cores_used=used, cores_allowed=8, throughput=10.0), ())
    assert (found.kind, found.at_most) == (kind, pytest.approx(at_most) if at_most else None)
    assert f"{used:.1f} of 8 allowed cores" in found.text


def test_idle_cores_bound_a_gain_only_where_steps_or_points_show_one():
    assert verdict(None, cpu(cores_used=2.0, cores_allowed=8), ()).at_most is None
    assert verdict(
        None, cpu(cores_used=2.0, cores_allowed=8, steps_per_second=3.0), ()
    ).at_most == pytest.approx(4)
    assert "gains at most" not in verdict(None, cpu(cores_used=5.0, cores_allowed=8), ()).text
    assert (
        "gains at most 1.60x"
        in verdict(None, cpu(cores_used=5.0, cores_allowed=8, throughput=3.0), ()).text
    )


@pytest.mark.parametrize(
    ("more", "findings", "why"),
    [
        ({"cpu_node": 2.0}, (), "a quiet node, as other work held the cores (1.4 on average)"),
        ({"cpu_node": 2.0, "cpu_tree_wait": 0.7}, (), "a quiet node, as other work held the cores"),
        (
            {"cpu_node": 0.65, "cpu_tree_wait": 0.7},
            (),
            (
                "cores of its own, as it waited for cores although nothing else ran here (its own "
                "threads on the same cores, or a virtual machine's host); "
            ),
        ),
        ({}, (finding("cpu-pressure", "waited"),), "a quiet node, as other work held the cores"),
        (
            {"cpu_node": 1.6, "cpu_tree_wait": 0.7, "client_cores": 0.9},
            (),
            (
                "a load from another machine (--url) or more cores, as the load generator held "
                "the other cores (1.0 on average)"
            ),
        ),
        (
            {"cpu_node": 2.0, "cpu_tree_wait": 0.7, "client_cores": 0.9},
            (),
            "a quiet node, as other work held the cores (1.4 on average)",
        ),
        (
            {"cpu_throttled": 0.3},
            (),
            "a larger CPU quota, as that of its cgroup stopped the process (30.0 % of the time); ",
        ),
        (
            {"cpu_sampled": 90_000_000},
            (),
            "a longer time, as less than 1 s was sampled (90.00 ms); ",
        ),
    ],
)
def test_cores_that_the_process_could_not_have_are_not_idle(more, findings, why):
    found = judge(None, cpu(cores_used=0.6, cores_allowed=2, throughput=100.0, **more), findings)
    assert found.verdict is None
    assert found.needs.startswith(why)


def test_other_work_is_taken_off_the_allowed_cores():
    found = verdict(None, cpu(cores_used=2.0, cores_allowed=16, cpu_node=8.0, throughput=1.0), ())
    assert (found.kind, found.share, found.at_most) == (
        "idle-cores",
        pytest.approx(0.8),
        pytest.approx(5.0),
    )
    busy = verdict(
        None,
        cpu(cores_used=7.8, cores_allowed=8, cpu_node=12.0, cpu_tree_wait=9.0),
        (finding("cpu-pressure", "waited"),),
    )
    assert busy.kind == "undetermined"


def test_a_point_that_did_not_wait_is_judged_whatever_the_rest_of_the_run_did():
    figures = cpu(cores_used=2.0, cores_allowed=16, cpu_tree_wait=0.01, throughput=1.0)
    assert verdict(None, figures, (finding("cpu-pressure", "waited"),)).kind == "idle-cores"
    slow = figures | {
        "cpu_tree_wait": Figure(value=0.01, unit="cores", note="sampled too slowly: every 2 s")
    }
    assert verdict(None, slow, (finding("cpu-pressure", "waited"),)) is None


def test_a_process_that_sleeps_is_said_to_wait():
    found = verdict(
        None,
        cpu(
            cores_used=0.01, cores_allowed=2, steps_per_second=1.0, cpu_node=0.1, cpu_tree_wait=0.0
        ),
        (),
    )
    assert (found.kind, found.at_most) == ("idle-waiting", None)
    assert found.text.startswith("The process waits: for input")
    beside_others = verdict(
        None,
        cpu(cores_used=0.01, cores_allowed=2, cpu_node=2.0, cpu_tree_wait=0.002),
        (finding("cpu-pressure", "waited"),),
    )
    assert beside_others.kind == "idle-waiting"


def test_without_any_measure_there_is_no_verdict():
    for partition in (None, split()):
        found = judge(partition, {}, ())
        assert (found.verdict, found.needs) == (None, NOTHING_MEASURED)


NOTES = {
    "compute_bound": Figure(value=0.5, unit="share", note="gemm at 90.0 % of the measured GEMM"),
    "bandwidth_bound": Figure(
        value=0.5, unit="share", note="gather at 71.0 % of the measured copy"
    ),
    "inside_kernel": Figure(value=0.5, unit="share", note="atomics"),
}


@pytest.mark.parametrize(
    ("parts", "kind", "share", "said"),
    [
        (
            {"compute_bound_ns": 50, "bandwidth_bound_ns": 30},
            "compute",
            0.5,
            "Saturated by compute part of the time: gemm at 90.0 % of the measured GEMM;",
        ),
        (
            {"bandwidth_bound_ns": 60, "inside_kernel_ns": 20},
            "bandwidth",
            0.6,
            "Saturated by memory bandwidth part of the time: gather at 71.0 %",
        ),
        (
            {"inside_kernel_ns": 75, "unknown_work_ns": 5},
            "inside-kernel",
            0.75,
            "Not saturated: atomics; such kernels run 75.0 % of the time; without them",
        ),
    ],
)
def test_filled_time_is_named_by_its_largest_group(parts, kind, share, said):
    found = verdict(split(compute=80, idle=20, kernels=KernelParts(**parts)), NOTES, ())
    assert (found.kind, found.share, found.at_most) == (kind, share, pytest.approx(1 / (1 - share)))
    assert found.text.startswith(said)


def test_a_device_that_is_full_all_the_time_is_saturated():
    parts = KernelParts(compute_bound_ns=95, unknown_work_ns=5)
    assert verdict(split(compute=100, kernels=parts), NOTES, ()).text.startswith(
        "Saturated by compute: gemm"
    )


def test_idle_time_outweighs_a_small_group():
    parts = KernelParts(compute_bound_ns=30, bandwidth_bound_ns=30)
    assert verdict(split(compute=60, idle=40, kernels=parts), {}, ()).idle


def test_a_window_that_runs_at_a_ceiling_as_a_whole_is_bound_by_it():
    rates = {"flops_of_ceiling": share(0.6), "bandwidth_share": share(0.2)}
    busy = split(compute=90, idle=10)
    found = judge(busy, rates, ())
    assert (found.verdict.kind, found.verdict.share) == ("compute", 0.9)
    assert "useful FLOP/s at 60.0 % of the ceiling" in found.verdict.text
    assert found.partition.kernel_parts == KernelParts(compute_bound_ns=90)
    assert verdict(busy, {"bandwidth_share": share(0.7)}, ()).kind == "bandwidth"
    assert verdict(busy, {"flops_of_ceiling": share(0.5)}, ()).kind == "kernels"
    # kernels that were judged on their own are not overruled
    judged = KernelParts(bandwidth_bound_ns=80, unknown_work_ns=10)
    assert verdict(split(compute=90, idle=10, kernels=judged), rates, ()).kind == "bandwidth"


@pytest.mark.parametrize(
    ("rates", "kind"),
    [
        ({"flops_of_ceiling": 0.7}, "compute"),
        ({"bandwidth_share": 0.9, "flops_of_ceiling": 0.7}, "bandwidth"),
        ({"flops_of_ceiling": 0.5}, "undetermined"),
    ],
)
def test_the_cpu_is_judged_by_its_ceilings_too(rates, kind):
    figures = {
        "cores_used": Figure(value=7.9, unit="cores"),
        "cores_allowed": Figure(value=8, unit="cores"),
    }
    found = verdict(None, figures | {name: share(value) for name, value in rates.items()}, ())
    assert found.kind == kind
    assert "7.9 of 8" in found.text


FULL = split(compute=95, idle=5, kernels=KernelParts(compute_bound_ns=70, unknown_work_ns=25))


def test_a_power_cap_modifies_the_verdict_and_never_is_its_kind():
    capped = {"throttle_power": share(0.42), "throttle_thermal": share(0.05)}
    found, plain = verdict(FULL, capped, ()), verdict(FULL, {}, ())
    assert (found.kind, found.share, found.at_most) == (plain.kind, plain.share, plain.at_most)
    assert found.kind == "compute"
    assert found.evidence == (
        f"{plain.evidence}; its power limit held the clock down 42.0 % of the time"
    )


def test_the_clock_speaks_where_the_driver_tells_nothing_of_throttling():
    figures = {"mfu": share(0.36), "mfu_at_clock": share(0.45)}
    assert verdict(FULL, figures, ()).evidence.endswith(
        "; the clock was at 80.0 % of its peak, for a reason that the driver does not tell"
    )
    for other in (
        {"throttle_power": share(0.0)},
        {"mfu_at_clock": share(0.37)},
        {"mfu": share(None)},
    ):
        assert "clock" not in verdict(FULL, figures | other, ()).text
    # an idle device lowers its clock by itself
    parts = KernelParts(compute_bound_ns=70, unknown_work_ns=5)
    assert "clock" not in verdict(split(compute=75, idle=25, kernels=parts), figures, ()).text


def test_an_idle_device_is_not_said_to_be_capped():
    capped = {"throttle_power": share(0.5)}
    assert "power" not in verdict(split(compute=20, idle=80), capped, ()).text
