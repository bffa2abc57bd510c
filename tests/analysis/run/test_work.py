from __future__ import annotations

import msgspec
import numpy as np
import pytest

from profharness.analysis.kernels.facts import Yardstick
from profharness.analysis.records import Figure
from profharness.analysis.run.summary import summarise_run
from profharness.analysis.run.work import ceilings_of, work_figures
from profharness.node.ceilings import Calibration
from profharness.rundir.manifest import DeviceRecord, NodeRecord, PointRecord
from profharness.stats.throughput import summarise_trials
from tests.analysis.run import run_scene

CPU = Calibration(
    created="2026-01-01",
    kind="cpu",
    name="CPU",
    compute_units=4,
    gemm_flops={"fp32": 1e10, "bf16": 5e10},
    copy_bytes_per_s=1e10,
)
STATS = summarise_trials(
    np.full(20, 10_000_000, np.int64), np.full(20, 8, np.int64), "made up"
)  # 800 items/s


def point(**fields):
    return PointRecord(
        **(
            {
                "id": "torch-b8",
                "pass_name": "bare",
                "host": "node",
                "device": "cpu",
                "items_per_trial": 8,
                "notes": {
                    "flops_per_item": "1e6",
                    "weight_bytes": "8000",
                    "input_bytes_per_item": "1000",
                },
            }
            | fields
        )
    )


def test_a_point_on_the_cpu_against_its_calibration():
    roofs = ceilings_of(run_scene.manifest(), point(), Yardstick((CPU,)))
    found = work_figures(point(), STATS, "bare pass", roofs, {})
    assert found["achieved_flops"].value == pytest.approx(800e6)
    assert found["mfu"].value == found["flops_of_ceiling"].value == pytest.approx(0.08)
    assert "calibrated GEMM" in found["mfu"].note
    assert found["achieved_bandwidth"].value == pytest.approx(
        800 * 2000
    )  # weights once per trial of 8
    assert found["bandwidth_share"].value == pytest.approx(1.6e6 / 1e10)
    assert found["operational_intensity"].value == pytest.approx(1e6 / 2000)
    assert found["roofline_share"].value == pytest.approx(
        0.08
    )  # at 500 FLOP/B the compute roof is the lower one


def test_types_have_ceilings_of_their_own():
    record = point(notes={**point().notes, "dtype": "bf16"})
    found = work_figures(
        record, STATS, "", ceilings_of(run_scene.manifest(), record, Yardstick((CPU,))), {}
    )
    assert found["flops_of_ceiling"].value == pytest.approx(800e6 / 5e10)


def test_without_calibration_a_cpu_has_no_ceiling():
    found = work_figures(
        point(), STATS, "", ceilings_of(run_scene.manifest(), point(), Yardstick()), {}
    )
    assert found["achieved_flops"].value == pytest.approx(800e6)
    for name in ("mfu", "bandwidth_share", "ceiling_flops", "ceiling_bandwidth"):
        assert found[name].value is None
        assert "calibrate" in found[name].needs


def test_a_calibration_with_other_threads_is_of_another_device():
    node = NodeRecord(
        host="node", cpu_model="CPU", cpus_allowed=(0, 1, 2, 3), variables={"OMP_NUM_THREADS": "2"}
    )
    roofs = ceilings_of(run_scene.manifest(nodes=(node,)), point(), Yardstick((CPU,)))
    assert roofs.calibration is None
    said = (
        "a calibration of this CPU with 2 threads (there is one with 4): "
        "`profharness calibrate --threads 2`"
    )
    figures = work_figures(point(), STATS, "", roofs, {})
    assert {
        figures[name].needs
        for name in ("mfu", "bandwidth_share", "ceiling_flops", "ceiling_bandwidth")
    } == {said}


def test_the_threads_that_a_framework_says_go_before_the_cores_that_it_may_use():
    """Left alone, torch takes one thread per physical core."""
    node = NodeRecord(
        host="node",
        cpu_model="CPU",
        cpus_allowed=tuple(range(8)),
        variables={"OMP_NUM_THREADS": "2"},
    )
    record = point(notes={**point().notes, "threads": "4"})
    assert (
        ceilings_of(run_scene.manifest(nodes=(node,)), record, Yardstick((CPU,))).calibration == CPU
    )


@pytest.mark.parametrize(
    ("allowed", "known", "said"),
    [
        ((), (), "a calibration of this CPU: `profharness calibrate --device cpu`"),
        ((0,), (), "a calibration of this CPU with 1 thread: `profharness calibrate --threads 1`"),
        (
            (0, 1),
            (8, 4),
            (
                "a calibration of this CPU with 2 threads (there is one with 4 and 8): "
                "`profharness calibrate --threads 2`"
            ),
        ),
    ],
)
def test_what_a_cpu_needs_is_said_with_the_command(allowed, known, said):
    node = NodeRecord(host="node", cpu_model="CPU", cpus_allowed=allowed)
    every = (
        *(msgspec.structs.replace(CPU, compute_units=units) for units in known),
        msgspec.structs.replace(CPU, name="Another", compute_units=16),
    )
    assert ceilings_of(run_scene.manifest(nodes=(node,)), point(), Yardstick(every)).needs == said


def test_a_calibration_that_says_no_number_of_threads_fits_any():
    node = NodeRecord(host="node", cpu_model="CPU", cpus_allowed=(0,))
    old = msgspec.structs.replace(CPU, compute_units=None)
    assert (
        ceilings_of(run_scene.manifest(nodes=(node,)), point(), Yardstick((old,))).calibration
        == old
    )


def test_an_accelerator_by_its_number_and_clock():
    devices = (
        DeviceRecord(index=0, kind="cpu", name="cpu"),
        DeviceRecord(index=0, kind="cuda", name="Tesla T4"),
        DeviceRecord(index=1, kind="cuda", name="NVIDIA H200", architecture="sm_90"),
    )
    manifest = run_scene.manifest(nodes=(NodeRecord(host="node", devices=devices),))
    record = point(device="cuda:1")
    roofs = ceilings_of(manifest, record, Yardstick())
    assert roofs.device.model.name == "H200"
    found = work_figures(record, STATS, "", roofs, {"clock_gpu": Figure(value=990.0, unit="MHz")})
    assert found["mfu"].value == pytest.approx(800e6 / 66.9e12, rel=1e-3)
    assert found["mfu_at_clock"].value == pytest.approx(2 * found["mfu"].value)
    assert ceilings_of(manifest, point(device="cuda:5"), Yardstick()) is None


def test_a_traces_own_figures_stay_where_the_point_has_none():
    measured = {
        "achieved_flops": Figure(value=5.0, unit="FLOP/s"),
        "mfu": Figure(value=0.5, unit="share"),
    }
    found = work_figures(point(notes={}), STATS, "", None, measured)
    assert "achieved_flops" not in found
    assert "mfu" not in found
    assert found["bandwidth_share"].value is None


def test_a_run_has_ceilings_for_its_roofline():
    builder, _ = run_scene.scan_trace(kernels=False)
    manifest = run_scene.manifest()
    points = tuple(
        msgspec.structs.replace(
            one, device="cpu", notes={**one.notes, "input_bytes_per_item": "5000"}
        )
        for one in manifest.points
    )
    summary = summarise_run(
        msgspec.structs.replace(manifest, points=points), builder.trace(), "run", (CPU,)
    )
    assert summary.metrics["ceiling_flops"].value == 1e10
    first = summary.points[0].metrics
    assert first["operational_intensity"].value == pytest.approx(2e6 / 5000)
    assert first["flops_of_ceiling"].value == pytest.approx(first["achieved_flops"].value / 1e10)


def test_busy_and_fill_of_the_bare_pass_keep_their_bounds_and_above_one_is_a_finding():
    builder, _ = run_scene.scan_trace()
    summary = summarise_run(run_scene.manifest(), builder.trace(), "run")
    # 40 % of a traced trial, which lasts 1.25 times a bare one
    assert summary.points[0].metrics["busy_bare"].value == pytest.approx(0.5, rel=0.02)
    assert not [one for one in summary.findings if one.id == "kernels-differ"]
