from __future__ import annotations

from pathlib import Path

import pytest

from profharness.cli import Rest
from profharness.cli.run import build_request
from profharness.errors import UsageError
from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.rundir.levels import Level, LevelResult
from profharness.rundir.manifest import PointRecord
from profharness.scans import create
from profharness.scans.contract import Point, Scan, key_of

NO_REST = Rest((), given=False)


def scan_of(scan: str | None = None, **flags: object) -> Scan:
    return create(build_request(scan, flags, NO_REST), Environment())


def keys(points: tuple[Point, ...]) -> list[str]:
    return [point.key for point in points]


def test_a_sweep_is_every_target_batch_and_load_with_repeats_at_each_servers_end() -> None:
    scan = scan_of(via="triton", backend="torch,onnxruntime", batch_sizes="1,4", concurrency="1,8")
    own = ["b1-c1", "b1-c8", "b4-c1", "b4-c8", "b1-c1~1", "b4-c8~1"]
    assert keys(scan.points) == [
        f"{backend}-{word}" for backend in ("torch", "onnxruntime") for word in own
    ]
    assert not scan.adaptive
    params = scan.points[3].params
    assert (params["mode"], params["concurrency"], params["rate"], params["batch_size"]) == (
        "closed",
        8,
        None,
        4,
    )
    assert keys(scan.profiled("torch")) == [f"torch-{word}" for word in own[:4]]
    assert scan.profiled("torch")[0].params["seconds"] == 0.5


def test_rates_are_open_loops() -> None:
    scan = scan_of(via="triton", rate="10,2.5", arrivals="constant")
    assert keys(scan.points)[:2] == ["torch-b1-r2.5", "torch-b1-r10"]
    assert scan.points[0].params["mode"] == "open"
    assert scan.points[0].params["arrivals"] == "constant"


def test_the_next_point_is_the_first_that_has_no_record() -> None:
    scan = scan_of(via="triton", concurrency="1,2")
    done = [
        PointRecord(id="torch-b1-c1", pass_name="bare"),
        PointRecord(id="torch-b1-c1", pass_name="bare", repeat=1),
    ]
    found = scan.next(done)
    assert found is not None
    assert found.key == "torch-b1-c2"


def test_several_models_each_take_the_backends_that_can_run_them(tmp_path: Path) -> None:
    onnx, script = tmp_path / "a.onnx", tmp_path / "b.pt"
    onnx.touch()
    script.touch()
    scan = scan_of(
        via="triton",
        model=f"{onnx},{script},particlenet",
        backend="torch,onnxruntime",
        concurrency="1,2",
    )
    assert scan.backends == (
        "onnxruntime@a",
        "torch@b",
        "torch@particlenet",
        "onnxruntime@particlenet",
    )
    server = scan.server("torch@b")
    assert server is not None
    assert server.worker is not None
    assert (server.worker.settings["backend"], server.worker.settings["model"]) == (
        "torch",
        str(script),
    )
    with pytest.raises(UsageError, match=r"cannot run .*b\.pt"):
        scan_of(via="triton", model=f"{onnx},{script}", backend="onnxruntime")


def test_two_models_of_one_name_stay_apart(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.onnx").touch()
    scan = scan_of(via="triton", model=f"{tmp_path}/x/m.onnx,{tmp_path}/y/m.onnx")
    assert len(set(scan.backends)) == 2


def test_a_server_elsewhere_is_only_described() -> None:
    scan = scan_of(url="h1:8001,h2:8001", model="deepmet")
    server = scan.server("server")
    assert server is not None
    assert (server.urls, server.worker, server.model) == (("h1:8001", "h2:8001"), None, "deepmet")
    command = scan_of(
        server_command="tritonserver --model-repository 'my models'",
        ready="http://127.0.0.1:8000/v2/health/ready",
        model="m",
    ).server("server")
    assert command is not None
    assert command.command == ("tritonserver", "--model-repository", "my models")


@pytest.mark.parametrize(
    ("scan", "flags", "words"),
    [
        (None, {"concurrency": "1,2"}, "--concurrency is for served scans"),
        (None, {"rate": "5"}, "--rate is for served scans"),
        (None, {"latency_limit": "p99=5ms"}, "--latency-limit is for served scans"),
        (
            None,
            {"via": "triton", "concurrency": "1", "rate": "5"},
            "either a closed loop or an open one",
        ),
        (None, {"via": "triton", "trials": 5}, "--trials is for scans without a server"),
        (None, {"via": "triton", "isolate": True}, "--isolate is for scans without a server"),
        (None, {"via": "triton", "rate": "5", "think_ms": 1.0}, "no clients that think"),
        (None, {"via": "triton", "rate": "0"}, "positive rates"),
        (None, {"via": "triton", "arrivals": "uniform", "rate": "5"}, "no file uniform"),
        (None, {"via": "tritn"}, "one of direct, triton, perf-analyzer"),
        (None, {"via": "perf-analyzer", "think_ms": 1.0}, "neither think time"),
        (None, {"url": "h:1", "instances": 2}, "--instances is for a server that"),
        (None, {"url": "h:1", "profile": "torch"}, "cannot be put under a layer"),
        (None, {"url": "h:1", "server_command": "x", "ready": "http://h"}, "one server at a time"),
        (None, {"server_command": "x"}, "needs --ready"),
        (None, {"via": "triton", "ready": "http://h"}, "goes with --server-command"),
        (None, {"via": "triton", "latency_limit": "20ms"}, "write p99=20ms"),
        (None, {"via": "triton", "latency_limit": "p42=20ms"}, "p50, p90"),
        (
            None,
            {"via": "triton", "batch_sizes": "1,64", "max_batch_size": 8},
            "more than the server takes",
        ),
        (None, {"via": "triton", "body": "x"}, "takes tensors"),
        ("saturation", {"rate": "5"}, "finds the rates"),
        ("saturation", {"concurrency": "4"}, "more than one level"),
        (None, {"model": f"particlenet,{__file__}"}, "takes one"),
        (None, {"model": "sleep:1ms"}, "no file sleep:1ms"),
        (None, {"via": "triton", "model": "particlenet,particlenet"}, "names one twice"),
        (None, {"via": "triton", "perf_analyzer_arg": ["-z"]}, "go with --via perf-analyzer"),
        (None, {"via": "perf-analyzer", "perf_analyzer_image": "x.sif"}, "no file x.sif"),
    ],
)
def test_wrong_combinations_are_one_sentence_with_the_way_out(
    scan: str | None, flags: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        scan_of(scan, **flags)
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint


def test_perf_analyzers_own_arguments_reach_it(tmp_path: Path) -> None:
    image = tmp_path / "sdk.sif"
    image.write_bytes(b"")
    settings = (
        scan_of(
            via="perf-analyzer",
            perf_analyzer_arg=["-z", "--percentile=95"],
            perf_analyzer_image=str(image),
        )
        .workload("torch")
        .settings
    )
    assert settings["perf_analyzer_args"] == ["-z", "--percentile=95"]
    assert settings["perf_analyzer_image"] == str(image)


def test_a_scan_file_may_ask_for_a_served_scan(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'scan = "saturation"\nmodel = "sleep:20ms"\nconcurrency = [1, 2, 4]\n'
        'latency_limit = "p99=60ms"\ntime = 2\n'
    )
    request = build_request(str(tmp_path / "s.toml"), {}, NO_REST)
    assert (request.scan, request.served, request.time) == ("saturation", True, 2.0)
    (tmp_path / "t.toml").write_text("concurrency = [1, 2]\n")
    with pytest.raises(UsageError, match=r"t\.toml: concurrency is for served scans"):
        build_request(str(tmp_path / "t.toml"), {}, NO_REST)


def measured(point: Point, throughput: float, failed: float = 0.0) -> PointRecord:
    level = Level(
        mode=point.mode or "closed",
        concurrency=point.concurrency,
        rate=point.rate,
        window_start_ns=0,
        window_end_ns=10**9,
    )
    return PointRecord(
        id=point.id,
        pass_name="bare",
        backend=point.backend,
        batch_size=point.batch_size,
        concurrency=point.concurrency,
        rate=point.rate,
        mode=point.mode,
        repeat=point.repeat,
        level=level,
        result=LevelResult(throughput=throughput, failed_share=failed),
    )


def all_of(scan: Scan, throughput: dict[str, float]) -> list[PointRecord]:
    """A whole saturation scan of servers whose throughput is limited, by target and batch."""
    done: list[PointRecord] = []
    while (point := scan.next(done)) is not None:
        top = throughput[f"{point.backend}-b{point.batch_size}"]
        rate = min(
            10.0 * (point.concurrency or 0)
            if point.rate is None
            else point.rate * (point.batch_size or 1),
            top,
        )
        done.append(measured(point, rate))
        assert len(done) < 100
    return done


def test_a_saturation_scan_searches_each_target_and_batch_then_checks_open_loops_and_repeats() -> (
    None
):
    scan = scan_of("saturation", backend="torch,onnxruntime", batch_sizes="1,8")
    assert scan.adaptive
    assert scan.points == ()
    done = all_of(
        scan, {"torch-b1": 40.0, "torch-b8": 160.0, "onnxruntime-b1": 80.0, "onnxruntime-b8": 20.0}
    )
    assert len({(record.backend, record.batch_size) for record in done}) == 4
    own = [
        key_of(record) for record in done if record.backend == "torch" and record.batch_size == 8
    ]
    # requests/s at 70, 80, 90 and 100 % of 160 items/s in batches of 8
    assert own[-5:] == [
        "torch-b8-r14",
        "torch-b8-r16",
        "torch-b8-r18",
        "torch-b8-r20",
        "torch-b8-c16~1",
    ]
    replayed = scan.profiled("torch", done)
    assert keys(replayed) == [
        key_of(record) for record in done if record.backend == "torch" and not record.repeat
    ]


def test_a_saturation_scan_stops_under_an_error_storm() -> None:
    scan = scan_of("saturation", model="sleep:20ms")
    done: list[PointRecord] = []
    while (point := scan.next(done)) is not None:
        assert len(done) < 30
        done.append(measured(point, 10.0, failed=1.0))
    assert [key_of(record) for record in done] == ["sleep-b1-c1"]


def test_jobs_of_several_clients_climb_in_steps_of_jobs() -> None:
    scan = scan_of("saturation", model="sleep:20ms", clients_per_job=4, think_ms=100.0)
    first = scan.next([])
    assert first is not None
    assert first.concurrency == 4
    assert first.params["think_ms"] == 100.0


def test_settings_come_back_from_a_manifest() -> None:
    import msgspec

    request = build_request("saturation", {"model": "sleep:20ms", "concurrency": "1..8"}, NO_REST)
    assert msgspec.convert(msgspec.to_builtins(request), Request) == request


def test_models_together_are_one_more_target_whose_server_has_all_of_them() -> None:
    scan = scan_of(
        via="triton",
        model="sleep:10ms,sleep:20ms",
        together=True,
        concurrency="1,2",
        device="cuda:0,cuda:1",
    )
    alone = ("sleep@sleep_10ms", "sleep@sleep_20ms")
    assert scan.backends == (*alone, "together", "spread")
    assert keys(scan.points)[-8:] == [
        f"{target}-b1-{level}"
        for target in ("together", "spread")
        for level in ("c1", "c2", "c1~1", "c2~1")
    ]
    for target, devices in (("together", ("cuda:0", "cuda:0")), ("spread", ("cuda:0", "cuda:1"))):
        server = scan.server(target)
        assert server is not None
        assert server.worker is not None
        served = server.worker.settings["models"]
        assert isinstance(served, list)
        assert [(one["name"], one["model"], one["device"]) for one in served] == [
            ("sleep.sleep_10ms", "sleep:10ms", devices[0]),
            ("sleep.sleep_20ms", "sleep:20ms", devices[1]),
        ]
    for label, device in zip(alone, ("cuda:0", "cuda:1"), strict=True):
        own = scan.server(label)
        assert own is not None
        assert own.worker is not None
        assert own.worker.settings["device"] == device, (
            "alone on the device that it has when they are spread"
        )
        assert scan.workload(label).settings["models"] == []
    assert scan.workload("together").settings["models"] == [
        ["sleep.sleep_10ms", alone[0]],
        ["sleep.sleep_20ms", alone[1]],
    ]


def test_one_model_under_two_backends_can_be_together() -> None:
    assert scan_of(
        via="triton", backend="torch,onnxruntime", together=True, concurrency="1,2"
    ).backends == ("torch", "onnxruntime", "together")


def test_a_list_of_devices_deals_out_the_instances_of_each_model() -> None:
    server = scan_of(via="triton", device="cuda:0,cuda:1", instances=2).server("torch")
    assert server is not None
    assert server.worker is not None
    assert server.worker.settings["device"] == "cuda:0,cuda:1"


@pytest.mark.parametrize(
    ("scan", "flags", "words"),
    [
        (None, {"via": "triton", "together": True}, "shares with nothing"),
        (None, {"together": True}, "is for served scans"),
        (
            "saturation",
            {"together": True, "model": "sleep:1ms,sleep:2ms"},
            "closed loops of a sweep",
        ),
        (
            None,
            {"via": "triton", "together": True, "model": "sleep:1ms,sleep:2ms", "rate": "5"},
            "closed loops of a sweep",
        ),
        (
            None,
            {"via": "perf-analyzer", "together": True, "model": "sleep:1ms,sleep:2ms"},
            "one model at a time",
        ),
        (
            None,
            {
                "via": "triton",
                "together": True,
                "model": "sleep:1ms,sleep:2ms",
                "shared_memory": "system",
            },
            "do not go through shared memory",
        ),
        (None, {"url": "h:1", "together": True, "model": "a,b"}, "--together is for a server that"),
        (None, {"device": "cpu,cpu"}, "takes one"),
        (None, {"via": "triton", "device": "cuda:0,gpu"}, "is not a device"),
    ],
)
def test_what_cannot_be_together_is_refused(
    scan: str | None, flags: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        scan_of(scan, **flags)
