"""The scan of a model's settings: its design, its servers, and what a search asks for."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from profharness.cli import Rest
from profharness.cli.run import build_request
from profharness.errors import UsageError
from profharness.node.probe import Environment
from profharness.options.axes import gather
from profharness.rundir.executions.records import ExecutionRecord
from profharness.rundir.levels import Level, LevelResult
from profharness.rundir.manifest import Manifest, PointRecord, ScanRecord
from profharness.rundir.paths import RunDir
from profharness.scans import create
from profharness.scans.contract import Point, PointOutput, key_of
from profharness.scans.searched import earlier_points
from profharness.scans.settings_scan import SettingsScan

NO_REST = Rest((), given=False)


def scan_of(*axes: str, **flags: object) -> SettingsScan:
    flags = {"via": "triton", "axes": gather(axes), **flags}
    found = create(build_request("particlenet", flags, NO_REST), Environment())
    assert isinstance(found, SettingsScan)
    return found


def measured(scan: SettingsScan, point: Point, rate: float, p99: float = 5.0) -> PointRecord:
    level = Level(window_start_ns=0, window_end_ns=10**9, requests=100)
    result = LevelResult(throughput=rate, percentiles_ms={"p50": p99 / 2, "p99": p99})
    return scan.result(point, "bare", PointOutput(ok=True, level=level, result=result))


def failed(scan: SettingsScan, point: Point) -> PointRecord:
    return scan.result(point, "bare", PointOutput(ok=False, error="out of memory"))


def test_each_combination_is_a_level_and_each_server_setting_a_server() -> None:
    scan = scan_of("instances=1,2", "queue-delay-us=0,500", "concurrency=1,4", repeats=2)
    assert scan.backends == (
        "torch@instances1-queue-delay-us0",
        "torch@instances1-queue-delay-us500",
        "torch@instances2-queue-delay-us0",
        "torch@instances2-queue-delay-us500",
    )
    assert len(scan.ids) == 8
    assert len(scan.points) == scan.executions == 16
    server = scan.server("torch@instances2-queue-delay-us500").worker
    assert server is not None
    assert (server.settings["instances"], server.settings["queue_delay_us"]) == (2, 500)


def test_a_round_starts_each_server_once_and_measures_each_setting_once() -> None:
    scan = scan_of("instances=1,2,4", "concurrency=1,2,4,8", repeats=3)
    for number in range(3):
        turn = [point for point in scan.points if point.repeat == number]
        assert sorted(point.id for point in turn) == sorted(scan.ids)
        labels = [point.backend for point in turn]
        assert sum(one != other for one, other in itertools.pairwise(labels)) == 2
    assert 7 <= scan.starts <= 9  # the last server of a round may be the first of the next


def test_settings_whose_names_would_be_one_have_a_server_each() -> None:
    name = "x" * 80  # of which a folder's name has the first part alone
    scan = scan_of(f"shape:{name}=2,3", "batch=1,4")
    assert len(set(scan.backends)) == 2
    assert len(scan.ids) == 4
    shapes = [scan.workload(label).settings["shapes"] for label in scan.backends]
    assert shapes == [{name: [2]}, {name: [3]}]


def test_backends_are_an_axis() -> None:
    scan = scan_of("backend=torch,onnxruntime", "batch=1,8")
    assert scan.backends == ("torch", "onnxruntime")
    assert {point.batch_size for point in scan.points} == {1, 8}


def test_records_have_the_values_and_what_a_search_must_know() -> None:
    scan = scan_of("instances=1,2", "backend=torch,onnxruntime")
    point = scan.points[0]
    record = measured(scan, point, 120.0)
    assert record.parameters == scan.parameters(point)
    assert set(record.parameters) == {"instances", "backend"}
    assert record.execution == ExecutionRecord(
        wall_ns=10**9, rate=120.0, unit="items", items=100, values={"p99_ms": 5.0}
    )


def test_a_level_in_a_storm_of_errors_failed() -> None:
    scan = scan_of("instances=1,2")
    level = Level(window_start_ns=0, window_end_ns=10**9, requests=100, failed=30)
    output = PointOutput(
        ok=True, level=level, result=LevelResult(throughput=70.0, failed_share=0.3)
    )
    record = scan.result(scan.points[0], "bare", output)
    assert record.state == "failed"
    assert "30 %" in record.error
    assert record.execution is None


def test_a_setting_that_failed_is_not_measured_again() -> None:
    scan = scan_of("instances=1,2", repeats=3)
    first = scan.next([])
    assert first is not None
    done = [failed(scan, first)]
    ids = set()
    while (point := scan.next(done)) is not None:
        ids.add(point.id)
        done.append(measured(scan, point, 10.0))
    assert first.id not in ids
    assert len(done) == 1 + 3


def test_a_search_measures_its_levels_and_its_winner_again() -> None:
    scan = scan_of("instances=1,2,4", "concurrency=1,2,4,8", search=9)
    rates = {name: 10.0 * at for at, name in enumerate(scan.ids, 1)}
    done: list[PointRecord] = []
    while (point := scan.next(done)) is not None:
        done.append(measured(scan, point, rates[point.id]))
    assert len(done) == 9
    best = max(done, key=lambda record: rates[record.id]).id
    assert [record.id for record in done].count(best) >= 2
    assert len({key_of(record) for record in done}) == 9


def test_a_search_asks_no_more_time_of_levels_that_are_far_from_the_best() -> None:
    scan = scan_of("instances=1,2,4", "concurrency=1,2,4,8", search=9)
    first = scan.next([])
    assert first is not None
    assert first.params["least_items_per_s"] is None
    second = scan.next([measured(scan, first, 100.0)])
    assert second is not None
    assert second.params["least_items_per_s"] == pytest.approx(60.0)


def test_what_misses_the_limit_is_no_best_to_compare_with() -> None:
    scan = scan_of("instances=1,2,4", "concurrency=1,2,4,8", search=9, latency_limit="p99=4ms")
    first = scan.next([])
    assert first is not None
    second = scan.next([measured(scan, first, 100.0, p99=5.0)])
    assert second is not None
    assert second.params["least_items_per_s"] is None


def test_a_search_finds_the_best_that_keeps_the_limit() -> None:
    scan = scan_of("instances=1,2,4", "concurrency=1,2,4,8", search=10, latency_limit="p99=20ms")
    done: list[PointRecord] = []
    while (point := scan.next(done)) is not None:
        values = scan.parameters(point)
        instances, clients = int(values["instances"]), int(values["concurrency"])
        busy = min(clients, instances)
        done.append(measured(scan, point, 100.0 * busy, p99=8.0 * clients / busy))
    kept = [record for record in done if record.execution.values["p99_ms"] <= 20.0]
    assert max(record.execution.rate for record in kept) == 400.0
    (first, *_), *_ = [
        scan.profiled(label, done) for label in scan.backends if scan.profiled(label, done)
    ]
    assert first.id in scan.ids


def test_layers_record_the_first_the_recommended_and_the_best() -> None:
    scan = scan_of("instances=1,2", "concurrency=1,4")
    done = [
        measured(scan, scan.variants[name].point(scan.services[scan.variants[name].label]), rate)
        for name, rate in zip(scan.ids, (10.0, 96.0, 20.0, 100.0), strict=True)
    ]
    chosen = [point.id for label in scan.backends for point in scan.profiled(label, done)]
    assert chosen == [scan.ids[0], scan.ids[1], scan.ids[3]]
    assert all(not scan.profiled(label) for label in scan.backends)


def test_one_setting_is_one_model_under_one_load() -> None:
    with pytest.raises(UsageError, match="one model under one backend"):
        scan_of("instances=1,2", backend="torch,onnxruntime")
    with pytest.raises(UsageError, match="under one load"):
        scan_of("instances=1,2", concurrency="1,2")


def test_models_that_share_a_device_are_one_setting_together() -> None:
    scan = scan_of("instances=1,2", backend="torch,onnxruntime", together=True)
    assert scan.backends == ("together@instances1", "together@instances2")
    server = scan.server("together@instances2").worker
    assert server is not None
    assert [one["backend"] for one in server.settings["models"]] == ["torch", "onnxruntime"]


def a_run(tmp_path: Path, scan: SettingsScan, records: list[PointRecord]) -> Path:
    run = RunDir.create(tmp_path / "earlier")
    run.write_manifest(
        Manifest(
            id="earlier",
            created="2026-01-01T00:00:00Z",
            profharness="0",
            kind="scan",
            argv=(),
            points=tuple(records),
            scan=ScanRecord(name="x", settings={"axes": {}}),
        )
    )
    return run.root


def test_a_warm_start_knows_what_an_earlier_run_measured(tmp_path: Path) -> None:
    old = scan_of("instances=1,2", "concurrency=1,4", repeats=1)
    rates = dict(zip(old.ids, (10.0, 20.0, 30.0, 400.0), strict=True))
    records = [measured(old, point, rates[point.id]) for point in old.points]
    run = a_run(tmp_path, old, records)
    scan = scan_of("instances=1,2,4", "concurrency=1,4", search=4, warm_start=(str(run),))
    assert len(scan.known) == 4
    first = scan.next([])
    assert first is not None
    # the start is spent: what looks best by the earlier run, or beyond it, is measured first
    assert int(scan.parameters(first)["instances"]) >= 2
    assert scan.parameters(first)["concurrency"] == 4


def test_a_run_of_other_axes_is_no_warm_start(tmp_path: Path) -> None:
    run = a_run(tmp_path, scan_of("instances=1,2"), [])
    with pytest.raises(UsageError, match="no point of this grid"):
        scan_of("instances=1,2", search=4, warm_start=(str(run),))
    with pytest.raises(UsageError, match="--warm-start"):
        scan_of("instances=1,2", search=4, warm_start=(str(tmp_path / "none"),))


def test_earlier_points_are_less_certain(tmp_path: Path) -> None:
    scan = scan_of("instances=1,2", repeats=1)
    run = a_run(tmp_path, scan, [measured(scan, point, 10.0) for point in scan.points])
    known = earlier_points([str(run)], scan.axes, ())
    assert all(one.sigma >= 0.1 for one in known)
    assert {one.place for one in known} == {0, 1}


def direct(*axes: str, **flags: object) -> SettingsScan:
    flags = {"axes": gather(axes), **flags}
    found = create(build_request("particlenet", flags, NO_REST), Environment())
    assert isinstance(found, SettingsScan)
    return found


def test_without_a_server_each_setting_has_a_worker() -> None:
    scan = direct("autocast=off,bf16", "batch=1,8", repeats=2, backend="torch")
    assert scan.backends == ("torch@autocastoff", "torch@autocastbf16")
    assert scan.server("torch@autocastbf16") is None
    worker = scan.workload("torch@autocastbf16")
    assert worker.script.endswith("torch_worker.py")
    assert (worker.settings["autocast"], worker.settings["backend"]) == ("bf16", "torch")
    point = next(one for one in scan.points if one.id == "torch@autocastbf16-b8")
    assert (point.batch_size, point.params["batch_size"], point.params["backend"]) == (
        8,
        8,
        "torch",
    )
    assert scan.executions == 8


def test_trials_are_the_rate_of_a_setting() -> None:
    scan = direct("threads=1,2", "batch=1,8", backend="torch")
    point = next(one for one in scan.points if one.batch_size == 8)
    output = PointOutput(ok=True, trials_ns=(10**8, 10**8), starts_ns=(0, 10**8), items=8)
    record = scan.result(point, "bare", output)
    assert record.execution is not None
    assert record.execution.rate == pytest.approx(80.0)
    assert (record.execution.items, record.execution.wall_ns) == (16, 2 * 10**8)
    assert set(record.parameters) == {"threads", "batch"}


def test_a_direct_setting_is_of_one_backend_and_one_batch() -> None:
    with pytest.raises(UsageError, match="one model under one backend"):
        direct("threads=1,2", backend="torch,onnxruntime")
    with pytest.raises(UsageError, match="under one load"):
        direct("threads=1,2", backend="torch", batch_sizes="1,8")
