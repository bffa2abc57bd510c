"""What else went on while a calibration measured: what is seen of it, and what it makes doubtful."""

from __future__ import annotations

import os

import msgspec
import numpy as np
import pytest

from profharness.cli.calibrate import lines_of
from profharness.node.ceilings import Calibration, decode, kept_of, path_of, store, stored
from profharness.stats.calibration_watch import completed, judged, watched
from profharness.stats.intervals import window
from profharness.stats.streams import Stream
from profharness.trace.model import Samples

S = 1_000_000_000
CORES = os.cpu_count() or 1
GPU = "0000:03:00.0"
SOUND = Calibration(
    created="2026-01-01T00:00:00+00:00",
    kind="cpu",
    name="A CPU",
    gemm_flops={"fp32": 1e11, "bf16": 2e11},
    copy_bytes_per_s=1e10,
    rounds={"fp32": (0.9e11, 1e11, 0.95e11), "bf16": (2e11,), "copy": (1e10, 0.99e10, 1e10)},
)


def stream(metric: str, before: float, during: float, identity: str = "") -> Stream:
    """A value from 0 s to 10 s, another until 20 s: the calibration measures in the latter."""
    at = np.arange(0, 20 * S, S // 10)
    value = np.where(at < 10 * S, before, during)
    samples = Samples.build(len(at), at_ns=at, until_ns=at + S // 10, value=value)
    return Stream(metric, "0" if identity else "", samples, identity)


def seen(*every: Stream, own_cores: float = 2.0, kind: str = "cpu") -> dict[str, float]:
    span = window(10 * S, 20 * S)
    return watched(every, span, own_cores, (GPU,), on_cpu=kind == "cpu")


def test_only_what_others_did_while_it_measured_counts():
    found = seen(stream("cpu_node", 64.0, 5.5), stream("pressure_cpu", 1.0, 0.02))
    assert found == {"other_cores": pytest.approx(3.5), "pressure_cpu": pytest.approx(0.02)}


def test_of_an_accelerator_its_own_processes_and_clock_count():
    every = (
        stream("gpu_processes", 0, 3, GPU),
        stream("gpu_processes", 0, 9, "0000:83:00.0"),
        stream("throttle_thermal", 0, 0.4, f"{GPU}/1"),
        stream("pressure_cpu", 0, 0.9),
    )
    found = seen(*every, kind="rocm")
    assert found == {
        "other_processes": pytest.approx(2),
        "throttle_thermal": pytest.approx(0.4),
    }


@pytest.mark.parametrize(
    ("kind", "what", "said"),
    [
        ("cpu", {"other_cores": 0.5 * CORES}, "other programs kept"),
        ("cpu", {"pressure_cpu": 0.6}, "tasks waited for a core 60.0 % of the time"),
        ("cpu", {"cpu_throttled": 0.3}, "a CPU quota stopped it 30.0 %"),
        ("rocm", {"other_processes": 1.0}, "1 other processes used the device"),
        ("cuda", {"throttle_external": 0.2}, "clock was held down 20.0 % of the time"),
    ],
)
def test_what_spoils_every_figure(kind: str, what: dict[str, float], said: str):
    found = judged(msgspec.structs.replace(SOUND, kind=kind), what)
    assert found.watched == what
    assert [doubt.figure for doubt in found.doubts] == ["fp32", "bf16", "copy"]
    assert all(said in doubt.why for doubt in found.doubts)
    assert (found.believed("fp32"), found.believed("copy")) == (None, None)
    assert found.gemm_flops == SOUND.gemm_flops, "what was measured stays"


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("cpu", {}),
        ("cpu", {"other_cores": 0.05 * CORES, "pressure_cpu": 0.2, "cpu_throttled": 0.01}),
        ("rocm", {"other_processes": 0.0, "throttle_thermal": 0.05, "other_cores": 1.0 * CORES}),
    ],
)
def test_a_quiet_node_leaves_no_doubt(kind: str, what: dict[str, float]):
    found = judged(msgspec.structs.replace(SOUND, kind=kind), what)
    assert found.doubts == ()
    assert found.believed("fp32") == 1e11


def test_a_figure_whose_best_round_stands_alone_is_doubted():
    alone = msgspec.structs.replace(SOUND, rounds={**SOUND.rounds, "fp32": (0.6e11, 1e11, 0.7e11)})
    found = judged(alone, {})
    (doubt,) = found.doubts
    assert doubt.figure == "fp32"
    assert doubt.why == "the median of its 3 rounds lies 30.0 % below the best of them"
    assert found.believed("bf16") == 2e11
    assert "doubtful   fp32: the median" in "\n".join(lines_of(found))


def test_doubtful_figures_do_not_take_the_place_of_sound_ones(tmp_path):
    slow = msgspec.structs.replace(
        SOUND, gemm_flops={"fp32": 0.3e11, "bf16": 1.9e11}, copy_bytes_per_s=0.4e10
    )
    doubted = slow.doubted("fp32", "others ran").doubted("copy", "others ran")
    assert kept_of(doubted, tmp_path) is None
    store(SOUND, tmp_path)
    assert kept_of(msgspec.structs.replace(doubted, name="Another"), tmp_path) is None
    assert kept_of(doubted, tmp_path) == SOUND
    found = completed(doubted, SOUND)
    assert (found.gemm_flops, found.copy_bytes_per_s) == ({"fp32": 1e11, "bf16": 1.9e11}, 1e10)
    assert (found.doubts, found.rounds["fp32"]) == ((), SOUND.rounds["fp32"])


@pytest.mark.parametrize(
    "earlier",
    [
        msgspec.structs.replace(SOUND, gemm_flops={"fp32": 0.28e11}),  # what it did is proven
        msgspec.structs.replace(SOUND, rounds={}),  # nothing watched it
        SOUND.doubted("fp32", "others ran, too"),
        msgspec.structs.replace(SOUND, gemm_flops={}),
    ],
)
def test_a_bad_earlier_figure_is_not_kept(earlier):
    doubted = SOUND.doubted("fp32", "others ran")
    assert completed(doubted, earlier) == doubted


def test_a_file_of_before_has_no_doubts(tmp_path):
    """As it was written until now: none of the newer fields."""
    text = (
        '{"schema":1,"created":"2026-01-01T00:00:00+00:00","kind":"cpu","name":"A CPU",'
        '"gemm_flops":{"fp32":1e11},"copy_bytes_per_s":1e10,"notes":["fp8: no kernel"]}'
    )
    path = path_of(SOUND, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (old,) = stored(tmp_path)
    assert decode(f"[{text}]".encode(), "calibration.json") == (old,)
    assert (old.doubts, old.rounds, old.watched) == ((), {}, {})
    assert old.believed("fp32") == 1e11
