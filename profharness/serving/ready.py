"""The ready file of a served pass: where the server listens and what it serves. Our server writes
it; for others the harness does.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from profharness.errors import InputError

VERSION = 1
HTTP_TOKEN = "triton-access-token"  # noqa: S105  the name of a header, not a secret
GRPC_TOKEN = "triton-grpc-protocol-triton-access-token"  # noqa: S105  a header's name, no secret


class Tensor(msgspec.Struct, frozen=True):
    """An input or output. `dtype` as KServe v2 names it (FP32, INT64 ...); free dimensions are -1.

    `shape` is without the batch where the model's `max_batch_size` is not 0.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]


class Model(msgspec.Struct, frozen=True):
    """One served model. `max_batch_size` 0: the server knows no batch axis; `instances` 0: it does
    not say.
    """

    name: str
    version: str = "1"
    max_batch_size: int = 0
    instances: int = 0
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    backend: str = ""
    device: str = ""
    queue_delay_us: int | None = None


class Ready(msgspec.Struct, frozen=True):
    """`grpc` and `http` are host:port, "" where there is none; `tls` is gRPC's, HTTP over TLS is
    written https://host:port. `token` and `ca` (a file) "" where none is needed.

    `server_pid` is the process that speaks the protocol, a child of `pid` in our server. `models`
    is empty for a plain HTTP server. `repository` is the folder of models that Triton runs itself.
    """

    v: int
    host: str = ""
    grpc: str = ""
    http: str = ""
    metrics: str = ""
    token: str = ""
    tls: bool = False
    ca: str = ""
    pid: int | None = None
    server_pid: int | None = None
    opened: bool = False
    models: tuple[Model, ...] = ()
    device: str = ""
    fallback: str = ""
    versions: dict[str, str] = {}
    repository: str = ""

    @property
    def reach(self) -> str:
        """The name by which other machines would call it: the node's own for one that is open to
        them.
        """
        return (
            self.host
            if self.opened
            else (self.grpc or self.http.rpartition("/")[2]).rpartition(":")[0]
        )


def read(path: Path) -> Ready:
    """Raises InputError for a file that is no ready file of this version."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Ready)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InputError(
            f"{path}: not a server's ready file ({error})",
            "the server and profharness may be of different versions",
        ) from error
    if found.v != VERSION:
        raise InputError(
            f"{path}: a ready file of version {found.v}, not {VERSION}",
            "use a server of the same profharness",
        )
    return found


def encode(ready: Ready) -> bytes:
    """As the file holds it."""
    return msgspec.json.encode(ready)
