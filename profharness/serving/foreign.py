"""A foreign server, which is not our own: what is known of it, as a ready file like our server's.

`--server-command CMD --ready URL` starts any server and waits for the URL to answer 200; `--url`
names one that runs. Models are read from its KServe endpoints; a server that has none (vLLM, a
plain HTTP service) is described without models. gRPC alone cannot be asked from here: the load
generator then asks by itself.
"""

from __future__ import annotations

import socket
import ssl
import urllib.parse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from profharness.errors import Unavailable, UsageError
from profharness.serving import kserve, repository
from profharness.serving.kserve import OPEN, Access
from profharness.serving.ready import VERSION, Model, Ready

GRPC_PORT, METRICS_PORT = 8001, 8002  # Triton's own, unless its command says otherwise
CONNECT_S = 5.0
_REPOSITORY_OPTIONS = ("--model-repository", "--model-store")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Address(msgspec.Struct, frozen=True):
    """Where a server listens, as asked for: host:port or "" for each protocol; `tls` as the URL's
    scheme says.
    """

    grpc: str = ""
    http: str = ""
    tls: bool = False

    @property
    def base(self) -> str:
        """For KServe's HTTP endpoints."""
        return f"{'https' if self.tls else 'http'}://{self.http}"


def parse_url(url: str, protocol: str) -> Address:
    """`host:port`, `grpc://...`, `grpcs://...`, `http://...` or `https://...`; a bare one is of
    `protocol` (grpc or http).

    Raises UsageError for what is no address.
    """
    parts = urllib.parse.urlsplit(url if "://" in url else f"{protocol}://{url}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if (
        parts.scheme not in ("grpc", "grpcs", "http", "https")
        or not parts.hostname
        or (port is None and parts.scheme.startswith("grpc"))
    ):
        raise UsageError(
            f"--url: {url!r} is not a server's address",
            "write HOST:PORT, grpc://HOST:PORT or http://HOST:PORT",
        )
    tls = parts.scheme.endswith("s")
    place = f"{_host(parts.hostname)}:{port or (443 if tls else 80)}"
    return (
        Address(grpc=place, tls=tls)
        if parts.scheme.startswith("grpc")
        else Address(http=place, tls=tls)
    )


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def address_of(ready_url: str, command: Sequence[str]) -> Address:
    """The addresses of a server that was started by `command`, from its ready URL; gRPC where the
    command shows Triton or names its port.
    """
    found = parse_url(ready_url, "http")
    if not found.http:
        raise UsageError(
            f"--ready: {ready_url!r} is not an http address",
            "name one that answers 200 once the server can serve",
        )
    port = _option(command, ("--grpc-port",)) or (str(GRPC_PORT) if _is_triton(command) else "")
    return (
        msgspec.structs.replace(found, grpc=f"{found.http.rpartition(':')[0]}:{port}")
        if port
        else found
    )


def repository_of(command: Sequence[str]) -> Path | None:
    """The model repository that a server's command names, where it is a folder of this machine."""
    named = _option(command, _REPOSITORY_OPTIONS)
    return Path(named) if named and Path(named).is_dir() else None


def find(ready_url: str, command: Sequence[str], model: str) -> bytes | None:
    """None until `ready_url` answers 200; then the ready file's contents. To be called until it
    gives some.

    Raises Unavailable where the server is ready and has no such model.
    """
    if not kserve.answers(ready_url):
        return None
    address = address_of(ready_url, command)
    metrics = ""
    if _is_triton(command):
        host = address.http.rpartition(":")[0]
        port = _option(command, ("--metrics-port",)) or METRICS_PORT
        metrics = f"http://{host}:{port}/metrics"
    return _encoded(address, _models(address, model, command), metrics=metrics)


def describe(url: str, protocol: str, model: str, access: Access = OPEN) -> bytes:
    """The ready file's contents for a server that runs at `url`.

    Raises Unavailable where it does not answer, has no such model, refuses the token, or shows a
    certificate of no known authority; UsageError for a file of authorities that holds none.
    """
    address = parse_url(url, protocol)
    if address.tls:
        _require_trust(address, access, url)
    if address.http:
        kserve.require_token(f"{address.base}/v2", access)
    models = () if not address.http else _models(address, model, (), access)
    if address.http and model and not models:
        _require_listener(address.http, url)
        raise Unavailable(
            f"{url}: the server does not speak KServe v2 over HTTP, "
            f"so what model {model!r} takes is not known",
            "name its gRPC address, or send it plain requests with --body FILE",
        )
    return _encoded(address, models, access=access)


def _require_trust(address: Address, access: Access, url: str) -> None:
    """A TLS handshake of its own, since a gRPC library says of a certificate only that nothing
    answers. Who does not answer is left to the questions that follow.
    """
    try:
        context = ssl.create_default_context(cafile=access.ca or None)
    except OSError as error:
        raise UsageError(
            f"--ca: {access.ca} holds no certificate of an authority", "name a PEM file"
        ) from error
    context.set_alpn_protocols(["h2" if address.grpc else "http/1.1"])
    host, _, port = (address.grpc or address.http).rpartition(":")
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S) as plain,
            context.wrap_socket(plain, server_hostname=host.strip("[]")),
        ):
            return
    except ssl.SSLCertVerificationError as error:
        raise Unavailable(
            f"{url}: the server's certificate is not trusted ({error.verify_message.rstrip('.')})",
            "name the certificate of its authority with --ca FILE, "
            "and the server as the certificate does",
        ) from error
    except OSError:
        return


def _require_listener(place: str, url: str) -> None:
    """Raises Unavailable where nothing accepts connections: whatever is asked then would be blamed
    on something else.
    """
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError as error:
        raise Unavailable(
            f"{url}: no server can be reached there ({error.strerror or error})",
            "look whether it runs, and at host and port",
        ) from error


def _models(
    address: Address, model: str, command: Sequence[str], access: Access = OPEN
) -> tuple[Model, ...]:
    """The one model that is asked for: from the server itself, else from its repository; none of a
    server without models.
    """
    if not model:
        return ()
    if not kserve.answers(f"{address.base}/v2", access):
        return _configured(model, command)
    found = kserve.model(address.base, model, access)
    configured = _configured(model, command)
    if configured and not found.instances:
        return (
            msgspec.structs.replace(
                found,
                instances=configured[0].instances,
                max_batch_size=configured[0].max_batch_size,
                inputs=configured[0].inputs or found.inputs,
                outputs=configured[0].outputs or found.outputs,
            ),
        )
    return (found,)


def _configured(model: str, command: Sequence[str]) -> tuple[Model, ...]:
    folder = repository_of(command)
    found = repository.find(folder, model) if folder is not None else None
    return () if found is None else (found.model,)


def _encoded(
    address: Address, models: tuple[Model, ...], *, access: Access = OPEN, metrics: str = ""
) -> bytes:
    host = (address.http or address.grpc).rpartition(":")[0]
    # the ready file's `tls` is for gRPC; HTTP over TLS shows in its address
    http = f"https://{address.http}" if address.http and address.tls else address.http
    ready = Ready(
        v=VERSION,
        host=socket.gethostname() if host in _LOOPBACK else host,
        grpc=address.grpc,
        http=http,
        metrics=metrics,
        ca=access.ca,
        tls=address.tls and bool(address.grpc),
        opened=host not in _LOOPBACK,
        models=models,
    )
    return msgspec.json.encode(ready)


def _is_triton(command: Sequence[str]) -> bool:
    return any(Path(word).name == "tritonserver" for part in command for word in part.split())


def _option(command: Sequence[str], names: Sequence[str]) -> str:
    """The value of `--name VALUE` or `--name=VALUE`, also inside one quoted word (`sh -c
    "..."`).
    """
    words = [word for part in command for word in part.split()]
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else next(iter(words[at + 1 : at + 2]), "")
    return ""
