import numpy as np
import pytest

from profharness.analysis.run.steps import steady_steps, step_figures
from profharness.analysis.run.summary import summarise_run
from profharness.rundir.manifest import PassRecord
from profharness.trace.columns.table import concat
from profharness.trace.model import (
    FIRST_STEP,
    STEPS,
    ClockDomain,
    Marks,
    Ops,
    Source,
    Strings,
    Trace,
)
from tests.analysis.run.run_scene import manifest

MS = 1_000_000
START = 10**12
FAST, PROFILED, EXPORT = 1.0, 2.5, 80.0


class Log:
    """Logs of steps of several processes of one pass, and the files of their capture windows."""

    def __init__(self):
        self.strings, self.sources, self.marks, self.ops = Strings(), [], [], []

    def steps(self, lengths_ms, *, pid=7, items=4, name="torch", start=START):
        lengths = np.rint(np.asarray(lengths_ms) * MS).astype(np.int64)
        starts = start + np.concatenate([[0], np.cumsum(lengths)[:-1]])
        self.sources.append(
            Source(
                path=f"steps-{pid}.jsonl",
                format="steps",
                clock=ClockDomain.RUN,
                host="node",
                pid=pid,
                pass_name=name,
                layer="steps",
            )
        )
        self.marks.append(
            Marks.build(
                len(lengths),
                start_ns=starts,
                dur_ns=lengths,
                kind=self.strings.code("step"),
                pid=pid,
                items=items,
                name=self.strings.codes(f"step {n}" for n in range(1, len(lengths) + 1)),
                source=len(self.sources) - 1,
            )
        )
        return starts, starts + lengths

    def window(self, start, end, *, pid=7, name="torch", clock=ClockDomain.RUN, details=()):
        """A torch file with operators over the time, and its own marks of steps where `details`
        says none.
        """
        self.sources.append(
            Source(
                path="trace.json",
                format="kineto",
                clock=clock,
                host="node",
                pid=pid,
                pass_name=name,
                layer="torch",
                details=details,
            )
        )
        edges = np.linspace(start, end, 11).astype(np.int64)
        self.ops.append(
            Ops.build(
                10,
                start_ns=edges[:-1],
                dur_ns=np.diff(edges),
                name=self.strings.code("aten::mm"),
                pid=pid,
                source=len(self.sources) - 1,
            )
        )

    def trace(self):
        return Trace(
            sources=tuple(self.sources),
            strings=self.strings,
            marks=concat(self.marks),
            ops=concat(self.ops) if self.ops else Ops.empty(),
        )


def of_command(*layers):
    return manifest(
        kind="command",
        points=(),
        scan=None,
        passes=(PassRecord(name="torch", layers=layers or ("torch", "telemetry")),),
    )


def captured(before=5, inside=20, after=15):
    """Steps with a capture window: slow inside, and the writing of the trace in the step
    after it.
    """
    log = Log()
    starts, ends = log.steps([FAST] * before + [PROFILED] * inside + [EXPORT] + [FAST] * after)
    log.window(starts[before] + 1000, ends[before + inside - 1] - 1000)
    return log


def test_figures_come_from_steps_outside_of_the_window():
    figures = step_figures(of_command(), captured().trace())
    rate, time, items = (figures[name] for name in ("steps_per_second", "step_time", "throughput"))
    assert rate.value == pytest.approx(1000 / FAST)
    assert time.value == pytest.approx(FAST * MS)
    assert items.value == pytest.approx(4 * 1000 / FAST)
    assert rate.source == "torch pass, 15 steady steps outside of the capture window"
    assert (rate.note, time.note, items.note) == ("", "mean", "")


def test_too_few_steps_outside_leave_those_inside_without_the_export():
    figures = step_figures(of_command(), captured(before=3, after=2).trace())
    assert figures["steps_per_second"].value == pytest.approx(1000 / PROFILED)
    assert figures["steps_per_second"].note == "slowed by the profiler"
    assert "in the capture window" in figures["steps_per_second"].source


def test_steps_before_the_window_serve_where_none_follow():
    found = steady_steps(captured(before=30, after=0).trace(), "torch")
    assert (found.where, len(found)) == ("outside", 29)
    assert np.all(found.durations_ns == FAST * MS)


def test_one_estimate_behind_all_three():
    log = Log()
    log.steps(np.random.default_rng(1).uniform(0.5, 1.5, 40), items=8)
    figures = step_figures(of_command("telemetry"), log.trace())
    rate = figures["steps_per_second"]
    assert figures["step_time"].value == pytest.approx(1e9 / rate.value)
    assert figures["throughput"].value == pytest.approx(8 * rate.value)
    assert rate.low < rate.value < rate.high
    assert figures["step_time"].low == pytest.approx(1e9 / rate.high)
    assert rate.note == ""


def test_times_that_may_be_none_do_not_bound_a_rate():
    log = Log()
    log.steps([0.1] * 8 + [40, 0.1, 0.1, 0.1, 0.1], items=8)
    figures = step_figures(of_command("telemetry"), log.trace())
    rate, time = figures["steps_per_second"], figures["step_time"]
    assert rate.high is None
    assert 0 < rate.low < rate.value
    assert (time.low, time.high) == (0.0, pytest.approx(1e9 / rate.low))


def test_each_process_has_its_own_window():
    log = Log()
    starts, ends = log.steps([FAST] * 5 + [PROFILED] * 10 + [EXPORT] + [FAST] * 20, pid=7)
    log.window(starts[5] + 1, ends[14] - 1, pid=7)
    log.steps([FAST] * 100, pid=8)
    found = steady_steps(log.trace(), "torch")
    assert np.all(found.durations_ns == FAST * MS)
    assert sorted(np.unique(found.owner, return_counts=True)[1].tolist()) == [20, 100]
    figures = step_figures(of_command(), log.trace())
    assert figures["steps_per_second"].value == pytest.approx(1000)
    assert figures["throughput"].value == pytest.approx(8000)


def test_the_sidecar_names_the_steps_of_a_file_on_another_clock():
    log = Log()
    log.steps([FAST] * 5 + [PROFILED] * 10 + [EXPORT] + [FAST] * 20)
    log.window(0, 10, clock=ClockDomain.UNKNOWN, details=((FIRST_STEP, "6"), (STEPS, "10")))
    found = steady_steps(log.trace(), "torch")
    assert (found.where, len(found)) == ("outside", 20)
    assert np.all(found.durations_ns == FAST * MS)


def test_a_tracer_of_the_whole_pass_slows_all_steps():
    figures = step_figures(of_command("torch", "rocprofv3"), captured().trace())
    assert figures["steps_per_second"].note == "slowed by the profiler"


def test_overhead_is_that_of_the_profiled_steps():
    log = captured()
    log.steps([FAST] * 30, name="bare", start=START + 10**10)
    passes = (PassRecord(name="bare"), PassRecord(name="torch", layers=("torch",)))
    summary = summarise_run(
        manifest(kind="command", points=(), scan=None, passes=passes), log.trace(), "x"
    )
    assert summary.passes[1].overhead["torch"].value == pytest.approx(1 - FAST / PROFILED)
    assert summary.metrics["steps_per_second"].source == "bare pass, 30 steady steps"


def test_a_pass_that_perturbs_the_workload_does_not_tell_its_rate():
    log = Log()
    log.steps([FAST] * 20, name="amd-log")
    logged = PassRecord(name="amd-log", layers=("amd-log",), perturbing=True)
    figures = step_figures(
        manifest(kind="command", points=(), scan=None, passes=(logged,)), log.trace()
    )
    assert {
        name: (figure.value, figure.needs.endswith("--bare")) for name, figure in figures.items()
    } == {"steps_per_second": (None, True), "step_time": (None, True)}
    log.steps([FAST] * 20, name="bare", start=START + 10**10)
    both = manifest(kind="command", points=(), scan=None, passes=(logged, PassRecord(name="bare")))
    assert (
        step_figures(both, log.trace())["steps_per_second"].source == "bare pass, 20 steady steps"
    )


def both():
    return manifest(
        kind="command",
        points=(),
        scan=None,
        passes=(PassRecord(name="bare"), PassRecord(name="torch", layers=("torch",))),
    )


def test_the_same_steps_of_both_passes_are_compared():
    """Steps that grow: those of the window are step 5 to 24 of 200, and the profiler doubles their
    time.
    """
    lengths = np.linspace(1, 20, 200)
    log = Log()
    log.steps(lengths, name="bare")
    profiled = np.where((np.arange(200) >= 5) & (np.arange(200) < 25), 2 * lengths, lengths)
    starts, ends = log.steps(profiled, name="torch", start=START * 2)
    log.window(starts[5] + 1000, ends[24] - 1000)
    (row,) = (row for row in summarise_run(both(), log.trace(), "x").passes if row.name == "torch")
    assert row.overhead["torch"].value == pytest.approx(0.5)


def test_the_opening_and_the_writing_of_a_window_count_as_no_overhead():
    log = Log()
    log.steps([FAST] * 40, name="bare")
    lengths = [FAST] * 5 + [EXPORT] + [2 * FAST] * 18 + [EXPORT] + [FAST] * 15
    starts, ends = log.steps(lengths, name="torch", start=START * 2)
    log.window(starts[5] + 1000, ends[24] - 1000)
    (row,) = (row for row in summarise_run(both(), log.trace(), "x").passes if row.name == "torch")
    assert row.overhead["torch"].value == pytest.approx(0.5)
