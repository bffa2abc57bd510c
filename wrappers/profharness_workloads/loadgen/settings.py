"""What the load worker is told: the client's spec, the server's own description of itself, and each
level.
"""

from __future__ import annotations

import json
import os
import ssl
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from profharness_workloads.loadgen import grpc_model
from profharness_workloads.loadgen.connection import resolved, tls_context
from profharness_workloads.loadgen.messages import numpy_type
from profharness_workloads.shared.inputs import TensorSpec
from profharness_workloads.shared.protocol import BAD_INPUT, MISSING, Asked, Refusal, one_sentence

GRPC, HTTP = "grpc", "http"
CHOICES = {
    "protocol": (GRPC, HTTP),
    "shared_memory": ("none", "system", "cuda", "hip"),
    "compression": ("none", "gzip", "deflate"),
    "ragged": ("none", "padded", "grouped", "triton"),
}
PRIVATE = "PROFHARNESS_PRIVATE"
"""What no file holds: a JSON object with the servers' `token` and with settings that are secret, in
the environment of the load generator alone.
"""
HTTP_TOKEN, GRPC_TOKEN = "triton-access-token", "triton-grpc-protocol-triton-access-token"


class ClientSpec(NamedTuple):
    """What stays the same over all levels. `ready` names one file per server; `headers` go with
    every request.

    `models`, pairs of name and label, are asked all at once; else `model` is. `body` is for servers
    that do not speak KServe: a file that is sent as it is (.jsonl: its lines in turn) to `path`.
    `device_id` counts the devices whose memory is shared.
    """

    ready: Tuple[str, ...]
    model: str = ""
    backend: str = ""
    protocol: str = GRPC
    shared_memory: str = "none"
    compression: str = "none"
    inputs: str = "normal"
    shapes: Mapping[str, Tuple[int, ...]] = {}
    seed: int = 0
    clients: int = 1
    distinct: int = 16
    timeout_s: float = 30.0
    managed: bool = False
    ragged: str = "none"
    headers: Mapping[str, str] = {}
    body: str = ""
    path: str = ""
    device_id: int = 0
    models: Tuple[Tuple[str, str], ...] = ()


class Model(NamedTuple):
    """A model as the server describes it. `dims` of the inputs are without the batch axis where
    `max_batch_size` is not 0.

    `instances` is 0 and `gathers`, the items that the server puts together at most, None where it
    does not say.
    """

    name: str
    version: str
    max_batch_size: int
    inputs: Tuple[TensorSpec, ...]
    datatypes: Tuple[str, ...]
    outputs: Tuple[Mapping[str, Any], ...]
    instances: int = 0
    gathers: Optional[int] = None


class Server(NamedTuple):
    """One server-ready.json. `pid` is None where the server's process cannot be seen from here;
    `tls` is gRPC's.
    """

    pid: Optional[int]
    host: str
    grpc: str
    http: str
    token: str
    tls: bool
    http_tls: bool
    ca: str
    models: Tuple[Mapping[str, Any], ...]
    device: str
    versions: Mapping[str, str]

    def address(self, protocol: str) -> str:
        """HOST:PORT of a protocol. Raises Refusal when the server does not offer it."""
        address = self.grpc if protocol == GRPC else self.http
        if not address:
            raise Refusal(
                "the server does not offer %s" % protocol, "choose the other --protocol", MISSING
            )
        return address

    def token_header(self, protocol: str) -> Dict[str, str]:
        """The header that carries this server's token under a protocol; empty without a token."""
        if not self.token:
            return {}
        return {GRPC_TOKEN if protocol == GRPC else HTTP_TOKEN: self.token}

    def tls_context(self, protocol: str) -> Optional[ssl.SSLContext]:
        """The context of TLS; None where that protocol is not encrypted. Raises Refusal for a
        certificate file that cannot be used.
        """
        if not (self.tls if protocol == GRPC else self.http_tls):
            return None
        try:
            return tls_context(self.ca, protocol == GRPC)
        except (OSError, ssl.SSLError) as error:
            raise Refusal(
                "%s: not a usable certificate (%s)" % (self.ca, error), code=BAD_INPUT
            ) from error

    def resolved(self, protocol: str) -> Tuple[int, Tuple[Any, ...]]:
        """The (family, address) of a protocol. Raises Refusal for an address that names no host."""
        address = self.address(protocol)
        try:
            return resolved(address)
        except (OSError, ValueError) as error:
            raise Refusal(
                "%s: no such address (%s)" % (address, one_sentence(error)), code=MISSING
            ) from error

    def model(self, name: str) -> Model:
        """Raises Refusal that lists the models when there is none of that name."""
        by_name = {str(description.get("name")): description for description in self.models}
        if not name and len(by_name) == 1:
            name = next(iter(by_name))
        if name not in by_name:
            raise Refusal(
                "the server has no model %r" % name,
                "it has: %s" % (", ".join(sorted(by_name)) or "none"),
            )
        return _model(by_name[name])


class Level(NamedTuple):
    """One level as asked. `concurrency` is for a closed loop, `rate` (requests/s) and `arrivals`
    for an open one. A level that cannot reach `least_items_per_s` ends early; 0 for any.
    """

    id: str
    batch_size: int
    mode: str
    concurrency: int
    rate: float
    arrivals: str
    think_ns: int
    seconds: float
    warmup_s: float
    min_requests: int
    seed: int
    ragged: str
    least_items_per_s: float = 0.0


def _model(raw: Mapping[str, Any]) -> Model:
    described = list(raw.get("inputs") or ())
    specs = tuple(
        TensorSpec(
            str(tensor["name"]),
            numpy_type(_datatype(tensor)),
            tuple(None if n < 0 else int(n) for n in tensor["shape"]),
        )
        for tensor in described
    )
    return Model(
        str(raw["name"]),
        str(raw.get("version") or ""),
        int(raw.get("max_batch_size") or 0),
        specs,
        tuple(_datatype(tensor) for tensor in described),
        tuple(raw.get("outputs") or ()),
        int(raw.get("instances") or 0),
        _gathers(raw),
    )


def _gathers(raw: Mapping[str, Any]) -> Optional[int]:
    """A server whose configuration is known to have no dynamic batching runs each request by
    itself.
    """
    if not raw.get("instances") or "queue_delay_us" not in raw:
        return None
    return int(raw.get("max_batch_size") or 0) or 1 if raw["queue_delay_us"] is not None else 1


def _datatype(tensor: Mapping[str, Any]) -> str:
    """KServe's name; configurations write TYPE_FP32."""
    return str(tensor.get("dtype") or tensor.get("datatype") or "FP32").replace("TYPE_", "")


def private_settings() -> Mapping[str, Any]:
    """What stands in PRIVATE; empty without it. Raises Refusal for anything but an object."""
    try:
        found = json.loads(os.environ.get(PRIVATE) or "{}")
    except ValueError as error:
        raise Refusal("%s holds no JSON" % PRIVATE, code=BAD_INPUT) from error
    if not isinstance(found, dict):
        raise Refusal("%s holds no object" % PRIVATE, code=BAD_INPUT)
    return found


def read_client_spec(path: str) -> ClientSpec:
    """Fields that this version does not know are ignored. Raises Refusal for a file that is no spec
    or a choice that is none.
    """
    try:
        with open(path, encoding="utf-8") as file:
            raw = json.load(file)
        fields = {name: raw[name] for name in ClientSpec._fields if raw.get(name) is not None}
        ready = fields.get("ready") or ()
        fields["ready"] = (ready,) if isinstance(ready, str) else tuple(ready)
        fields["shapes"] = {
            name: tuple(int(d) for d in dims) for name, dims in (raw.get("shapes") or {}).items()
        }
        fields["models"] = tuple((str(name), str(label)) for name, label in raw.get("models") or ())
        spec = ClientSpec(**fields)
        return checked(
            spec._replace(clients=max(1, int(spec.clients)), distinct=max(1, int(spec.distinct)))
        )
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Refusal(
            "%s: not a client's spec (%s)" % (path, one_sentence(error)), code=BAD_INPUT
        ) from error


def checked(spec: ClientSpec) -> ClientSpec:
    """The spec itself. Raises Refusal for a value outside CHOICES and for choices that exclude each
    other.
    """
    for name, allowed in CHOICES.items():
        if getattr(spec, name) not in allowed:
            raise Refusal(
                "%s must be one of %s, not %r" % (name, ", ".join(allowed), getattr(spec, name))
            )
    if not spec.ready:
        raise Refusal("the client's spec names no server")
    if not spec.timeout_s > 0:
        raise Refusal("timeout_s must be above 0, not %r" % (spec.timeout_s,))
    if spec.shared_memory != "none" and spec.compression != "none":
        raise Refusal("tensors in shared memory are not sent, so there is nothing to compress")
    return spec


def read_server(path: str) -> Server:
    """Raises Refusal for a file that does not describe a server."""
    try:
        with open(path, encoding="utf-8") as file:
            raw = json.load(file)
        return Server(
            int(raw["pid"]) if raw.get("pid") else None,
            str(raw.get("host") or ""),
            str(raw.get("grpc") or ""),
            _address(str(raw.get("http") or "")),
            str(raw.get("token") or private_settings().get("token") or ""),
            bool(raw.get("tls")),
            str(raw.get("http") or "").startswith("https://"),
            str(raw.get("ca") or ""),
            tuple(raw.get("models") or ()),
            str(raw.get("device") or ""),
            dict(raw.get("versions") or {}),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refusal(
            "%s: does not describe a server (%s)" % (path, one_sentence(error)), code=BAD_INPUT
        ) from error


def _address(url: str) -> str:
    """HOST:PORT of an address that may be written as a URL."""
    return url.split("://", 1)[-1].split("/", 1)[0]


def judged(asked: Asked, seed: int = 0, ragged: str = "none") -> Level:
    """The level's parameters, typed; `seed` and `ragged` are the spec's. Raises ValueError that
    names the parameter.
    """
    params = asked.params
    mode = params.get("mode") or ("open" if params.get("rate") else "closed")
    if mode not in ("closed", "open"):
        raise ValueError("mode must be closed or open, not %r" % (mode,))
    return Level(
        asked.id,
        _whole(params, "batch_size", 1),
        str(mode),
        _whole(params, "concurrency", 1),
        float(params.get("rate") or 0.0),
        str(params.get("arrivals") or "constant"),
        int(float(params.get("think_ms") or 0.0) * 1e6),
        _seconds(params, "seconds", 5.0),
        _seconds(params, "warmup_s", 1.0),
        int(params.get("min_requests") or 0),
        int(seed if params.get("seed") is None else params["seed"]),
        str(params.get("ragged") or ragged),
        float(params.get("least_items_per_s") or 0.0),
    )


def _whole(params: Mapping[str, Any], name: str, default: int) -> int:
    value = params.get(name)
    value = default if value is None else value
    if not isinstance(value, int) or value < 1:
        raise ValueError("%s must be a whole number from 1 on, not %r" % (name, value))
    return value


def _seconds(params: Mapping[str, Any], name: str, default: float) -> float:
    value = params.get(name)
    seconds = default if value is None else float(value)
    if seconds < 0:
        raise ValueError("%s must not be negative" % name)
    return seconds


def _described(server: Server, name: str, headers: Mapping[str, str]) -> Server:
    """The server with its model; asked for over gRPC where its description names none. Raises
    Refusal.
    """
    if server.models or not server.grpc or not name:
        return server
    try:
        more = {**server.token_header(GRPC), **headers}
        description = grpc_model.ask(
            server.grpc, name, server.ca if server.tls else "", server.tls, more
        )
    except (RuntimeError, OSError, ValueError) as error:
        if grpc_model.UNREACHABLE in str(error):
            raise Refusal(
                "%s: no server can be reached there (%s)" % (server.grpc, error),
                "look whether it runs, and at host and port",
                MISSING,
            ) from error
        raise Refusal(
            "%s does not describe model %s: %s" % (server.grpc, name, error),
            "look at --model, at --url, and at the token (PROFHARNESS_TOKEN or --token-file)",
            MISSING,
        ) from error
    return server._replace(models=(description,))


def same_model(servers: Sequence[Server], name: str, headers: Mapping[str, str]) -> Model:
    """The model that all servers offer alike. Raises Refusal when they differ."""
    models = [_described(server, name, headers).model(name) for server in servers]
    if any(model.inputs != models[0].inputs for model in models):
        raise Refusal("the servers describe model %s differently" % models[0].name, code=BAD_INPUT)
    return models[0]
