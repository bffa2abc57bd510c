"""Servers of others: addresses, readiness and metadata, against a stand-in that speaks KServe
v2.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from profharness.errors import InputError, Unavailable, UsageError
from profharness.serving import foreign, kserve
from profharness.serving.foreign import Address
from profharness.serving.ready import Ready

STAND_IN = Path(__file__).resolve().parents[1] / "fakes" / "stand_in_foreign_server.py"
Start = Callable[..., tuple[int, tuple[str, ...]]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a stand-in; gives its port and the words of its command."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*options: str) -> tuple[int, tuple[str, ...]]:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        command = (sys.executable, str(STAND_IN), str(port), *options)
        running.append(subprocess.Popen(command))
        return port, command

    yield begin
    for process in running:
        process.kill()
        process.wait()


def found(url: str, command: tuple[str, ...], model: str) -> Ready:
    """As the harness asks: until there is an answer."""
    deadline = time.monotonic() + 90
    while (said := foreign.find(url, command, model)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return msgspec.json.decode(said, type=Ready)


@pytest.mark.parametrize(
    ("url", "protocol", "address"),
    [
        ("node:8001", "grpc", Address(grpc="node:8001")),
        ("node:8000", "http", Address(http="node:8000")),
        ("http://node", "grpc", Address(http="node:80")),
        ("https://node/v2/health/ready", "grpc", Address(http="node:443", tls=True)),
        ("grpcs://node:1", "http", Address(grpc="node:1", tls=True)),
        ("http://[::1]:8000", "grpc", Address(http="[::1]:8000")),
    ],
)
def test_addresses(url: str, protocol: str, address: Address):
    assert foreign.parse_url(url, protocol) == address


@pytest.mark.parametrize("url", ["", "node", "ftp://node:1", "grpc://node", "node:port", "http://"])
def test_what_is_no_address(url: str):
    with pytest.raises(UsageError, match="not a server's address"):
        foreign.parse_url(url, "grpc")


def test_tritons_ports_come_from_its_command():
    ready = "http://127.0.0.1:9000/v2/health/ready"
    assert foreign.address_of(ready, ("tritonserver",)).grpc == "127.0.0.1:8001"
    assert (
        foreign.address_of(ready, ("/opt/tritonserver/bin/tritonserver", "--grpc-port=9001")).grpc
        == "127.0.0.1:9001"
    )
    assert (
        foreign.address_of(
            ready, ("sh", "-c", "exec tritonserver --grpc-port 9002 --http-port 9000")
        ).grpc
        == "127.0.0.1:9002"
    )
    assert foreign.address_of(ready, ("vllm", "serve")).grpc == ""
    with pytest.raises(UsageError, match="--ready"):
        foreign.address_of("grpc://127.0.0.1:9001", ("tritonserver",))


def test_it_is_not_ready_before_it_says_so(start: Start):
    begun = time.monotonic()
    port, command = start("--after", "0.6")
    ready = found(f"http://127.0.0.1:{port}/v2/health/ready", command, "tagger")
    assert time.monotonic() - begun >= 0.6
    (model,) = ready.models
    assert (model.name, model.version, model.backend) == (
        "tagger",
        "10",
        "onnxruntime",
    )  # the newest, as a number
    assert (model.max_batch_size, model.instances, model.queue_delay_us) == (32, 4, 250)
    assert (model.inputs[0].shape, model.outputs[0].shape) == ((2, -1), (8,))  # without the batch
    assert (ready.http, ready.grpc, ready.pid, ready.opened) == (
        f"127.0.0.1:{port}",
        "",
        None,
        False,
    )


def test_without_the_configuration_extension_the_repository_says_it(start: Start, tmp_path: Path):
    (tmp_path / "tagger").mkdir()
    (tmp_path / "tagger" / "config.pbtxt").write_text(
        'max_batch_size: 7 instance_group [ { count: 3 } ] input [ { name: "x" data_type: '
        "TYPE_FP32 dims: [ 2, -1 ] } ]"
    )
    port, command = start("--no-config", "--model-repository", str(tmp_path))
    (model,) = found(f"http://127.0.0.1:{port}/health", command, "tagger").models
    assert (model.max_batch_size, model.instances, model.inputs[0].shape) == (7, 3, (2, -1))
    port, command = start("--no-config")
    (model,) = found(f"http://127.0.0.1:{port}/health", command, "tagger").models
    assert (model.max_batch_size, model.instances, model.inputs[0].shape) == (0, 0, (-1, 2, -1))


def test_a_plain_http_server_has_no_models(start: Start):
    port, command = start("--plain")
    ready = found(f"http://127.0.0.1:{port}/health", command, "")
    assert (ready.models, ready.http) == ((), f"127.0.0.1:{port}")
    assert found(f"http://127.0.0.1:{port}/health", command, "tagger").models == ()


def test_a_model_that_is_not_there_is_told(start: Start):
    port, command = start()
    found(f"http://127.0.0.1:{port}/health", command, "tagger")
    with pytest.raises(Unavailable, match="no model 'jets'"):
        foreign.find(f"http://127.0.0.1:{port}/health", command, "jets")
    with pytest.raises(InputError, match="not an answer of KServe"):
        kserve.model(f"http://127.0.0.1:{port}", "odd")


def test_a_token_is_shown_and_its_absence_told(start: Start):
    port, command = start("--token", "secret")
    found(f"http://127.0.0.1:{port}/health", command, "")
    ready = msgspec.json.decode(
        foreign.describe(f"http://127.0.0.1:{port}", "grpc", "tagger", kserve.Access("secret")),
        type=Ready,
    )
    assert ready.token == ""  # the load generator finds it in its environment
    assert ready.models[0].name == "tagger"
    with pytest.raises(Unavailable, match=r"wants a token \(403\)") as told:
        kserve.model(f"http://127.0.0.1:{port}", "tagger")
    assert (
        told.value.hint
        == "give it in the variable PROFHARNESS_TOKEN, or in a file with --token-file"
    )
    with pytest.raises(Unavailable, match=r"/v2: the server wants a token \(403\)"):
        foreign.describe(f"http://127.0.0.1:{port}", "grpc", "tagger")
    with pytest.raises(Unavailable, match=r"/v2: the server refuses the token \(403\)"):
        foreign.describe(f"http://127.0.0.1:{port}", "grpc", "tagger", kserve.Access("guess"))


def test_a_remote_server_by_grpc_is_left_to_its_client():
    ready = msgspec.json.decode(foreign.describe("node.example:8001", "grpc", "tagger"), type=Ready)
    assert (ready.grpc, ready.http, ready.models, ready.opened) == (
        "node.example:8001",
        "",
        (),
        True,
    )
    assert ready.reach == "node.example"
    over_tls = msgspec.json.decode(
        foreign.describe("grpcs://127.0.0.1:1", "grpc", "tagger"), type=Ready
    )
    assert (over_tls.grpc, over_tls.tls) == ("127.0.0.1:1", True)


def test_a_server_that_is_not_there_is_told_from_one_that_does_not_speak_the_protocol(
    start: Start,
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(Unavailable, match="no server can be reached there"):
            foreign.describe(url, "http", "tagger")
    port, command = start("--plain")
    found(f"http://127.0.0.1:{port}/health", command, "")
    with pytest.raises(Unavailable, match=r"does not speak KServe v2 over HTTP.*'tagger'"):
        foreign.describe(f"http://127.0.0.1:{port}", "http", "tagger")


def test_a_port_of_another_protocol_is_no_failure_of_ours() -> None:
    """A gRPC server answers an HTTP request with a frame of HTTP/2."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            for _ in range(2):
                peer, _address = listener.accept()
                peer.recv(4096)
                peer.sendall(bytes.fromhex("000006040000000000000500004000"))
                peer.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(Unavailable, match="does not speak KServe v2 over HTTP") as told:
            foreign.describe(f"http://127.0.0.1:{listener.getsockname()[1]}", "http", "tagger")
        assert "gRPC address" in told.value.hint
        thread.join(5)


@pytest.mark.parametrize(
    ("command", "grpc"),
    [
        (("tritonserver",), "127.0.0.1:8001"),
        (("tritonserver", "--grpc-port=9"), "127.0.0.1:9"),
        (("profharness", "serve", "particlenet", "--grpc-port", "18412"), "127.0.0.1:18412"),
        (("vllm", "serve", "m"), ""),
    ],
)
def test_grpc_is_known_of_triton_and_where_the_command_names_its_port(
    command: tuple[str, ...], grpc: str
) -> None:
    assert foreign.address_of("http://127.0.0.1:8000/health", command).grpc == grpc
