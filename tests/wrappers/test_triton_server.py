"""The model server as it is: real Triton, real gRPC and HTTP, real models."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import shared_path
from tests.processes import Seen, all_end, below, seen
from tests.wrappers.control import WORKLOADS, Control, kinds, until
from tests.wrappers.triton import (
    HTTP_TOKEN,
    Server,
    client,
    infer,
    short_home,
    slowest_end_s,
)

if any(
    importlib.util.find_spec(name) is None
    for name in ("torch", "onnxruntime", "pytriton", "tritonclient")
):
    pytest.skip("needs the extras torch, onnx and triton", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("triton-server")]
AK4 = "fixtures/models/particlenet_AK4"


def jets(batch: int, particles: int = 100, vertices: int = 10) -> dict[str, np.ndarray]:
    """As the real model's reference was made: masks are prefixes."""
    rng = np.random.default_rng(batch)
    sizes = {
        "pf_points": (2, particles),
        "pf_features": (20, particles),
        "pf_mask": (1, particles),
        "sv_points": (2, vertices),
        "sv_features": (11, vertices),
        "sv_mask": (1, vertices),
    }
    return {
        name: np.ones((batch, *size), np.float32)
        if name.endswith("mask")
        else rng.standard_normal((batch, *size)).astype(np.float32)
        for name, size in sizes.items()
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[Server]:
    """Three models in one server, under the layers of both frameworks."""
    models = [
        {"name": "ours", "instances": 2, "threads": 1},
        {
            "name": "tagger",
            "backend": "onnxruntime",
            "threads": 1,
            "model": str(shared_path(f"{AK4}/1/model.onnx")),
        },
        {"name": "sleep", "model": "sleep:20ms", "instances": 2, "max_batch_size": 4},
    ]
    made = Server(
        tmp_path_factory.mktemp("served"),
        {"models": models, "max_batch_size": 16},
        layers="torch,onnxruntime,telemetry",
    )
    yield made
    made.kill()


@contextlib.contextmanager
def running(root: Path, **spec: object) -> Iterator[Server]:
    """A server of a model that costs nothing, ended in the end."""
    made = Server(root, {"model": "sleep:1ms", **spec})
    try:
        yield made
    finally:
        made.kill()


def test_the_ready_file_says_what_is_served_and_where(server: Server):
    ready = server.ready
    assert ready["pid"] == server.process.pid
    assert [ready[name].rpartition(":")[0] for name in ("grpc", "http")] == [
        "127.0.0.1",
        "127.0.0.1",
    ]
    assert (ready["token"], ready["tls"], ready["opened"], ready["fallback"], ready["device"]) == (
        "",
        False,
        False,
        "",
        "cpu",
    )
    assert [
        (m["name"], m["backend"], m["instances"], m["max_batch_size"]) for m in ready["models"]
    ] == [("ours", "torch", 2, 16), ("tagger", "onnxruntime", 1, 16), ("sleep", "sleep", 2, 4)]
    assert server.model("tagger")["inputs"][0] == {
        "name": "pf_points",
        "dtype": "FP32",
        "shape": [2, -1],
    }
    assert (
        server.model("ours")["outputs"]
        == server.model("tagger")["outputs"]
        == [{"name": "softmax", "dtype": "FP32", "shape": [8]}]
    )
    assert {"torch", "onnxruntime", "pytriton", "numpy", "python"} <= set(ready["versions"])
    assert "tritonserver" in Path(f"/proc/{ready['server_pid']}/cmdline").read_text()
    (hello,) = server.control.records()
    assert (hello["kind"], hello["devices"]) == (
        "hello",
        [{"index": 0, "kind": "cpu", "name": "cpu"}],
    )


def test_nothing_of_it_is_reachable_from_outside(server: Server):
    """All of its listening sockets are on loopback (proc(5): 0100007F is 127.0.0.1 in
    /proc/net/tcp, also as IPv6 writes it).
    """
    ports = {
        int(server.ready[name].rpartition(":")[2].partition("/")[0])
        for name in ("grpc", "http", "metrics")
    }
    listening = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            port = int(address.rpartition(":")[2], 16)
            if state == "0A" and port in ports:
                listening[port] = address.rpartition(":")[0].removeprefix(
                    "0000000000000000FFFF0000"
                )
    assert listening == dict.fromkeys(ports, "0100007F")


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_the_real_models_reference_comes_back(server: Server, shared: Path, protocol: str):
    stored = np.load(shared_path(f"{AK4}/reference_io.npz"))
    arrays = {one["name"]: stored[one["name"]] for one in server.model("tagger")["inputs"]}
    with contextlib.closing(client(server, protocol)) as speaker:
        given = infer(speaker, "tagger", arrays, "softmax")
    assert np.abs(given - stored["output_ort"]).max() < 2e-6


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_our_model_serves_any_number_of_particles(server: Server, protocol: str):
    with contextlib.closing(client(server, protocol)) as speaker:
        for batch, particles, vertices in ((1, 100, 10), (16, 50, 12), (3, 20, 9)):
            given = infer(speaker, "ours", jets(batch, particles, vertices), "softmax")
            assert given.shape == (batch, 8)
            assert np.abs(given.sum(axis=1) - 1).max() < 1e-5


def test_the_server_keeps_statistics_that_anyone_here_may_read(server: Server):
    with contextlib.closing(client(server, "http")) as speaker:
        infer(speaker, "sleep", {"x": np.ones((2, 16), np.float32)}, "y")

        def counted() -> int:
            (found,) = speaker.get_inference_statistics("sleep")["model_stats"]
            return int(found["inference_stats"]["success"]["count"])

        until(lambda: counted() >= 1, None)  # the server counts a request behind its answer
        with pytest.raises(Exception, match="restricted"):
            speaker.load_model("sleep")  # loading runs code: never open


def test_more_than_the_largest_batch_is_refused_by_the_server(server: Server):
    with (
        contextlib.closing(client(server, "grpc")) as speaker,
        pytest.raises(Exception, match="batch-size must be <= 4"),
    ):
        infer(speaker, "sleep", {"x": np.ones((5, 16), np.float32)}, "y")


def levels_executions(server: Server, key: str) -> tuple[np.ndarray, np.ndarray]:
    folder, pid = server.control.run / "points" / "bare" / key, server.ready["pid"]
    return np.fromfile(folder / f"executions-{pid}.i64", "<i8").reshape(-1, 8), np.fromfile(
        folder / f"members-{pid}.i64", "<i8"
    )


def test_a_level_records_executions_with_their_requests(server: Server):
    """Four requests of one item at once make batches; instances work at the same time; all lies
    between open and close.
    """
    server.window("open", "flush-earlier")
    server.window("close", "flush-earlier")
    opened = server.window("open", "level")

    def send(number: int) -> None:
        with contextlib.closing(client(server, "grpc" if number % 2 else "http")) as speaker:
            for turn in range(5):
                infer(
                    speaker,
                    "sleep",
                    {"x": np.ones((1, 16), np.float32)},
                    "y",
                    sequence=number * 2**40 + turn,
                )

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    closed = server.window("close", "level")
    executions, members = levels_executions(server, "level")
    number, start, end, items, requests, instance, first, model = executions.T
    assert sorted(members.tolist()) == sorted(
        n * 2**40 + turn for n in range(4) for turn in range(5)
    )
    assert (np.diff(number) == 1).all()
    assert ((end - start) >= 20_000_000).all()
    assert (items == requests).all()
    assert (first == np.concatenate([[0], np.cumsum(requests)[:-1]])).all()
    assert set(model.tolist()) == {2}
    assert set(instance.tolist()) <= {0, 1}
    assert opened["monotonic_ns"] < start.min()
    assert end.max() < closed["monotonic_ns"]


def test_executions_are_written_while_a_level_runs(server: Server):
    server.window("open", "long")
    with contextlib.closing(client(server, "grpc")) as speaker:
        infer(speaker, "sleep", {"x": np.ones((1, 16), np.float32)}, "y", sequence=5)
    path = server.control.run / "points" / "bare" / "long" / f"members-{server.ready['pid']}.i64"
    until(lambda: path.exists() and 5 in np.fromfile(path, "<i8"), server.process, 60)
    server.window("close", "long")


def artifacts(server: Server, layer: str, start: str) -> list[Path]:
    found = (server.control.run / "artifacts" / layer).rglob(f"{start}*")
    return sorted(path for path in found if not path.name.endswith(".profharness.json"))


def spans(trace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [one for one in trace["traceEvents"] if one.get("ph") == "X" and one.get("name") == name]


def test_the_layers_record_a_level_in_all_of_the_inference_threads(server: Server):
    server.window("open", "traced")
    with contextlib.closing(client(server, "grpc")) as speaker:
        for _ in range(4):
            infer(speaker, "ours", jets(2), "softmax")
            infer(speaker, "tagger", jets(2), "softmax")
    answer = server.window("close", "traced")
    assert "error" not in answer
    (torch_trace,) = artifacts(server, "torch", "traced")
    trace = json.loads(torch_trace.read_text())
    (point,) = spans(trace, "profharness.point:traced")
    ops = [
        one
        for one in trace["traceEvents"]
        if one.get("cat") == "cpu_op" and one["name"] == "aten::convolution"
    ]
    assert ops
    assert all(point["ts"] <= one["ts"] <= point["ts"] + point["dur"] for one in ops)
    assert point["tid"] not in {one["tid"] for one in ops}  # the models run in the server's threads
    assert (
        json.loads(torch_trace.with_name(torch_trace.name + ".profharness.json").read_text())[
            "point"
        ]
        == "traced"
    )
    (onnx_trace,) = artifacts(server, "onnxruntime", "traced")
    assert onnx_trace.name == "traced-tagger-0.json"
    runs = [one for one in json.loads(onnx_trace.read_text()) if one.get("name") == "model_run"]
    assert (
        len(runs) == 4 + 2
    )  # two of them warmed the level's session up, on the inputs of an earlier request
    assert artifacts(server, "onnxruntime", "marker-tagger")


def test_between_levels_nothing_is_recorded(server: Server):
    before = len(artifacts(server, "torch", ""))
    with contextlib.closing(client(server, "grpc")) as speaker:
        assert infer(speaker, "ours", jets(1), "softmax").shape == (1, 8)
        assert infer(speaker, "tagger", jets(1), "softmax").shape == (1, 8)
    assert len(artifacts(server, "torch", "")) == before


def test_it_ends_in_time_with_clients_connected_and_leaves_nothing(tmp_path: Path):
    """An idle HTTP connection would hold Triton itself up for half a minute."""
    with running(tmp_path, instances=2) as server:
        speakers = [client(server, protocol) for protocol in ("grpc", "http")]
        for speaker in speakers:
            infer(speaker, "sleep", {"x": np.ones((1, 16), np.float32)}, "y")
        assert server.memory()
        processes = below(server.process.pid)
        assert server.ready["server_pid"] in [one.pid for one in processes]
        status, seconds, _ = server.end()
        assert status == 0
        assert seconds < slowest_end_s(server.started_s)
        assert kinds(server.control.records()) == ["hello", "bye"]
        all_end(processes, 60)
        assert server.memory() == []
        assert list(server.home.iterdir()) == []
        for speaker in speakers:
            speaker.close()


def test_a_signal_ends_it_as_well(tmp_path: Path):
    with running(tmp_path) as server:
        begun = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        server.process.send_signal(signal.SIGINT)  # an impatient second one
        server.process.communicate(timeout=120)
        assert time.monotonic() - begun < slowest_end_s(server.started_s)
        assert server.process.returncode == 128 + signal.SIGINT
        assert server.control.records()[-1]["reason"] == "ended by SIGINT"
        assert list(server.home.iterdir()) == []


PARENT = """
import os, subprocess, sys, time
os.environ["PROFHARNESS_PARENT_PID"] = str(os.getpid())
child = subprocess.Popen([sys.executable, sys.argv[1]])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_it_ends_with_the_harness_and_a_killed_one_is_swept_up_after(tmp_path: Path):
    """The harness is killed: the server ends. The server is killed: Triton ends, and the next start
    removes its workspace.
    """
    home = short_home()
    control = Control(tmp_path, {"backend": "torch", "model": "sleep:1ms"})
    env = {**control.env, "PYTRITON_HOME": str(home)}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(WORKLOADS / "serving" / "triton_server.py")],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    until((control.folder / "server-ready.json").exists, None, 180)
    processes = [seen(pid), *below(pid)]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    all_end(processes, 60)
    home.rmdir()  # it is empty

    (tmp_path / "second").mkdir()
    with running(tmp_path / "second") as server:
        processes = killed(server)
        (triton,) = [one for one in processes if one.pid == server.ready["server_pid"]]
        all_end([triton], 60)  # its stubs may outlive it
        assert len(list(server.home.iterdir())) == 2  # the workspace and its lock
        nothing_is_left_after_a_sweep(server, processes)


def test_a_triton_that_hangs_at_its_end_is_swept_up_as_well(tmp_path: Path):
    """Neither it nor its stubs heed a signal, and what the stubs started runs another program."""
    with running(tmp_path) as server:
        processes = below(server.process.pid)
        for one in processes:
            os.kill(one.pid, signal.SIGSTOP)
        killed(server)
        assert any(one.runs for one in processes)
        nothing_is_left_after_a_sweep(server, processes)


def killed(server: Server) -> list[Seen]:
    """The processes that ran below a server when it was killed."""
    processes = below(server.process.pid)
    server.process.kill()
    server.process.communicate(timeout=90)
    return processes


def nothing_is_left_after_a_sweep(server: Server, processes: list[Seen]) -> None:
    """The next start's own: it waits for those that it kills, and for those that tidy up."""
    sweep = (
        "import sys; sys.path.insert(0, sys.argv[1]); from "
        "profharness_workloads.serving import place; place.Workspace(['m'], "
        "sys.argv[2]).close()"
    )
    subprocess.run(
        [sys.executable, "-c", sweep, str(WORKLOADS.parent), str(server.home)], check=True
    )
    all_end(processes, 10)
    assert server.memory() == []
    assert list(server.home.iterdir()) == []


def certificate(folder: Path) -> tuple[str, str]:
    """A certificate of its own for this machine's loopback."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
            str(key),
            "-out",
            str(cert),
        ],
        check=True,
        capture_output=True,
    )
    return str(cert), str(key)


def test_opened_to_others_it_wants_a_token_and_speaks_tls(tmp_path: Path):
    cert, key = certificate(tmp_path)
    x = {"x": np.ones((1, 16), np.float32)}
    with running(tmp_path, host="0.0.0.0", tls_cert=cert, tls_key=key) as server:
        token = server.ready["token"]
        assert len(token) > 20
        assert (server.ready["tls"], server.ready["opened"], server.ready["ca"]) == (
            True,
            True,
            cert,
        )
        assert server.ready["http"].startswith("127.0.0.1:")
        with contextlib.closing(
            client(server, "grpc", ssl=True, root_certificates=cert)
        ) as speaker:
            assert infer(speaker, "sleep", x, "y", token=token).shape == (1, 16)
            for wrong in ("", "guess"):
                with pytest.raises(Exception, match="restricted"):
                    infer(speaker, "sleep", x, "y", token=wrong)
        with contextlib.closing(client(server, "http")) as speaker:
            assert infer(speaker, "sleep", x, "y", token=token).shape == (1, 16)
            for call in (
                lambda: infer(speaker, "sleep", x, "y"),
                lambda: speaker.get_inference_statistics("sleep"),
            ):
                with pytest.raises(Exception, match="restricted"):
                    call()
            assert speaker.get_inference_statistics("sleep", headers={HTTP_TOKEN: token})[
                "model_stats"
            ]
        with (
            contextlib.closing(client(server, "grpc")) as speaker,
            pytest.raises(Exception, match=r"UNAVAILABLE|closed|reset"),
        ):
            infer(speaker, "sleep", x, "y", token=token)  # without TLS


def refused(tmp_path: Path, **spec: object) -> dict[str, Any]:
    control = Control(tmp_path, {"backend": "torch", "model": "sleep:1ms", **spec})
    home = short_home()
    status, err = control.serve("serving/triton_server.py", PYTRITON_HOME=str(home))
    (said,) = control.records()
    assert (said["kind"], said["exit_status"]) == ("error", status)
    assert str(said["error"]) in err
    assert not (control.folder / "server-ready.json").exists()
    home.rmdir()  # it is empty
    return {**said, "status": status}


def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        said = refused(tmp_path, grpc_port=port)
    assert said["status"] == 2
    assert f"grpc port {port}" in said["error"]


def test_a_missing_device_is_refused_and_the_cpu_stands_in_only_when_allowed(
    tmp_path: Path, model_cache: Path
):
    import torch

    if torch.cuda.is_available():
        pytest.skip("needs a machine without a GPU")
    (tmp_path / "strict").mkdir()
    said = refused(tmp_path / "strict", model="particlenet", device="cuda")
    assert said["status"] == 3
    assert "sees no GPU" in said["error"]
    assert "--allow-fallback" in said["hint"]
    (tmp_path / "onnx").mkdir()
    said = refused(
        tmp_path / "onnx",
        backend="onnxruntime",
        model="particlenet",
        device="cuda",
        cache_dir=str(model_cache),
    )
    assert (said["status"], "no GPU provider" in said["error"]) == (3, True)
    (tmp_path / "allowed").mkdir()
    with running(
        tmp_path / "allowed", model="particlenet", device="cuda", allow_fallback=True
    ) as server:
        assert "sees no GPU" in server.ready["fallback"]
        assert "served from the CPU instead" in server.ready["fallback"]
        assert server.model("particlenet")["device"] == "cpu"


def test_when_triton_cannot_start_its_own_words_are_told_at_once(tmp_path: Path):
    """A key that does not belong to any certificate: Triton ends, and nobody waits two minutes for
    it.
    """
    (tmp_path / "cert.pem").write_text("no certificate\n")
    begun = time.monotonic()
    said = refused(
        tmp_path, tls_cert=str(tmp_path / "cert.pem"), tls_key=str(tmp_path / "missing.pem")
    )
    assert time.monotonic() - begun < 60
    assert said["status"] == 1
    assert "Triton did not start" in said["error"]


def test_a_backend_that_is_not_there_and_a_file_that_is_none(tmp_path: Path):
    for name, spec, status, words in (
        ("b", {"model": "x.pt"}, 2, "no model named"),
        ("c", {"name": "a b"}, 2, "cannot be named"),
        ("d", {"model": "particlenet", "compile": True}, 2, "--compile is not offered"),
    ):
        (tmp_path / name).mkdir()
        said = refused(tmp_path / name, **spec)
        assert (said["status"], words in said["error"]) == (status, True), said


def test_tools_of_the_workload_do_not_reach_tritons_processes(tmp_path: Path):
    with running(tmp_path) as server:
        own = Path(f"/proc/{server.process.pid}/environ").read_bytes()
        assert b"PROFHARNESS_SPEC" in own
        stubs = [
            one.pid
            for one in below(server.process.pid)
            if "triton_python_backend_stub" in one.command
        ]
        assert stubs
        for pid in (server.ready["server_pid"], *stubs):
            environ = dict(
                word.partition(b"=")[::2]
                for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            )
            assert not [
                name
                for name in environ
                if name.startswith((b"PROFHARNESS_", b"LD_PRELOAD", b"ROCP"))
            ]
            assert environ[b"LD_LIBRARY_PATH"].startswith(os.fsencode(library()))


def library() -> str:
    import sysconfig

    return str(sysconfig.get_config_var("LIBDIR"))
