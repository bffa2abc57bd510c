import json
import math

import msgspec
import numpy as np
import pytest

from profharness.analysis.curves.saturation import (
    indistinct,
    recommend,
    recommend_within_latency,
    series,
)
from profharness.readers.own.scan_csv import read_scan_csv
from profharness.report.json import saturation_json
from profharness.report.text.saturation import saturation_text
from profharness.trace.scan_table import ScanTable
from tests.analysis.curves.curves_simulation import BATCHES, CLIENTS, batch_truth, usl_truth

PUBLISHED = "fixtures/studies/particlenet_torch_published.csv"
AMD = ("AMD MI100", "AMD MI210")


def table(
    level, throughput, *, axis="batch_size", sem=None, latency=None, latency_sem=None, keys=None
):
    level = np.asarray(level, float)
    nan = np.full(len(level), np.nan)
    return ScanTable(
        "made",
        axis,
        () if keys is None else ("device",),
        tuple((key,) for key in keys) if keys else ((),) * len(level),
        level,
        np.asarray(throughput, float),
        *(nan if one is None else np.asarray(one, float) for one in (sem, latency, latency_sem)),
    )


def noise(seed, points, size):
    return np.exp(size * np.random.default_rng(seed).standard_normal(points))


def ids(one):
    return [item.id for item in one.findings]


@pytest.fixture(scope="module")
def published(shared):
    found = series(read_scan_csv(shared / PUBLISHED))
    return {(one.key["via"], one.key["device"]): one for one in found}


def levels_of(one, kind):
    return {
        float(level)
        for item in one.findings
        if item.id == kind
        for level in item.figures["levels"].split(", ")
    }


@pytest.mark.slow
def test_published_has_every_series(published):
    assert len(published) == 12
    assert all(one.levels == tuple(BATCHES.tolist()) for one in published.values())


@pytest.mark.parametrize(
    "device", ["Nvidia A10", "Nvidia A30", "Nvidia A100 (40 GB)", "Nvidia V100 (32 GB)", *AMD]
)
def test_published_direct_scans_leak_warm_up_at_4_8_16(published, device):
    assert levels_of(published[("direct", device)], "warmup-leak") == {4, 8, 16}


def test_published_served_scans_leak_warm_up(published):
    for (via, device), one in published.items():
        if via == "triton":
            assert levels_of(one, "warmup-leak") == ({4, 8, 16} if device in AMD else {4})


@pytest.mark.parametrize("device", AMD)
def test_published_amd_scans_miss_the_synchronisation(published, device):
    assert levels_of(published[("direct", device)], "missing-sync") >= {1024, 2048}


def test_published_served_scans_synchronise(published):
    """A request returns when its answer is there."""
    assert not any(
        levels_of(one, "missing-sync") for (via, _), one in published.items() if via == "triton"
    )


def test_published_steps(published):
    steps = {key: one.step for key, one in published.items() if one.step is not None}
    assert set(steps) == {("triton", device) for device in AMD}
    for step in steps.values():
        assert step.at == 128
        assert 1.5 < step.ratio < 2.3
    assert all("step" in ids(published[key]) for key in steps)


def test_published_curves_agree_with_the_points(published):
    for one in published.values():
        assert one.batch.t_max.low <= max(one.throughput) * 1.1
        assert one.batch.t_max.value == pytest.approx(max(one.throughput), rel=0.15)
        sound = [
            rate
            for at, rate in zip(one.levels, one.throughput, strict=True)
            if at not in one.flagged
        ]
        assert one.recommended.throughput >= 0.95 * max(sound)


@pytest.mark.slow
def test_same_table_same_answer(published, shared):
    again = series(read_scan_csv(shared / PUBLISHED))
    assert {(one.key["via"], one.key["device"]): one for one in again} == published


def test_clean_batch_series():
    truth = batch_truth(BATCHES, 25_000, 40, 1.5)
    (one,) = series(
        table(
            BATCHES,
            truth * noise(1, 10, 0.004),
            sem=truth * 0.004,
            latency=BATCHES / truth * 1e3,
            latency_sem=BATCHES / truth * 4,
        )
    )
    assert one.batch.t_max.low <= 25_000 <= one.batch.t_max.high
    assert one.batch.b90.value is not None
    assert one.usl is None
    assert one.jobs_per_device is None
    assert one.step is None
    assert ids(one) == []


def test_usl_series_with_a_fall():
    truth = usl_truth(CLIENTS, 10, 0.02, 0.0002)
    (one,) = series(table(CLIENTS, truth * noise(2, 9, 0.02), sem=truth * 0.02, axis="concurrency"))
    assert one.batch is None
    assert one.usl.n_peak.low <= math.sqrt(0.98 / 0.0002) <= one.usl.n_peak.high
    assert one.usl.lambda_.low <= 10 <= one.usl.lambda_.high
    assert one.jobs_per_device == round(one.knee.n * 0.91)
    assert ids(one) == ["falls-after-peak"]


def test_usl_series_without_a_fall_has_no_peak():
    truth = usl_truth(CLIENTS, 10, 0.2, 0.0)
    (one,) = series(table(CLIENTS, truth * noise(3, 9, 0.01), sem=truth * 0.01, axis="concurrency"))
    assert one.usl.n_peak.value is one.usl.n_peak.high is None
    # levels known to 1 % do not exclude that it begins to fall before the last one
    assert 64 < one.usl.n_peak.low <= 256
    assert "peak-beyond-range" in ids(one)
    assert one.knee.n is not None


def test_superlinear_clients():
    level = np.arange(1.0, 11.0)
    truth = usl_truth(level, 10, -0.06, 0.001)
    (one,) = series(table(level, truth * noise(4, 10, 0.01), sem=truth * 0.01, axis="concurrency"))
    assert one.usl.sigma.high < 0
    assert "superlinear" in ids(one)


def test_a_sharp_corner_is_no_usl():
    level = np.array([8.0, 16, 32, 64, 96, 128, 160, 192, 256])
    truth = 3.0 * np.minimum(level, 115)
    (one,) = series(table(level, truth * noise(5, 9, 0.01), sem=truth * 0.01, axis="concurrency"))
    assert one.usl is None
    assert "poor-fit" in ids(one)
    assert one.knee.n == pytest.approx(115, rel=0.06)
    assert one.jobs_per_device == pytest.approx(105, abs=7)


def test_jobs_curve_rising_to_the_end():
    level = np.arange(1.0, 9.0)
    (one,) = series(
        table(level, 10 * level * noise(6, 8, 0.01), sem=0.1 * level, axis="concurrency")
    )
    assert one.knee.n is one.knee.high is None
    assert one.jobs_per_device is None
    assert "peak-beyond-range" in ids(one)


def test_fall_needs_more_than_noise():
    flat = np.array([10.0, 60.0, 100.0, 98.5, 99.0, 97.5])
    assert "falls-after-peak" not in ids(
        series(table(2.0 ** np.arange(6), flat, sem=flat * 0.01))[0]
    )
    fallen = np.array([10.0, 60.0, 100.0, 95.0, 85.0, 70.0])
    (found,) = [
        item
        for item in series(table(2.0 ** np.arange(6), fallen, sem=fallen * 0.01))[0].findings
        if item.id == "falls-after-peak"
    ]
    assert found.figures["peak_at"] == 4
    assert found.figures["drop_share"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    "fallen",
    [
        [10.0, 18.0, 30.0, 25.0, 12.0],
        [10.0, 60.0, 100.0, 95.0, 85.0, 70.0],
        [50.0, 40.0, 30.0, 20.0],
        [10.0, 20.0, 40.0, 79.0, 150.0, 130.0],
    ],
)
@pytest.mark.parametrize("axis", ["batch_size", "concurrency"])
def test_nothing_advises_to_go_beyond_the_peak_of_a_falling_series(axis, fallen):
    rates = np.array(fallen)
    (one,) = series(table(2.0 ** np.arange(len(rates)), rates, sem=rates * 0.01, axis=axis))
    (fall,) = [item for item in one.findings if item.id == "falls-after-peak"]
    assert not any("larger" in item.advice for item in one.findings)
    assert "scan larger levels" not in saturation_text((one,))
    if axis == "batch_size":
        # a maximum below a measured rate is told as what it is
        assert one.batch.t_max.value < rates.max()
        assert "poor-fit" in ids(one)
        assert "T_max" not in saturation_text((one,))
        assert json.loads(saturation_json((one,)))["series"][0]["batch"]["t_max"]["value"] > 0
    else:
        assert one.knee.n <= fall.figures["peak_at"]
        assert one.jobs_per_device <= fall.figures["peak_at"]


@pytest.mark.parametrize("axis", ["batch_size", "concurrency", "processes"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_short_series(axis, count):
    level = 2.0 ** np.arange(count)
    (one,) = series(table(level, batch_truth(level, 100, 3, 1), axis=axis))
    assert one.recommended is not None
    assert one.axis == axis
    text = msgspec.json.encode(one)
    assert b"Infinity" not in text
    assert b"NaN" not in text


def test_constant_throughput():
    (one,) = series(table(BATCHES, np.full(10, 50.0)))
    assert one.recommended.at == 4.0
    assert one.step is None
    assert one.batch.t_max.value == pytest.approx(50, rel=0.02)


def test_repeated_levels_are_averaged_and_keys_split():
    (one, other) = series(
        table(
            [1, 1, 2, 1, 2], [10, 12, 20, 5, 6], sem=[1, 1, 1, 1, 1], keys=["a", "a", "a", "b", "b"]
        )
    )
    assert (one.key, one.levels, one.throughput) == ({"device": "a"}, (1.0, 2.0), (11.0, 20.0))
    assert one.throughput_sem[0] == pytest.approx(math.sqrt(2) / 2)
    assert other.throughput == (5.0, 6.0)
    assert other.latency_ms == (None, None)


def test_a_step_next_to_a_leak_is_the_measurement():
    truth = batch_truth(BATCHES, 25_000, 40, 1.5)
    stepped = truth * np.where(np.arange(10) >= 3, 1.5, 1.0)
    clean = {
        "sem": stepped * 0.002,
        "latency": BATCHES / stepped * 1e3,
        "latency_sem": BATCHES / stepped * 2,
    }
    assert series(table(BATCHES, stepped, **clean))[0].step.at == 32
    leaky = np.arange(10) < 3
    leak = {
        "sem": np.where(leaky, stepped * 0.01, stepped * 0.002),
        "latency": np.where(leaky, 20, 1) * BATCHES / stepped * 1e3,
        "latency_sem": np.where(leaky, 0.94 * 20e3, 2.0) * BATCHES / stepped,
    }
    (one,) = series(table(BATCHES, stepped, **leak))
    assert levels_of(one, "warmup-leak") == {4, 8, 16}
    assert one.step is None


def test_published_recommendations_are_never_flagged(published):
    for one in published.values():
        wrong = levels_of(one, "warmup-leak") | levels_of(one, "missing-sync")
        assert set(one.flagged) == wrong
        assert one.recommended.at not in wrong
        assert one.recommended_note.startswith("left out: 4")


def test_flagged_levels_are_not_recommended():
    level, rate = np.array([1.0, 2, 4, 8]), np.array([10.0, 95, 94, 200])
    assert recommend(level, rate, flagged={8.0: "missing-sync"}).at == 2
    assert recommend(level, rate, flagged=dict.fromkeys(level.tolist(), "missing-sync")).at == 8
    assert recommend_within_latency(level, rate, np.ones(4), 5, {8.0}).at == 2
    (one,) = series(table(level, rate), flagged={(): {8.0: "missing-sync", 1.0: "warmup-leak"}})
    assert (one.flagged, one.recommended.at) == ((1.0, 8.0), 2)
    assert one.recommended_note == "left out: 1 (warmup-leak), 8 (missing-sync)"


def test_a_curve_is_not_fitted_through_flagged_levels():
    truth = batch_truth(BATCHES, 25_000, 40, 1.5)
    spoiled = truth * np.where(BATCHES < 16, 0.6, 1.0) * np.where(BATCHES > 1000, 1.4, 1.0)
    made = table(BATCHES, spoiled * noise(7, 10, 0.004), sem=spoiled * 0.004)
    wrong = {
        4.0: "warmup-leak",
        8.0: "warmup-leak",
        1024.0: "missing-sync",
        2048.0: "generator-bound",
    }
    (one,) = series(made, flagged={(): wrong})
    assert one.batch.t_max.low <= 25_000 <= one.batch.t_max.high
    assert one.batch.b_half.low <= 40 <= one.batch.b_half.high
    assert one.step is None
    assert one.fitted_note == (
        "fitted on 6 of 10 levels: left out 4, 8 (warmup-leak), 1024 (missing-sync), "
        "2048 (generator-bound)"
    )
    (blind,) = series(made, flagged={})
    assert blind.fitted_note == "" or "times" in blind.fitted_note
    assert blind.step is not None or not blind.batch.t_max.low <= 25_000 <= blind.batch.t_max.high


def test_flagged_levels_are_taken_where_too_few_others_are_left():
    truth = batch_truth(BATCHES, 25_000, 40, 1.5)
    wrong = dict.fromkeys(BATCHES[:7].tolist(), "warmup-leak")
    (one,) = series(
        table(BATCHES, truth * noise(8, 10, 0.004), sem=truth * 0.004), flagged={(): wrong}
    )
    assert one.batch is not None
    assert one.fitted_note.startswith(
        "fitted on all 10 levels, though 7 are flagged (4, 8, 16, 32, 64, 128, 256 (warmup-leak))"
    )


def test_a_level_that_drifted_is_kept_out_of_the_fit_and_may_be_recommended():
    truth = usl_truth(CLIENTS, 10, 0.1, 0.0)
    (one,) = series(
        table(CLIENTS, truth * noise(9, 9, 0.01), sem=truth * 0.01, axis="concurrency"),
        flagged={(): {256.0: "unstable-level"}},
    )
    assert one.fitted_note == "fitted on 8 of 9 levels: left out 256 (unstable-level)"
    assert (one.flagged, one.recommended_note) == ((), "")


def test_a_jump_near_the_end_leaves_a_curve_and_says_how():
    truth = batch_truth(BATCHES, 25_000, 40, 1.5) * np.where(BATCHES >= 1024, 1.4, 1.0)
    (one,) = series(table(BATCHES, truth * noise(10, 10, 0.004), sem=truth * 0.004))
    assert one.step.at == 1024
    assert one.batch.t_max.low <= 35_000 <= one.batch.t_max.high
    assert one.fitted_note.startswith("only 2 from the jump on: those before it enter times 1.4")


def test_a_jump_at_the_last_level_is_said_to_be_doubtful():
    truth = batch_truth(BATCHES, 25_000, 40, 1.5) * np.where(BATCHES >= 2048, 1.4, 1.0)
    (one,) = series(table(BATCHES, truth * noise(11, 10, 0.004), sem=truth * 0.004))
    (said,) = [item.message for item in one.findings if item.id == "step"]
    assert one.step.at == 2048
    assert said.endswith(
        "at 2048; with a single level from there on it may also be an odd measurement: "
        "measure more levels"
    )


def test_levels_that_overlap_the_best_one():
    level, rate, half = (
        np.array([1.0, 2, 4, 8]),
        np.array([10.0, 95, 94, 99]),
        np.array([1.0, 3, np.nan, 3]),
    )
    assert indistinct(level, rate, rate - half, rate + half) == (2.0,)
    assert indistinct(level, rate, rate - half, rate + half, {8.0}) == ()
    assert indistinct(level, rate, np.full(4, np.nan), np.full(4, np.nan)) == ()


def test_recommended_points():
    level, rate = np.array([1.0, 2, 4, 8]), np.array([10.0, 95, 94, 99])
    assert recommend(level, rate).at == 2
    latency = np.array([1.0, 2, 3, 10])
    assert recommend_within_latency(level, rate, latency, 5).at == 2
    assert recommend_within_latency(level, rate, latency, 20).at == 8
    assert recommend_within_latency(level, rate, latency, 0.5) is None
    assert recommend_within_latency(level, rate, np.array([np.nan, 2, 3, 10]), 1.5) is None


def test_a_series_that_falls_to_hardly_anything_falls_after_its_peak():
    (found,) = series(table(range(1, 9), [1, 2, 3, 4, 5, 6, 1e20, 1e-20], axis="concurrency"))
    (fall,) = [one for one in found.findings if one.id == "falls-after-peak"]
    assert fall.figures["drop_share"] == 1


@pytest.mark.slow
def test_every_series_of_a_file_is_fitted(tmp_path):
    """As many as one file may have."""
    levels = [1, 2, 4, 8, 16, 32, 64]
    path = tmp_path / "many.csv"
    path.write_text(
        "device,batch_size,throughput\n"
        + "".join(f"device {n},{x},{100 * x / (x + 8)}\n" for n in range(40) for x in levels)
    )
    found = series(read_scan_csv(path))
    assert len(found) == 40
    assert all(one.batch is not None and one.batch.t_max.value for one in found)
