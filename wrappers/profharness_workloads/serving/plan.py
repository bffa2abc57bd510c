"""What a model server is asked to serve, and how: read from the spec file that PROFHARNESS_SPEC
names.

The file's own fields describe one model; with `models`, a list of objects, each holds what differs
for one of several. A model's fields are those of protocol.Spec and of Served; the server's own are
those of Door.
"""

from __future__ import annotations

import json
import re
from typing import Any, Mapping, NamedTuple, Sequence, Tuple

from profharness_workloads.shared import models
from profharness_workloads.shared.protocol import BAD_INPUT, Refusal, Spec, one_sentence, spec_of

NAME = re.compile(r"[A-Za-z0-9._-]+")
FROM_REPOSITORY = ("triton", "repository")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Served(NamedTuple):
    """One model: what it is (`spec`), and how it is served. `preferred` batch sizes: () leaves the
    choice to the server. `ragged` says who batches requests of different lengths: with `triton`,
    Triton does, and the model runs from a repository; with `repository` nobody does, and it runs
    from there too.
    """

    name: str
    spec: Spec
    instances: int = 1
    max_batch_size: int = 256
    queue_delay_us: int = 0
    preferred: Tuple[int, ...] = ()
    allow_fallback: bool = False
    ragged: str = "none"

    @property
    def devices(self) -> Tuple[str, ...]:
        """The devices that its instances take in turn."""
        return tuple(self.spec.device.split(","))


class Door(NamedTuple):
    """Where the server listens. Port 0 has a free one chosen. An empty `token` means no token on
    loopback and a new one elsewhere.
    """

    host: str = "127.0.0.1"
    grpc_port: int = 0
    http_port: int = 0
    metrics_port: int = 0
    token: str = ""
    tls_cert: str = ""
    tls_key: str = ""

    @property
    def opened(self) -> bool:
        """Whether other machines may reach it."""
        return self.host not in LOOPBACK


class Plan(NamedTuple):
    """`records` says whether executions are written for the points of a run. `repository` is the
    folder of models that Triton runs itself, "" where none was named.
    """

    models: Tuple[Served, ...]
    door: Door
    records: bool = True
    repository: str = ""

    @property
    def in_repository(self) -> bool:
        """Whether Triton runs the models itself."""
        return any(model.ragged in FROM_REPOSITORY for model in self.models)


def read(path: str) -> Plan:
    """Raises Refusal that names the field that is wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            raw = json.load(file)
        common = {name: value for name, value in raw.items() if name != "models"}
        listed = [_served({**common, **model}) for model in raw.get("models") or [{}]]
        door = Door(**{name: raw[name] for name in Door._fields if raw.get(name) is not None})
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Refusal(
            "%s: not a server's spec (%s)" % (path, one_sentence(error)), code=BAD_INPUT
        ) from error
    _check(listed, door)
    repository = str(raw.get("repository") or "")
    return Plan(tuple(listed), door, bool(raw.get("records", True)), repository)


def _served(raw: Mapping[str, Any]) -> Served:
    spec = spec_of(raw)
    how = {
        name: raw[name]
        for name in (
            "instances",
            "max_batch_size",
            "queue_delay_us",
            "allow_fallback",
            "ragged",
        )
        if raw.get(name) is not None
    }
    return Served(
        raw.get("name") or default_name(spec),
        spec,
        preferred=tuple(raw.get("preferred") or ()),
        **how,
    )


def default_name(spec: Spec) -> str:
    """A built-in model's own name; a file's, or that of the folder that holds its numbered version,
    as in a repository.
    """
    if models.is_built_in(spec) or is_sleep(spec.model):
        return spec.model.split(":")[0]
    parts = spec.model.replace("\\", "/").rstrip("/").split("/")
    stem = parts[-1].rsplit(".", 1)[0]
    if len(parts) > 2 and parts[-2].isdigit():
        stem = parts[-3]
    return re.sub(r"[^A-Za-z0-9._-]", "_", stem) or "model"


def is_sleep(model: str) -> bool:
    return model.split(":", maxsplit=1)[0] == "sleep"


def _check(listed: Sequence[Served], door: Door) -> None:
    names = [model.name.lower() for model in listed]
    for model in listed:
        if not NAME.fullmatch(model.name):
            raise Refusal(
                "a model cannot be named %r" % model.name,
                "use letters, digits, dots, dashes and underscores",
            )
        if names.count(model.name.lower()) > 1:
            raise Refusal(
                "two models would be named %s" % model.name, "give each a name: NAME=MODEL"
            )
        for field in ("instances", "max_batch_size"):
            _whole(field, getattr(model, field), 1)
        _whole("queue_delay_us", model.queue_delay_us, 0)
    for field in ("grpc_port", "http_port", "metrics_port"):
        port = getattr(door, field)
        _whole(field, port, 0)
        if port > 65535:
            raise Refusal("%s: there is no port %d" % (field, port))
    if bool(door.tls_cert) != bool(door.tls_key):
        raise Refusal(
            "a certificate needs its key, and a key its certificate",
            "give both --tls-cert and --tls-key",
        )


def _whole(field: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Refusal("%s must be a whole number from %d on, not %r" % (field, least, value))


def dtype_name(dtype: str) -> str:
    """The KServe v2 name of a numpy type (Open Inference Protocol, "Tensor Data Types")."""
    if dtype not in KSERVE_TYPES:
        raise Refusal("tensors of type %s cannot be served" % dtype, code=BAD_INPUT)
    return KSERVE_TYPES[dtype]


KSERVE_TYPES = {
    "float64": "FP64",
    "float32": "FP32",
    "float16": "FP16",
    "int64": "INT64",
    "int32": "INT32",
    "int16": "INT16",
    "int8": "INT8",
    "uint8": "UINT8",
    "bool": "BOOL",
}
