"""The load generator's own parts: messages, byte machines, arrivals, steadiness, ragged inputs."""

from __future__ import annotations

import gzip
import importlib
import json
import struct
import zlib
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def load(workloads: Path) -> SimpleNamespace:
    """The generator's modules by their short names."""
    from profharness_workloads.loadgen import arrivals as load_plan
    from profharness_workloads.loadgen import board as load_board
    from profharness_workloads.loadgen import hpack as load_hpack
    from profharness_workloads.loadgen import http1 as load_http1
    from profharness_workloads.loadgen import http2 as load_http2
    from profharness_workloads.loadgen import inputs as load_inputs
    from profharness_workloads.loadgen import messages as load_messages
    from profharness_workloads.loadgen import settings as load_settings
    from profharness_workloads.loadgen import steady as load_steady

    return SimpleNamespace(
        board=load_board,
        hpack=load_hpack,
        http1=load_http1,
        http2=load_http2,
        inputs=load_inputs,
        messages=load_messages,
        plan=load_plan,
        settings=load_settings,
        steady=load_steady,
    )


# header blocks: RFC 7541, appendix C.3 to C.6 give these bytes


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        (
            "828684410f7777772e6578616d706c652e636f6d",
            [
                (":method", "GET"),
                (":scheme", "http"),
                (":path", "/"),
                (":authority", "www.example.com"),
            ],
        ),
        (
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            [
                (":method", "GET"),
                (":scheme", "http"),
                (":path", "/"),
                (":authority", "www.example.com"),
            ],
        ),
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", [("custom-key", "custom-header")]),
        (
            "4882640258 85aec3771a4b".replace(" ", ""),
            [(":status", "302"), ("cache-control", "private")],
        ),
        ("100870617373776f726406736563726574", [("password", "secret")]),
    ],
)
def test_header_blocks_of_the_standard(
    load: SimpleNamespace, block: str, headers: list[tuple[str, str]]
) -> None:
    assert load.hpack.decode(bytes.fromhex(block)) == headers


def test_header_blocks_that_need_a_table_or_end_early_are_refused(load: SimpleNamespace) -> None:
    for block in (b"\xbe", b"\x40\x0acustom", b"\x00\x81\x00\x00"):
        with pytest.raises(load.hpack.BadHeaders):
            load.hpack.decode(block)


@given(st.lists(st.tuples(st.text("abcdefgh-:", min_size=1), st.text(max_size=300))))
def test_header_blocks_round_trip(headers: list[tuple[str, str]]) -> None:
    from profharness_workloads.loadgen import hpack as load_hpack

    assert load_hpack.decode(load_hpack.encode(headers)) == headers


# gRPC over HTTP/2


def answer(
    load: SimpleNamespace, stream: int = 1, status: str = "0", body: bytes = b"\0\0\0\0\1x"
) -> bytes:
    frame, encode = load.http2.frame, load.hpack.encode
    first = frame(1, 4, stream, encode([(":status", "200"), ("content-type", "application/grpc")]))
    return (
        first
        + frame(0, 0, stream, body)
        + frame(1, 5, stream, encode([("grpc-status", status), ("grpc-message", "no such model")]))
    )


def machine(load: SimpleNamespace) -> object:
    return load.http2.Http2(
        load.http2.call_headers("host:1", "/inference/ModelInfer", tls=False, encoding="", more={})
    )


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_an_answer_in_any_pieces(load: SimpleNamespace, step: int) -> None:
    one = machine(load)
    for number in (1, 3):
        one.begin(b"head", b"payload")
        data = answer(load, number)
        over = [one.feed(data[at : at + step]) for at in range(0, len(data), step)]
        assert over[-1]
        assert not any(over[:-1])
        assert not one.error


def test_errors_carry_the_status_and_its_words(load: SimpleNamespace) -> None:
    one = machine(load)
    one.begin(b"", b"x")
    assert one.feed(answer(load, status="5"))
    assert one.error == "NOT_FOUND: no such model"
    one.begin(b"", b"x")
    assert one.feed(load.http2.frame(3, 0, 3, struct.pack(">I", 8)))
    assert "reset" in one.error
    one.begin(b"", b"x")
    assert one.feed(load.http2.frame(1, 5, 5, load.hpack.encode([(":status", "503")])))
    assert one.error == "HTTP status 503"


def test_a_large_message_waits_for_the_servers_windows(load: SimpleNamespace) -> None:
    one = machine(load)
    payload = bytes(range(256)) * 600
    sent = one.begin(b"", payload)
    assert len(data_of(sent)[0]) == 65535
    one.feed(load.http2.frame(8, 0, 0, struct.pack(">I", 1 << 20)))
    assert not one.reply
    one.feed(load.http2.frame(8, 0, 1, struct.pack(">I", 1 << 20)))
    data, ends = data_of(sent + one.reply)
    assert data == struct.pack(">BI", 0, len(payload)) + payload
    assert ends == 1
    assert max(lengths(sent + one.reply)) <= 16384


def data_of(raw: bytes) -> tuple[bytes, int]:
    """Contents of the data frames, and how many of them end the stream."""
    found, ends = b"", 0
    while raw:
        length, kind, flags = int.from_bytes(raw[:3], "big"), raw[3], raw[4]
        if kind == 0:
            found, ends = found + raw[9 : 9 + length], ends + (flags & 1)
        raw = raw[9 + length :]
    return found, ends


def lengths(raw: bytes) -> list[int]:
    found = []
    while raw:
        found.append(int.from_bytes(raw[:3], "big"))
        raw = raw[9 + found[-1] :]
    return found


def test_settings_and_pings_are_answered_and_a_farewell_is_heard(load: SimpleNamespace) -> None:
    one = machine(load)
    one.begin(b"", b"x")
    one.feed(
        load.http2.frame(4, 0, 0, struct.pack(">HI", 4, 1 << 20))
        + load.http2.frame(6, 0, 0, b"12345678")
    )
    assert one.reply == load.http2.frame(4, 1, 0) + load.http2.frame(6, 1, 0, b"12345678")
    one.feed(load.http2.frame(7, 0, 0, struct.pack(">II", 1, 0)))
    assert not one.usable
    with pytest.raises(load.http2.BadAnswer):
        one.feed(load.http2.frame(7, 0, 0, struct.pack(">II", 0, 2)))


# HTTP/1.1


@pytest.mark.parametrize("step", [1, 5, 1000])
@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", ""),
        (
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n10;x=1\r\n"
                b"0123456789abcdef\r\n0\r\n\r\n"
            ),
            "",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nCONTENT-LENGTH: 0\r\n\r\n", ""),
        (b"HTTP/1.1 400 Bad\r\nContent-Length: 7\r\n\r\nno good", "HTTP status 400 no good"),
        (b"HTTP/1.1 204 None\r\n\r\n", ""),
    ],
)
def test_http_answers_in_any_pieces(
    load: SimpleNamespace, raw: bytes, error: str, step: int
) -> None:
    one = load.http1.Http1(load.http1.post_head("h", "/x", "", {}))
    one.begin(b"", b"")
    over = [one.feed(raw[at : at + step]) for at in range(0, len(raw), step)]
    assert over[-1]
    assert not any(over[:-1])
    assert one.error == error


def test_http_that_cannot_be_followed(load: SimpleNamespace) -> None:
    for raw in (
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ):
        one = load.http1.Http1(b"")
        one.begin(b"", b"")
        with pytest.raises(load.http1.BadAnswer):
            one.feed(raw)


# messages


@given(st.integers(0, 2**62), st.integers(1, 4), st.integers(0, 40))
def test_grpc_messages_are_what_protobuf_reads(sequence: int, batch: int, width: int) -> None:
    service = pytest.importorskip("tritonclient.grpc.service_pb2")
    from profharness_workloads.loadgen import messages

    x = np.arange(batch * width, dtype="f4").reshape(batch, width)
    mask = np.ones((batch, 2), "i8")
    tensors = [messages.Tensor("x", "FP32", x), messages.Tensor("mask", "INT64", mask)]
    head, payload, length = messages.grpc_message(
        "m", "3", tensors, {"y": messages.Region("r", 64, 128)}, "none"
    ).parts(sequence)
    found = service.ModelInferRequest.FromString(head + payload)
    assert (found.model_name, found.model_version, length) == ("m", "3", -1)
    assert found.parameters["profharness_seq"].int64_param == sequence
    assert [(one.name, one.datatype, tuple(one.shape)) for one in found.inputs] == [
        ("x", "FP32", x.shape),
        ("mask", "INT64", mask.shape),
    ]
    assert list(found.raw_input_contents) == [x.tobytes(), mask.tobytes()]
    assert found.outputs[0].parameters["shared_memory_offset"].int64_param == 64


def test_http_messages_keep_their_length_whatever_the_number(load: SimpleNamespace) -> None:
    tensors = [load.messages.Tensor("a%b", "FP32", np.zeros((1, 4), "f4"))]
    message = load.messages.http_message(tensors, {}, "none")
    parts = [message.parts(number) for number in (0, 7 << 40)]
    assert len({len(head) for head, _, _ in parts}) == 1
    found = json.loads(parts[1][0])
    assert found["parameters"]["profharness_seq"] == 7 << 40
    assert found["inputs"] == [
        {"name": "a%b", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}
    ]
    assert parts[0][2] == len(parts[0][0])


@given(st.binary(max_size=3000), st.binary(max_size=60))
def test_compressed_messages_unpack_to_head_and_payload(payload: bytes, head: bytes) -> None:
    from profharness_workloads.loadgen import messages

    assert gzip.decompress(messages.Compressed("gzip", payload).joined(head)) == head + payload
    assert zlib.decompress(messages.Compressed("deflate", payload).joined(head)) == head + payload


# arrivals


@pytest.mark.parametrize("kind", ["constant", "poisson"])
def test_clients_share_one_sequence_of_arrivals(load: SimpleNamespace, kind: str) -> None:
    arrivals = load.plan.arrivals_from(kind, 1000.0, 5)
    alone = list(islice(arrivals.instants(10**9), 9000))
    shared = [list(islice(arrivals.instants(10**9, client, 3), 3000)) for client in range(3)]
    assert sorted(at for one in shared for at in one) == alone
    assert (alone[-1] - 10**9) / 9000 == pytest.approx(1e6, rel=0.05)
    gaps = np.diff(alone)
    assert gaps.std() / gaps.mean() == pytest.approx(0.0 if kind == "constant" else 1.0, abs=0.05)


def test_arrivals_of_a_file_come_round_again(load: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("# seconds\n0.0\n0.5,comment\n1.0\n")
    arrivals = load.plan.arrivals_from(str(path), 0.0, 0)
    assert list(islice(arrivals.instants(0), 6)) == [
        0,
        5 * 10**8,
        10**9,
        15 * 10**8,
        2 * 10**9,
        25 * 10**8,
    ]
    assert arrivals.rate == pytest.approx(2.0)
    for text in ("", "1\n0.5\n", "-1\n", "soon\n", "nan\n"):
        path.write_text(text)
        with pytest.raises(load.settings.Refusal, match="not a file of arrival times"):
            load.plan.arrivals_from(str(path), 0.0, 0)
    with pytest.raises(load.settings.Refusal, match="rate above 0"):
        load.plan.arrivals_from("poisson", 0.0, 0)


# steadiness, by a clock of its own


def totals(load: SimpleNamespace, done: int, latency_ns: int = 0, failed: int = 0) -> object:
    return load.board.Totals(done, latency_ns, failed, 0, 0)


def settled_after(load: SimpleNamespace, latency_ms: Callable[[float], float]) -> float:
    """Seconds until a closed loop of one whose latency changes so counts as settled; at most 20."""
    settling = load.steady.Settling(0, 10**9, 1)
    now, done, summed = 0.0, 0, 0
    while now < 20 and not settling.settled:
        now += latency_ms(now) / 1e3
        done, summed = done + 1, summed + int(latency_ms(now) * 1e6)
        settling.look(int(now * 1e9), totals(load, done, summed))
    return now


def test_a_level_settles_after_its_slow_start_and_not_before(load: SimpleNamespace) -> None:
    assert settled_after(load, lambda _: 5.0) < 1.0
    slow_start = settled_after(load, lambda now: 50.0 if now < 0.4 else 5.0)
    assert 0.9 < slow_start < 3.0
    assert settled_after(load, lambda now: 5.0 * 1.8**now) >= 10


def test_a_storm_is_most_requests_failing_for_a_second(load: SimpleNamespace) -> None:
    storm = load.steady.Storm(0)
    assert not storm.look(5 * 10**8, totals(load, 0, failed=1000))
    assert storm.look(12 * 10**8, totals(load, 10, failed=2000))
    calm = load.steady.Storm(0)
    assert not any(
        calm.look(at * 10**8, totals(load, 10 * at, failed=4 * at)) for at in range(1, 60)
    )
    lonely = load.steady.Storm(0)
    looks = [lonely.look(at * 10**8, totals(load, 0, failed=at // 8)) for at in range(1, 60)]
    assert any(looks)
    assert looks.index(True) * 0.1 == pytest.approx(3, abs=0.6)


# inputs


def model(load: SimpleNamespace) -> object:
    spec = load.inputs.TensorSpec
    specs = (
        spec("pf_features", "float32", (4, None)),
        spec("pf_mask", "float32", (1, None)),
        spec("sv_features", "float32", (3, None)),
    )
    return load.settings.Model("m", "1", 8, specs, ("FP32",) * 3, ())


def prepared(load: SimpleNamespace, ragged: str) -> object:
    spec = load.settings.ClientSpec(
        ready=("x",),
        inputs="hep",
        shapes={"pf_features": (4, 20), "pf_mask": (1, 20), "sv_features": (3, 5)},
        distinct=16,
    )
    asked = load.settings.Asked("p", {"batch_size": 8, "ragged": ragged})
    return load.inputs.prepare(spec, model(load), load.settings.judged(asked))


def test_ragged_requests_hold_the_same_items_padded_or_grouped(load: SimpleNamespace) -> None:
    plain, padded, grouped = (prepared(load, kind) for kind in ("none", "padded", "grouped"))
    assert {request[0].array.shape for request in plain.requests} == {(8, 4, 20)}
    items = [
        sum(len(request[0].array) for request in each.requests) for each in (plain, padded, grouped)
    ]
    assert items == [items[0]] * 3
    assert padded.particles == grouped.particles < 20
    assert padded.padded_share > 0.1
    assert grouped.padded_share < padded.padded_share
    assert len(grouped.requests) > len(padded.requests)
    sums = [
        sorted(float(item.sum()) for request in each.requests for item in request[0].array)
        for each in (padded, grouped)
    ]
    assert np.allclose(*sums, rtol=1e-4, atol=1e-4)
    for request in padded.requests:
        lengths = {tensor.array.shape[-1] for tensor in request if tensor.name.startswith("pf")}
        assert len(lengths) == 1
        assert lengths.pop() <= 20
    for request in grouped.requests:  # of the larger family nothing is padding
        assert request[0].array.any(axis=1).all()


def test_ragged_needs_a_free_dimension(load: SimpleNamespace) -> None:
    fixed = load.settings.Model(
        "m", "1", 8, (load.inputs.TensorSpec("x", "float32", (4,)),), ("FP32",), ()
    )
    spec = load.settings.ClientSpec(ready=("x",))
    with pytest.raises(load.settings.Refusal, match="last dimension is free"):
        load.inputs.prepare(
            spec,
            fixed,
            load.settings.judged(load.settings.Asked("p", {"batch_size": 2, "ragged": "padded"})),
        )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"protocol": "carrier-pigeon"}, "protocol must be one of grpc, http"),
        ({"shared_memory": "system", "compression": "gzip"}, "nothing to compress"),
        ({"ready": ()}, "names no server"),
        ({"timeout_s": 0}, "timeout_s must be above 0"),
    ],
)
def test_specs_that_make_no_sense(
    load: SimpleNamespace, changed: dict[str, object], words: str
) -> None:
    with pytest.raises(load.settings.Refusal, match=words):
        load.settings.checked(load.settings.ClientSpec(ready=("x",))._replace(**changed))


def test_the_board_keeps_each_clients_first_words(load: SimpleNamespace) -> None:
    board = load.board.Board(2)
    board.say(1, "first")
    board.say(1, "second")
    board.of(0)[load.board.DONE] = 3
    board.of(1)[load.board.DONE] = 4
    assert list(board.first_failures()) == ["first"]
    assert board.totals().done == 7


def test_a_model_that_a_server_lacks_is_told_with_those_that_it_has(workloads: Path) -> None:
    module: ModuleType = importlib.import_module("profharness_workloads.loadgen.grpc_model")

    def index(**_: object) -> dict[str, object]:
        return {"models": [{"name": f"m{n:02d}"} for n in range(12)]}

    def refuses(**_: object) -> dict[str, object]:
        raise RuntimeError("no such extension")

    assert module._model_listing(SimpleNamespace(get_model_repository_index=index), {}).startswith(
        "; it has m00, m01"
    )
    assert module._model_listing(SimpleNamespace(get_model_repository_index=index), {}).endswith(
        "m09 and 2 more"
    )
    assert (
        module._model_listing(SimpleNamespace(get_model_repository_index=lambda **_: {}), {}) == ""
    )
    assert module._model_listing(SimpleNamespace(get_model_repository_index=refuses), {}) == ""


def test_a_server_that_cannot_be_reached_is_not_asked_for_its_models(
    load: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = load.settings.Server(None, "", "127.0.0.1:1", "", "", False, False, "", (), "", {})

    def nobody(*_: object) -> None:
        raise RuntimeError("[StatusCode.UNAVAILABLE] Connection refused")

    monkeypatch.setattr(load.settings.grpc_model, "ask", nobody)
    with pytest.raises(load.settings.Refusal, match="no server can be reached there"):
        load.settings.same_model([server], "m", {})


def test_headers_reach_the_question_by_standard_input(
    workloads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command line can be read by everybody on the machine."""
    module: ModuleType = importlib.import_module("profharness_workloads.loadgen.grpc_model")
    ran: list[tuple[list[str], bytes]] = []

    def run(argv: list[str], **more: Any) -> SimpleNamespace:
        ran.append((argv, more["input"]))
        return SimpleNamespace(returncode=0, stdout=b'{"name": "m"}', stderr=b"")

    monkeypatch.setattr(module.subprocess, "run", run)
    assert module.ask("h:1", "m", "ca.pem", True, {"token": "secret"}) == {"name": "m"}
    ((argv, said),) = ran
    assert argv[2:] == ["h:1", "m", "--ca", "ca.pem", "--tls", "--headers"]
    assert json.loads(said) == {"token": "secret"}


def test_a_configuration_over_grpc_becomes_a_description(workloads: Path) -> None:
    module: ModuleType = importlib.import_module("profharness_workloads.loadgen.grpc_model")
    config = {
        "name": "m",
        "max_batch_size": 8,
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": ["2", "-1"]}],
        "output": [{"name": "y", "data_type": "TYPE_INT64", "dims": ["8"]}],
        "instance_group": [{"count": 2}, {"count": 1}],
    }
    found = module.model_of(config)
    assert found["inputs"] == [{"name": "x", "dtype": "FP32", "shape": [2, -1]}]
    assert (found["max_batch_size"], found["instances"], found["outputs"][0]["dtype"]) == (
        8,
        3,
        "INT64",
    )
