import msgspec
import numpy as np
import pytest

from profharness.analysis.compare.kernel_match import kernels_differ
from profharness.analysis.power.run_telemetry import figures_in, rows
from profharness.analysis.records import Figure
from profharness.analysis.run.checks import telemetry_findings
from profharness.analysis.run.summary import summarise_run
from profharness.analysis.run.trials import base_of, collect, reference_pass
from profharness.findings import finding
from profharness.rundir.manifest import PassRecord, PointRecord
from profharness.stats.bootstrap import Z95
from profharness.stats.intervals import window
from profharness.stats.streams import streams
from profharness.trace.model import ClockDomain, Source, Strings, Trace
from tests.analysis.run.run_scene import (
    BARE_MS,
    BUSY,
    MS,
    SIZES,
    SLOWDOWN,
    Builder,
    manifest,
    scan_trace,
    trial_ns,
)


@pytest.fixture(scope="module")
def summary():
    builder, _ = scan_trace()
    return summarise_run(manifest(), builder.trace(), "traces/made-up")


def point(summary, batch):
    return next(one for one in summary.points if one.batch_size == batch)


def test_one_object_per_point_over_all_passes(summary):
    assert [one.point for one in summary.points] == [f"torch-b{b}" for b in SIZES]
    for batch in SIZES:
        one = point(summary, batch)
        durations = trial_ns(batch, 0, 40)
        assert one.trials == 40
        assert one.warmup_trials == 5
        assert one.backend == "torch"
        assert one.throughput == pytest.approx(np.mean(batch / durations * 1e9))
        shown = one.metrics["throughput"]
        assert one.throughput_sem == pytest.approx((shown.high - shown.low) / (2 * Z95))
        # the drift of the repeated points comes on top of the scatter of the trials
        assert one.throughput_sem > np.std(batch / durations * 1e9, ddof=1) / 40**0.5
        assert one.latency_ms == pytest.approx(durations.mean() / MS)
        assert one.consistency == pytest.approx(1, abs=1e-3)
        assert len(one.trials_ms) == 40


def test_overhead_comes_from_the_passes(summary):
    truth = 1 - 1 / SLOWDOWN
    for batch in SIZES:
        estimate = point(summary, batch).overhead["torch"]
        assert estimate.low <= truth <= estimate.high
        assert estimate.high - estimate.low < 0.1
    bare, torch = summary.passes
    assert (bare.name, bare.overhead, bare.seconds) == ("bare", {}, 3.0)
    assert torch.overhead["torch"].value == pytest.approx(truth, abs=0.02)
    assert "profiler-overhead" in [one.id for one in summary.findings]


def test_device_figures_are_joined_by_point(summary):
    for batch in SIZES:
        metrics = point(summary, batch).metrics
        assert metrics["busy"].value == pytest.approx(BUSY, rel=0.01)
        assert metrics["busy_bare"].value == pytest.approx(BUSY * SLOWDOWN, rel=0.02)
        assert "bare" in metrics["busy_bare"].source
        assert point(summary, batch).partition is not None
        assert point(summary, batch).verdict is None
        assert point(summary, batch).verdict_needs.startswith("host calls")


def test_figures_carry_interval_origin_and_needs(summary):
    metrics = point(summary, 4).metrics
    throughput = metrics["throughput"]
    assert throughput.low < throughput.value < throughput.high
    assert throughput.source == "bare pass, 40 trials"
    assert throughput.note == ""
    assert metrics["latency_p50"].value == pytest.approx(4.0, rel=0.02)
    assert metrics["latency_p99"].value is None
    assert metrics["latency_p99"].needs == "more trials (at least 1000)"
    assert metrics["energy_per_item"].needs == "power"
    assert metrics["achieved_flops"].value == pytest.approx(2e6 * throughput.value)
    assert metrics["warmup_time"].value == 9 * MS


def test_series_provenance_and_sources(summary):
    (one,) = summary.series
    assert one.key == {"backend": "torch"}
    assert one.levels == (1.0, 4.0, 16.0)
    assert summary.run.device == "cuda:0"
    assert summary.run.git == "0123456789ab (main, dirty)"
    assert summary.trace.pass_name == "torch"
    kineto = next(row for row in summary.sources if row.format == "kineto")
    assert (kineto.residual_ns, kineto.bound_ns, kineto.layer) == (5, 300, "torch")
    assert msgspec.json.decode(msgspec.json.encode(summary))["schema"] == 2


def test_drift_widens_the_interval_and_is_found(summary):
    builder, _ = scan_trace(drift=1.1)
    drifted = summarise_run(manifest(), builder.trace(), "x")
    assert [one.id for one in summary.findings if one.id == "drift"] == []
    assert [one.id for one in drifted.findings if one.id == "drift"] == ["drift", "drift"]
    wide, narrow = (point(one, 4).metrics["throughput"] for one in (drifted, summary))
    assert wide.high - wide.low > 0.15 * wide.value > narrow.high - narrow.low
    assert point(drifted, 4).overhead["torch"].low < point(summary, 4).overhead["torch"].low


def test_drift_widens_the_times_as_it_does_the_throughput(summary):
    builder, _ = scan_trace(drift=1.1)
    drifted = summarise_run(manifest(), builder.trace(), "x")
    for name in ("latency_mean", "latency_p50"):
        wide, narrow = (point(one, 4).metrics[name] for one in (drifted, summary))
        assert narrow.low < narrow.value < narrow.high
        assert (wide.high - wide.low) - (narrow.high - narrow.low) == pytest.approx(
            2 * 0.1 * narrow.value, rel=0.2
        )


def test_an_uncertain_larger_drift_hides_no_certain_one():
    builder = Builder()
    wild = np.array([2, 60, 3, 2, 90, 2, 3, 2, 2, 40]) * MS
    for key, durations in (
        ("torch-b1", trial_ns(1, 0, 40)),
        ("torch-b4", trial_ns(4, 0, 40)),
        ("torch-b16", wild),
        ("torch-b1~1", trial_ns(1, 1, 40, slow=1.2)),
        ("torch-b4~1", trial_ns(4, 1, 40, slow=0.8)),
        ("torch-b16~1", wild * 7 // 10),
    ):
        builder.trials("bare", key, 4, durations)
    summary = summarise_run(manifest(), builder.trace(), "x")
    assert [one.point for one in summary.findings if one.id == "drift"] == ["torch-b1", "torch-b4"]


def disturbed_scan(slow, *, wait=0.0, n=30):
    builder = Builder()
    for batch in SIZES:
        durations = trial_ns(batch, 0, n)
        durations[1] *= slow
        builder.trials("bare", f"torch-b{batch}", batch, durations)
    end = builder.now + 10**9
    for metric, value in (("cpu_tree", 1.0), ("cpu_tree_wait", wait)):
        at = np.arange(10**12 - 10**9, end, 10 * MS)
        builder.telemetry(metric, at, at + 10 * MS, np.full(len(at), value))
    return summarise_run(manifest(), builder.trace(), "x")


def severities(summary, kind="warmup-leak"):
    return [one.severity for one in summary.findings if one.id == kind]


def test_an_odd_trial_is_an_error_only_where_nothing_else_explains_it():
    assert severities(disturbed_scan(20)) == ["error"] * 3
    assert severities(disturbed_scan(20, n=5)) == ["warning"] * 3
    pressed = disturbed_scan(20, wait=1.0)
    assert severities(pressed) == ["warning"] * 3
    assert "the workload waited for cores meanwhile" in next(
        one.message for one in pressed.findings if one.id == "warmup-leak"
    )


def test_a_runs_curve_does_not_judge_its_columns_again():
    (one,) = disturbed_scan(200, wait=1.0).series
    assert not {"warmup-leak", "missing-sync", "outlier-trial"} & {
        found.id for found in one.findings
    }
    assert one.flagged == ()
    (wrong,) = disturbed_scan(20).series
    assert wrong.flagged == (1.0, 4.0, 16.0)
    assert wrong.recommended_note == "not trustworthy: warmup-leak at every level"


def test_overlap_with_the_best_level_holds_the_drift(summary):
    (calm,) = summary.series
    (wide,) = summarise_run(manifest(), scan_trace(drift=3.0)[0].trace(), "x").series
    assert calm.overlaps_best == ()
    assert wide.overlaps_best == (1.0, 4.0)


def test_slow_samples_are_marked():
    builder, spans = scan_trace(kernels=False)
    start, end = spans[1]
    builder.telemetry("cpu_tree_wait", [start - 10**9], [end + 10**9], [0.5])
    found = figures_in(streams(builder.trace()), window(start, end), "x")["cpu_tree_wait"]
    assert found.note.startswith("sampled too slowly: every 2.0")
    assert (
        figures_in(streams(builder.trace()), window(start - 10**9, end), "x")["cpu_tree_wait"].note
        == ""
    )


def test_trials_are_counted_once_where_a_tool_repeats_them():
    with_marks, without = (
        collect(scan_trace(tool_marks=flag)[0].trace()) for flag in (True, False)
    )
    assert {name: len(one.starts_ns) for name, one in with_marks.items()} == {
        name: len(one.starts_ns) for name, one in without.items()
    }


def test_a_tools_trials_serve_where_ours_are_missing():
    builder = Builder()
    builder.trials("torch", "torch-b4", 4, [MS] * 5, layer="torch", items=False)
    found = collect(builder.trace(), {"torch-b4": 4})
    assert found[("torch", "torch-b4")].items.tolist() == [4] * 5
    assert reference_pass(found, ("bare", "torch")) == "torch"
    assert base_of("torch-b4~1") == "torch-b4"


def test_no_bare_pass_is_said():
    builder = Builder()
    builder.trials("torch", "torch-b4", 4, trial_ns(4, 0, 20))
    summary = summarise_run(
        manifest(passes=(PassRecord(name="torch", layers=("torch",)),)), builder.trace(), "x"
    )
    figure = point(summary, 4).metrics["throughput"]
    assert figure.value is not None
    assert figure.note == "no bare pass: slowed by the profiler"
    assert point(summary, 4).overhead == {}


def test_several_processes_share_a_window():
    builder = Builder()
    start = builder.now
    for _ in range(2):
        builder.trials("bare", "p2", 8, [MS] * 20, start=start)
    record = PointRecord(id="p2", pass_name="bare", processes=2, items_per_trial=8)
    summary = summarise_run(manifest(points=(record,)), builder.trace(), "x")
    (one,) = summary.points
    assert one.metrics["throughput"].note == "common window of 2 processes"
    assert one.throughput == pytest.approx(16_000, rel=0.01)
    assert one.consistency is None


def test_what_a_killed_run_left():
    empty = Trace(sources=(), strings=Strings())
    failed = PointRecord(
        id="torch-b8",
        pass_name="bare",
        backend="torch",
        batch_size=8,
        state="failed",
        error="out of memory",
    )
    earlier = finding(
        "point-failed", "torch-b8 failed in the bare pass: out of memory", point="torch-b8"
    )
    summary = summarise_run(
        manifest(points=(failed,), passes=(), state="interrupted", findings=(earlier,), nodes=()),
        empty,
        "x",
    )
    (one,) = summary.points
    assert (one.state, one.error, one.throughput, one.verdict) == (
        "failed",
        "out of memory",
        None,
        None,
    )
    assert earlier in summary.findings
    assert summary.series == ()


def test_findings_on_trials_caches_and_compilation():
    builder = Builder()
    builder.trials("bare", "torch-b4", 4, np.concatenate([[80 * MS], trial_ns(4, 0, 30)]))
    record = PointRecord(
        id="torch-b4",
        pass_name="bare",
        backend="torch",
        batch_size=4,
        cold_cache=True,
        compile_ns=3 * 10**9,
        notes={"failed-to-compile": "RuntimeError: no"},
    )
    found = summarise_run(manifest(points=(record,)), builder.trace(), "x").findings
    assert {"warmup-leak", "cold-cache", "failed-to-compile"} <= {
        one.id for one in found if one.point == "torch-b4"
    }


def test_telemetry_is_weighted_and_joined_by_point():
    builder, spans = scan_trace(kernels=False)
    start, end = spans[4]
    middle = start + (end - start) // 4
    builder.telemetry("cpu_tree", [start - 50 * MS, middle], [middle, end + 50 * MS], [1.0, 3.0])
    builder.telemetry(
        "memory_tree",
        [start + 1, end - 1, end + MS],
        [start + 1, end - 1, end + MS],
        [100.0, 300.0, 900.0],
    )
    trace = builder.trace()
    summary = summarise_run(manifest(), trace, "x")
    metrics = point(summary, 4).metrics
    assert metrics["cores_used"].value == pytest.approx(0.25 * 1 + 0.75 * 3, rel=0.01)
    assert metrics["memory_peak"].value == 300.0
    assert metrics["cores_allowed"].value == 4.0
    first, second = summary.telemetry
    assert (first.metric, first.unit, first.samples) == ("cpu_tree", "cores", 2)
    assert first.mean == pytest.approx(
        ((middle - start + 50 * MS) * 1 + (end + 50 * MS - middle) * 3) / (end - start + 100 * MS)
    )
    assert (second.low, second.high, second.mean) == (100.0, 900.0, pytest.approx(1300 / 3))
    assert first.at_s[0] == 0.0
    assert figures_in(streams(trace), window(0, 5), "x") == {}


def test_long_telemetry_is_thinned():
    builder = Builder()
    at = np.arange(100_000) * MS
    builder.telemetry("cpu_tree", at, at + MS, np.arange(100_000.0))
    (row,) = rows(builder.trace())
    assert 200 <= len(row.values) <= 400
    assert np.mean(row.values) == pytest.approx(49_999.5, rel=1e-3)
    assert row.mean == pytest.approx(49_999.5)


def test_cpu_pressure_and_gaps():
    builder = Builder()
    builder.trials("bare", "p", 1, [MS] * 3)
    builder.sources.append(
        Source(
            path="telemetry/node.parquet",
            format="telemetry",
            clock=ClockDomain.RUN,
            details=(("rows", "80"), ("missed", "20")),
        )
    )
    busy = {
        "cores_used": Figure(value=1.0, unit="cores"),
        "cpu_tree_wait": Figure(value=0.5, unit="cores"),
        "cpu_throttled": Figure(value=0.2, unit="share"),
    }
    assert [one.id for one in telemetry_findings(builder.trace(), busy)] == [
        "cpu-pressure",
        "cpu-pressure",
        "sampler-gaps",
    ]
    beside = {**busy, "cpu_throttled": Figure(value=0.0, unit="share")}
    for node, blamed in ((1.05, False), (1.9, True)):
        (one,) = telemetry_findings(
            Builder().trace(), {**beside, "cpu_node": Figure(value=node, unit="cores")}
        )
        assert ("other work" in one.advice) == blamed
    asleep = {
        "cores_used": Figure(value=0.001, unit="cores"),
        "cpu_tree_wait": Figure(value=0.001, unit="cores"),
    }
    assert telemetry_findings(Builder().trace(), asleep) == ()
    calm = {
        "cores_used": Figure(value=1.0, unit="cores"),
        "cpu_tree_wait": Figure(value=0.01, unit="cores"),
    }
    assert [one.id for one in telemetry_findings(Builder().trace(), calm)] == []


def test_kernels_of_two_passes():
    builder, _ = scan_trace()
    durations = trial_ns(4, 9, 10)
    starts = builder.trials("rocprofv3", "torch-b4", 4, durations)
    source = builder.kernel_source("rocprofv3", "rocprofv3")
    builder.add_kernels(source, "torch-b4", starts, durations)
    trace = builder.trace()
    assert kernels_differ(trace, collect(trace)) == ()
    builder.add_kernels(source, "torch-b4", starts[:5], durations[:5], ("reduce",))
    trace = builder.trace()
    (found,) = kernels_differ(trace, collect(trace))
    assert (found.id, found.point) == ("kernels-differ", "torch-b4")


def test_command_overhead_from_steps():
    builder = Builder()
    for name, length in (("bare", 10 * MS), ("torch", 12 * MS)):
        builder.trials(name, "", 1, [50 * MS] + [length] * 20, layer="steps")
    builder.marks = [
        table.with_columns(kind=builder.strings.code("step"), point=-1) for table in builder.marks
    ]
    passes = (
        PassRecord(name="bare", start_boot_ns=0, end_boot_ns=10),
        PassRecord(name="torch", layers=("torch",), start_boot_ns=0, end_boot_ns=20),
    )
    summary = summarise_run(
        manifest(kind="command", points=(), passes=passes, scan=None), builder.trace(), "x"
    )
    assert summary.passes[1].overhead["torch"].value == pytest.approx(1 - 10 / 12)
    rate = summary.metrics["steps_per_second"]
    assert rate.value == pytest.approx(100)
    assert (rate.source, rate.note) == (
        "bare pass, 20 steady steps, 1 slower one at the start left out",
        "",
    )
    assert summary.metrics["throughput"].value == pytest.approx(100, rel=1e-3)
    bare_time = summarise_run(
        manifest(kind="command", points=(), passes=passes, scan=None),
        Trace(sources=(), strings=Strings()),
        "x",
    )
    assert bare_time.passes[1].overhead["torch"].value == pytest.approx(0.5)
    assert bare_time.passes[1].overhead["torch"].low is None


def test_scene_is_what_the_tests_say():
    assert BARE_MS[4] == 4.0
