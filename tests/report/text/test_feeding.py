"""What is said to a device that the host does not feed: made summaries with a planted cause."""

from __future__ import annotations

import msgspec

from profharness.analysis.critical.records import CriticalPath, Forecast, RankPath
from profharness.analysis.host.records import AfterWait, HostPart, HostTime
from profharness.analysis.records import Summary
from profharness.analysis.summarise import summarise_trace
from profharness.report.text.command_sentences import next_step
from profharness.report.text.measured.feeding import advice, wait_sentence
from tests.analysis.scene import Scene

GRAPHS = 'device graphs (HIP or CUDA graphs) or torch.compile(mode="reduce-overhead")'
LESS_WAITING = "removing .item(), .cpu() and explicit synchronisation from the loop"


def host(*parts: tuple[str, int], waits: tuple[AfterWait, ...] = ()) -> HostTime:
    """A window of 1 000 ns in 10 steps, and what the host did in the idle time of it."""
    rows = tuple(HostPart(cause="host_not_ready", kind=k, ns=n, share=n / 1e3) for k, n in parts)
    total = sum(ns for _, ns in parts)
    return HostTime(
        of="idle", window_ns=1_000, total_ns=total, steps=10, parts=rows, after_waits=waits
    )


def forecast(change: str, then: int, at_most: int) -> Forecast:
    return Forecast(
        change=change, window_ns=1_000, forecast_ns=then, steps=10, at_most_ns=at_most,
        next_limit="kernel", next_limit_share=0.5, touched=3, residual_ns=0,
    )  # fmt: skip


def summary(time: HostTime, *what_if: Forecast) -> Summary:
    path = RankPath(
        process="process 7", window="10 steps", start_ns=0, window_ns=1_000, segments={}, rows=(),
        steps=(), what_if=(forecast("no change", 1_000, 0), *what_if),
    )  # fmt: skip
    made = CriticalPath(window_ns=1_000, segments={}, processes=(path,))
    whole = summarise_trace(Scene().build(), "made")
    return msgspec.structs.replace(whole, host=time, critical_path=made)


ITEM = AfterWait(name="aten::item", gaps=180, ns=245, share=0.245)
LAUNCHING = (("operator", 350), ("launch_call", 100), ("python", 90), ("synchronisation", 90))


def test_operators_ask_for_graphs_with_what_they_are_worth():
    made = summary(host(*LAUNCHING), forecast("graphs", 514, 633))
    assert advice(made) == f"{GRAPHS} (graphs: at most -63.3 %)"
    assert advice(summary(host(*LAUNCHING))) == GRAPHS


def fed(kernel_ns: int, computed: str = "aten::normal_") -> Summary:
    """Four steps of 13 ms: the host is in one operator for 12 ms, by itself, and then launches a
    kernel for another, which runs while the host is in the first one again.
    """
    scene = Scene()
    for step in range(4):
        at = step * 13_000_000
        scene.mark("step", at, at + 13_000_000, f"ProfilerStep#{step}")
        scene.op(computed, at + 1_000, at + 12_001_000)
        launch = scene.launch(at + 12_010_000, at + 12_020_000)
        product = scene.op("aten::mm", at + 12_005_000, at + 12_025_000)
        scene.kernel(at + 12_030_000, at + 12_030_000 + kernel_ns, launch, op=product)
    return summarise_trace(scene.build(), "made")


def test_an_operator_that_the_host_computes_is_named_and_not_graphs():
    named = "Try doing aten::normal_ on the device, or before the loop: the host computes it for"
    often_idle = fed(kernel_ns=1_000_000)
    assert often_idle.verdict is not None
    assert often_idle.verdict.kind == "idle-host-not-ready"
    # 12 ms before the first kernel, and what the kernels leave of the three others
    assert f"{named} 11.98 ms at a time." in next_step(often_idle)
    often_busy = fed(kernel_ns=7_900_000)
    assert often_busy.verdict is not None
    assert often_busy.verdict.kind == "kernels"
    assert next_step(often_busy) == (
        "39.1 % of the time the GPU waits for the host to have the next work ready. "
        f"{named} 5.071 ms at a time."
    )
    # of an operator with work on the device nobody knows that the host computes it
    assert "graphs" in next_step(fed(kernel_ns=1_000_000, computed="aten::mm"))


def test_waits_in_the_loop_are_told_with_their_number_and_worth():
    time = host(*LAUNCHING, waits=(ITEM,))
    assert wait_sentence(time) == (
        "The host waits for the device in aten::item 18 times a step, and 24.5 % of the time lies "
        "in the gaps that follow."
    )
    both = summary(time, forecast("graphs", 514, 633), forecast("no-sync", 904, 350))
    assert advice(both) == (
        f"{GRAPHS} (graphs: at most -63.3 %), and {LESS_WAITING} (no-sync: at most -35.0 %)"
    )
    little = summary(time, forecast("graphs", 514, 633), forecast("no-sync", 990, 350))
    assert LESS_WAITING not in advice(little)


def test_the_change_that_is_worth_more_comes_first():
    time = host(*LAUNCHING, waits=(ITEM,))
    made = summary(time, forecast("graphs", 900, 150), forecast("no-sync", 600, 350))
    assert advice(made).startswith(f"{LESS_WAITING} (no-sync: at most -35.0 %), and device graphs")


def test_where_most_gaps_follow_a_wait_their_share_is_told_once():
    most = AfterWait(name="aten::item", gaps=10, ns=800, share=0.8)
    time = host(("nothing", 900), waits=(most,))
    assert wait_sentence(time) == "The host waits for the device in aten::item once a step."
    assert advice(summary(time)) == LESS_WAITING


def test_one_long_gap_is_no_habit():
    once = AfterWait(name="cudaMemcpyAsync", gaps=1, ns=300, share=0.3)
    assert wait_sentence(host(*LAUNCHING, waits=(once,))) == ""
    assert wait_sentence(None) == ""


def test_other_causes_keep_their_advice():
    loading = summary(host(("data_loader", 500), ("operator", 100)), forecast("graphs", 900, 150))
    assert advice(loading).startswith("more workers")
    assert advice(summary(host(("nothing", 500), ("operator", 100)))) == ""


def test_python_around_the_calls_is_not_taken_for_a_data_loader():
    less = "fewer Python steps between launches, or"
    between = summary(host(("python", 480), ("operator", 430)), forecast("graphs", 514, 633))
    assert advice(between) == f"{less} {GRAPHS} (graphs: at most -63.3 %)"
    assert advice(summary(host(("python", 500), ("operator", 100)))) == f"{less} torch.compile"


def test_a_launch_bound_trace_is_never_told_of_the_data_loader():
    """Each kernel of 2 us follows 100 us of an operator."""
    scene = Scene()
    for step in range(60):
        at = step * 100_000
        scene.op("aten::add", at, at + 99_000)
        scene.kernel(at + 95_000, at + 97_000, scene.launch(at + 90_000, at + 94_000))
    said = next_step(summarise_trace(scene.build(), "made"))
    assert "graphs" in said
    assert "loader" not in said
