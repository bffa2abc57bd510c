import json

import numpy as np
import pytest

from profharness.analysis.compare.records import Delta
from profharness.analysis.compare.runs import compare
from profharness.analysis.records import Figure, Summary, TraceCounts
from profharness.cli import run_cli
from profharness.measure.recorder import Recorder
from profharness.report.text.changes import change_text
from profharness.report.text.comparison import comparison_lines
from profharness.rundir.manifest import ClockSnapshot, Manifest, NodeRecord, PassRecord, PointRecord
from profharness.rundir.paths import RunDir

SIZES = (1, 4, 16)
MS = 1_000_000


def run_of(folder, *, slow=1.0, seed=0, repeat=None):
    """A run directory as a scan leaves it: manifest and trials.csv of a bare pass.

    `repeat` is how many times as long the first point takes when it is measured again.
    """
    points = tuple(
        PointRecord(
            id=f"torch-b{b}",
            pass_name="bare",
            backend="torch",
            batch_size=b,
            trials=50,
            items_per_trial=b,
            host="n",
        )
        for b in SIZES
    )
    clocks = tuple(
        ClockSnapshot(
            host="n",
            phase=phase,
            boot_ns=at,
            monotonic_ns=at,
            monotonic_raw_ns=at,
            realtime_ns=10**18 + at,
            width_ns=100,
        )
        for phase, at in (("before", 10**9), ("after", 10**11))
    )
    run = RunDir.create(folder)
    recorder = Recorder(
        run,
        Manifest(
            id=folder.name,
            created="2026-01-01T00:00:00Z",
            profharness="0",
            kind="scan",
            argv=("profharness",),
            state="done",
            points=points,
            nodes=(NodeRecord(host="n"),),
            passes=(PassRecord(name="bare", state="done"),),
            clocks=clocks,
        ),
    )
    now = 2 * 10**9
    for batch, key, factor in [(b, f"torch-b{b}", slow) for b in SIZES] + (
        [(1, "torch-b1~1", slow * repeat)] if repeat else []
    ):
        rng = np.random.default_rng([seed, batch])
        durations = np.rint(factor * batch * MS * np.exp(0.01 * rng.standard_normal(50))).astype(
            int
        )
        starts = now + np.concatenate([[0], np.cumsum(durations)[:-1]])
        now = int(starts[-1] + durations[-1]) + MS
        recorder.write_trials(
            "bare",
            key,
            [
                (i, "trial", int(s), int(d), batch)
                for i, (s, d) in enumerate(zip(starts, durations, strict=True))
            ],
        )
    return str(folder)


@pytest.fixture
def runs(tmp_path):
    return run_of(tmp_path / "a"), run_of(tmp_path / "b", slow=1.2, seed=1)


def test_a_run_against_itself(runs, capsys):
    assert run_cli(["compare", runs[0], runs[0], "--fail-on", "throughput<0%, latency>0%"]) == 0
    text = capsys.readouterr().out
    assert text.count("within noise") == 9  # throughput, mean and median latency of three points
    assert "worse" not in text


def test_slower_run_fails_the_gate(runs, capsys):
    assert run_cli(["compare", *runs, "--fail-on", "throughput<-5%"]) == 1
    text = capsys.readouterr().out
    assert text.count("fails throughput<-5%") == 3
    assert "worse" in text
    assert run_cli(["compare", *runs, "--fail-on", "throughput<-50%"]) == 0
    assert run_cli(["compare", *runs]) == 0
    assert run_cli(["compare", *runs[::-1], "--fail-on", "throughput<-5%"]) == 0


def test_what_cannot_be_told_is_said(tmp_path, runs, capsys):
    noisy = run_of(tmp_path / "c", slow=1.2, repeat=0.4)
    assert run_cli(["compare", runs[0], noisy, "--fail-on", "throughput<-5%"]) == 0
    text = capsys.readouterr().out
    assert "cannot tell (the noise is not bounded)" in text


def test_the_noise_beside_a_change_is_that_of_its_direction():
    """30 % more and 23 % less are as likely: a fall by a quarter is beyond what chance explains."""

    def said(change, significant):
        return change_text(
            Delta(
                name="x",
                unit="ms",
                a=1.0,
                b=1.0 + change,
                change=change,
                noise=0.3,
                significant=significant,
                better="lower",
            )
        )

    assert said(-0.25, True) == "-25.0 %, better (noise ± 23.1 %)"
    assert said(0.25, False) == "+25.0 %, within noise (± 30.0 %)"


def test_steps_of_commands_are_always_compared():
    def summary(rate, half):
        figure = Figure(value=rate, unit="steps/s", low=rate * (1 - half), high=rate * (1 + half))
        return Summary(
            source="x",
            trace=TraceCounts(),
            metrics={"steps_per_second": figure, "step_time": Figure(value=1e9 / rate, unit="ns")},
        )

    same, lost = (
        "\n".join(comparison_lines(compare(summary(10.0, half), summary(10.2, half)), ()))
        for half in (0.1, 1.0)
    )
    assert "steps per second" in same
    assert "within noise" in same
    assert "step time" not in same
    assert "cannot tell" in lost


def test_json(runs, capsys):
    assert run_cli(["compare", *runs, "--json", "--fail-on", "latency>10%"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 2
    assert [point["point"] for point in document["points"]] == ["torch-b1", "torch-b4", "torch-b16"]
    throughput = document["points"][0]["deltas"][0]
    assert throughput["name"] == "throughput"
    assert throughput["change"] == pytest.approx(1 / 1.2 - 1, abs=0.02)
    assert throughput["significant"] is True
    assert len(document["breaches"]) == 3


@pytest.mark.parametrize("expression", ["throughput", "jets<-5%", "throughput<<5%"])
def test_bad_expressions(runs, capsys, expression):
    assert run_cli(["compare", *runs, "--fail-on", expression]) == 2
    assert "--fail-on" in capsys.readouterr().err


def test_missing_run(runs, capsys, tmp_path):
    assert run_cli(["compare", runs[0], str(tmp_path / "none")]) == 4


def test_saturation_of_a_run(runs, capsys):
    assert run_cli(["saturation", runs[0], "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["series"]
    assert one["key"] == {"backend": "torch"}
    assert one["recommended"]["throughput"] == pytest.approx(1000, rel=0.02)


@pytest.mark.parametrize(
    ("schema", "meaning"), [(1, "on the marks of the host"), (2, "by what they launched")]
)
def test_figures_are_no_trace_and_say_which_steps_they_hold(tmp_path, capsys, schema, meaning):
    before = tmp_path / "summary.json"
    before.write_text(json.dumps({"schema": schema, "source": "a.json", "trace": {}}, indent=2))
    assert run_cli(["compare", str(before), str(before)]) == 4
    told = capsys.readouterr().err
    assert f"schema {schema}, with steps and windows {meaning}" in told
    assert "name the trace or the run" in told
