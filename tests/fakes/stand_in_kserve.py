"""A stand-in for a KServe v2 server with a known service time: `stand_in_kserve.py READY.json
'{"service_ms": 20, "slots": 2}'`.

It decodes every request with tritonclient's own protobuf classes (gRPC) or as the protocol's page
says (HTTP), so that a malformed one is an error here. Model `double`: FP32 x[n] -> y[n] = 2 x,
where x must be the same in every item as in its first element times one. Settings: service_ms,
slots, fail (share of requests answered by an error), hang_after (requests after which none is
answered), drop_after (requests after which connections are cut), cert, key, host. GET /seen tells
what was received, /v2/models/stats counts as Triton does; the model is described over HTTP and
gRPC.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import random
import ssl
import sys
import time
import zlib
from pathlib import Path

import grpc
import numpy as np
from tritonclient.grpc import model_config_pb2, service_pb2

SETTINGS = {
    "service_ms": 1.0,
    "slots": 1,
    "fail": 0.0,
    "hang_after": None,
    "drop_after": None,
    "cert": "",
    "key": "",
    "host": "127.0.0.1",
    "token": "",
}


TENSORS = {
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}],
    "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, -1]}],
}
METADATA = {
    "/v2": {"name": "stand-in", "version": "0", "extensions": []},
    "/v2/models/double": {"name": "double", "versions": ["1"], "platform": "", **TENSORS},
    "/v2/models/double/config": {
        "name": "double",
        "max_batch_size": 64,
        "instance_group": [{"count": 1}],
    },
}


class Model:
    """Serves `slots` requests at a time, each for `service_ms`."""

    def __init__(self, settings: dict) -> None:
        self.settings = settings
        self.free = asyncio.Semaphore(settings["slots"])
        self.seen: list[dict] = []
        self.regions: dict[str, tuple[str, int, int]] = {}
        self.devices: list[int] = []
        self.queue_ns = self.infer_ns = self.count = self.requests = self.in_flight = self.most = 0

    def region(self, name: str, offset: int, size: int) -> bytes:
        path, start, length = self.regions[name]
        assert offset + size <= length, "beyond the region"
        with Path("/dev/shm/" + path.lstrip("/")).open("rb") as file:
            file.seek(start + offset)
            return file.read(size)

    def put(self, name: str, offset: int, data: bytes) -> None:
        path, start, length = self.regions[name]
        assert offset + len(data) <= length, "beyond the region"
        with Path("/dev/shm/" + path.lstrip("/")).open("r+b") as file:
            file.seek(start + offset)
            file.write(data)

    async def infer(self, x: np.ndarray, sequence: int | None, protocol: str) -> np.ndarray:
        self.requests += 1
        number = self.requests
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        self.seen.append(
            {
                "sequence": sequence,
                "first": float(x.flat[0]),
                "shape": list(x.shape),
                "protocol": protocol,
            }
        )
        hang = self.settings["hang_after"]
        if hang is not None and number > hang:
            await asyncio.sleep(3600)
        arrived = time.perf_counter_ns()
        async with self.free:
            begun = time.perf_counter_ns()
            await asyncio.sleep(self.settings["service_ms"] / 1e3)
            self.infer_ns += time.perf_counter_ns() - begun
            self.queue_ns += begun - arrived
        self.in_flight -= 1
        self.count += len(x)
        if random.random() < self.settings["fail"]:
            raise ValueError("asked to fail")
        return 2 * x

    def stats(self) -> dict:
        n = self.requests
        part = {
            "success": {"count": n, "ns": self.queue_ns + self.infer_ns},
            "queue": {"count": n, "ns": self.queue_ns},
            "compute_input": {"count": n, "ns": 0},
            "compute_infer": {"count": n, "ns": self.infer_ns},
            "compute_output": {"count": n, "ns": 0},
        }
        return {
            "model_stats": [
                {
                    "name": "double",
                    "version": "1",
                    "inference_count": self.count,
                    "execution_count": n,
                    "inference_stats": part,
                    "batch_stats": [
                        {"batch_size": 1, "compute_infer": {"count": n, "ns": self.infer_ns}}
                    ],
                }
            ]
        }


def read_grpc(model: Model, request: service_pb2.ModelInferRequest) -> np.ndarray:
    (one,) = request.inputs
    assert one.name == "x", one.name
    assert one.datatype == "FP32", one.datatype
    shared = one.parameters
    if "shared_memory_region" in shared:
        data = model.region(
            shared["shared_memory_region"].string_param,
            shared["shared_memory_offset"].int64_param,
            shared["shared_memory_byte_size"].int64_param,
        )
    else:
        (data,) = request.raw_input_contents
    return np.frombuffer(data, "<f4").reshape(tuple(one.shape))


async def infer_grpc(model: Model, raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
    try:
        require_token(
            model,
            dict(context.invocation_metadata()).get("triton-grpc-protocol-triton-access-token", ""),
        )
        request = service_pb2.ModelInferRequest.FromString(raw)
        assert request.model_name == "double", request.model_name
        parameters = request.parameters
        sequence = (
            parameters["profharness_seq"].int64_param if "profharness_seq" in parameters else None
        )
        y = await model.infer(read_grpc(model, request), sequence, "grpc")
    except (AssertionError, ValueError, KeyError) as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{type(error).__name__}: {error}")
    answer = service_pb2.ModelInferResponse(model_name="double")
    output = answer.outputs.add(name="y", datatype="FP32", shape=y.shape)
    asked = {one.name: one.parameters for one in request.outputs}.get("y")
    if asked is not None and "shared_memory_region" in asked:
        model.put(
            asked["shared_memory_region"].string_param,
            asked["shared_memory_offset"].int64_param,
            y.tobytes(),
        )
        output.parameters["shared_memory_region"].string_param = asked[
            "shared_memory_region"
        ].string_param
    else:
        answer.raw_output_contents.append(y.tobytes())
    return answer.SerializeToString()


async def config_grpc(model: Model, context: grpc.aio.ServicerContext) -> bytes:
    try:
        require_token(
            model,
            dict(context.invocation_metadata()).get("triton-grpc-protocol-triton-access-token", ""),
        )
    except ValueError as error:
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
    tensor = {"data_type": model_config_pb2.TYPE_FP32, "dims": [-1]}
    config = model_config_pb2.ModelConfig(
        name="double",
        max_batch_size=64,
        input=[model_config_pb2.ModelInput(name="x", **tensor)],
        output=[model_config_pb2.ModelOutput(name="y", **tensor)],
    )
    return service_pb2.ModelConfigResponse(config=config).SerializeToString()


def require_token(model: Model, token: str) -> None:
    if model.settings["token"] and token != model.settings["token"]:
        raise ValueError("wrong token")


def unpacked(body: bytes, headers: dict[str, str]) -> bytes:
    encoding = headers.get("content-encoding", "")
    return (
        gzip.decompress(body)
        if encoding == "gzip"
        else zlib.decompress(body)
        if encoding == "deflate"
        else body
    )


async def infer_http(
    model: Model, body: bytes, headers: dict[str, str]
) -> tuple[int, bytes, dict[str, str]]:
    try:
        require_token(model, headers.get("triton-access-token", ""))
        body = unpacked(body, headers)
        length = int(headers["inference-header-content-length"])
        asked = json.loads(body[:length])
        (one,) = asked["inputs"]
        where = one["parameters"]
        if "shared_memory_region" in where:
            data = model.region(
                where["shared_memory_region"],
                where.get("shared_memory_offset", 0),
                where["shared_memory_byte_size"],
            )
        else:
            data = body[length:]
            assert len(data) == where["binary_data_size"], "binary size"
        y = await model.infer(
            np.frombuffer(data, "<f4").reshape(one["shape"]),
            asked["parameters"].get("profharness_seq"),
            "http",
        )
    except (AssertionError, ValueError, KeyError) as error:
        return 400, json.dumps({"error": str(error)}).encode(), {}
    output = {
        "name": "y",
        "datatype": "FP32",
        "shape": list(y.shape),
        "parameters": {"binary_data_size": y.nbytes},
    }
    text = json.dumps({"model_name": "double", "outputs": [output]}).encode()
    return 200, text + y.tobytes(), {"Inference-Header-Content-Length": str(len(text))}


async def answer(
    model: Model, method: str, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, bytes, dict[str, str]]:
    if path == "/v2/models/double/infer":
        return await infer_http(model, body, headers)
    if path in METADATA:
        allowed = (
            headers.get("triton-access-token", "") == model.settings["token"]
            or not model.settings["token"]
        )
        return (
            (200, json.dumps(METADATA[path]).encode(), {}) if allowed else (403, b"restricted", {})
        )
    if path == "/v2/models/stats":
        return 200, json.dumps(model.stats()).encode(), {}
    if path == "/seen":
        return (
            200,
            json.dumps(
                {
                    "seen": model.seen,
                    "most": model.most,
                    "regions": sorted(model.regions),
                    "devices": model.devices,
                }
            ).encode(),
            {},
        )
    if path.startswith("/v2/systemsharedmemory/region/") and method == "POST":
        _, _, _, _, name, what = path.split("/")
        if what == "register":
            asked = json.loads(body)
            model.regions[name] = (asked["key"], asked["offset"], asked["byte_size"])
        else:
            model.regions.pop(name, None)
        return 200, b"", {}
    if path.startswith("/v2/cudasharedmemory/region/") and method == "POST":
        _, _, _, _, name, what = path.split("/")
        if what == "register":
            asked = json.loads(body)
            handle = base64.b64decode(asked["raw_handle"]["b64"])
            assert len(handle) == 64, "a handle of 64 bytes"
            file = "/" + handle.rstrip(b"\0").decode()  # stand_in_device.c
            model.regions[name] = (file, 0, asked["byte_size"])
            model.devices.append(asked["device_id"])
        else:
            model.regions.pop(name, None)
        return 200, b"", {}
    if path == "/plain":  # a server of another kind: an answer in chunks
        await model.infer(np.zeros((1, 1), "f4"), None, "plain")
        return 200, body, {"Transfer-Encoding": "chunked"}
    return 404, b"no such page", {}


async def serve_http(
    model: Model, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            drop = model.settings["drop_after"]
            if drop is not None and path.endswith("/infer") and model.requests >= drop:
                writer.close()
                return
            status, data, more = await answer(model, method, path, body, headers)
            if more.get("Transfer-Encoding") == "chunked":
                half = len(data) // 2
                data = (
                    b"".join(
                        b"%x\r\n%s\r\n" % (len(part), part)
                        for part in (data[:half], data[half:])
                        if part
                    )
                    + b"0\r\n\r\n"
                )
            else:
                more = {**more, "Content-Length": str(len(data))}
            lines = "".join(f"{name}: {value}\r\n" for name, value in more.items())
            writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + data)
            await writer.drain()
            if headers.get("connection", "").lower() == "close":
                writer.close()
                return
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(ready: Path, settings: dict) -> None:
    model = Model(settings)
    tls = bool(settings["cert"])
    host = settings["host"]

    async def handle(raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return await infer_grpc(model, raw, context)

    async def configure(_: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return await config_grpc(model, context)

    handlers = {
        "ModelInfer": grpc.unary_unary_rpc_method_handler(handle),
        "ModelConfig": grpc.unary_unary_rpc_method_handler(configure),
    }
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("inference.GRPCInferenceService", handlers),)
    )
    context = None
    if tls:
        pair = (Path(settings["key"]).read_bytes(), Path(settings["cert"]).read_bytes())
        port = server.add_secure_port(f"{host}:0", grpc.ssl_server_credentials([pair]))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(settings["cert"], settings["key"])
    else:
        port = server.add_insecure_port(f"{host}:0")
    await server.start()
    http = await asyncio.start_server(lambda r, w: serve_http(model, r, w), host, 0, ssl=context)
    http_port = http.sockets[0].getsockname()[1]
    name = "localhost" if tls else host
    tensor = {"dtype": "FP32", "shape": [-1]}
    description = {
        "v": 1,
        "pid": os.getpid(),
        "host": "",
        "grpc": f"{name}:{port}",
        "http": f"{'https://' if tls else ''}{name}:{http_port}",
        "token": settings["token"],
        "tls": tls,
        "ca": settings["cert"],
        "device": "cpu",
        "versions": {},
        "models": [
            {
                "name": "double",
                "version": "1",
                "max_batch_size": 64,
                "instances": settings["slots"],
                "inputs": [{"name": "x", **tensor}],
                "outputs": [{"name": "y", **tensor, "shape": settings.get("output_shape", [-1])}],
            }
        ],
    }
    temporary = ready.with_suffix(".tmp")
    temporary.write_text(json.dumps(description))
    temporary.rename(ready)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(
        main(
            Path(sys.argv[1]),
            {**SETTINGS, **json.loads(sys.argv[2] if len(sys.argv) > 2 else "{}")},
        )
    )
