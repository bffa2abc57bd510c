"""The HTTP server of `telemetry --openmetrics`, by prometheus-client (extra `export`).

Scrapes never touch the sampler or its file: they get the values of the last look, at most a second
old, so that many of them cost the sampling nothing. Nothing of any process is in the answer, no
command line and no environment.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from types import TracebackType
from typing import TYPE_CHECKING, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from profharness.errors import Unavailable
from profharness.measure.exposing.address import Address
from profharness.rundir.series.growing import GrowingSamples, Reading
from profharness.trace.model import Device
from profharness.trace.series.names import DEVICE_INFO, INFO, device_labels

if TYPE_CHECKING:
    from prometheus_client.core import Metric

EVERY_S = 1.0
SILENT_S = 10.0  # that a client may keep a thread waiting


class Exposition:
    """A context in which the address is served; `look` renews what it says, and may be called as
    often as one likes.

    Entering raises Unavailable where prometheus-client is missing or the address cannot be had.
    """

    def __init__(self, address: Address, hz: float, *, followed: bool) -> None:
        """`followed` says that a command runs, without which its processes have no values."""
        self.address = address
        self._followed = followed
        self._hz = hz
        self._next = 0.0
        self._samples: GrowingSamples | None = None
        self._families: tuple[Metric, ...] = ()

    def __enter__(self) -> Self:
        self._server = _server(self.address, self)
        self.address = Address(self.address.host, self._server.server_port)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def look(self, samples: Path) -> None:
        """Read what the sampler has written, where a second has passed since the last time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_S
        if self._samples is None:
            self._samples = GrowingSamples(samples, self._hz)
        readings = self._samples.read()
        if not self._followed:
            readings = tuple(one for one in readings if not of_a_command(one.metric))
        self._families = tuple(families(readings, self._samples))

    def collect(self) -> Iterable[Metric]:
        """What prometheus-client asks for at each scrape."""
        return self._families


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each client. What a client does wrong is nobody's business but its own."""

    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that goes away or stays silent is no fault of ours."""

    def server_bind(self) -> None:
        """Without asking the network for this host's name, as the base class does."""
        TCPServer.server_bind(self)
        address = self.server_address
        self.server_name, self.server_port = address[:2]  # type: ignore[assignment]  # text by TCP
        self.setup_environ()


class _Handler(WSGIRequestHandler):
    timeout = SILENT_S

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Print no line per scrape."""


def of_a_command(metric: str) -> bool:
    """Whether a metric speaks of the workload's processes, or of all others."""
    name = metric.partition(":")[0].partition("_wait")[0]
    return name.endswith(("_tree", "_other")) or name.startswith("tree_")


def families(readings: Iterable[Reading], samples: GrowingSamples) -> Iterator[Metric]:
    """The readings by name, and two families that describe the sampler and the devices."""
    from prometheus_client.core import InfoMetricFamily, Metric

    found: dict[str, Metric] = {}
    given: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for _, series, device, value in readings:
        labels = {**dict(series.labels), **_labels(samples.host, device)}
        key = (series.family, tuple(sorted(labels.items())))
        if key in given:
            continue  # a second source of the same: the first one counts, as everywhere
        given.add(key)
        family = found.setdefault(
            series.family, Metric(series.family, series.help, series.kind, series.unit)
        )
        family.add_sample(series.sample, labels, value)
    if not found:
        return
    yield from found.values()
    sampler = InfoMetricFamily(INFO, "who samples: profharness and its version")
    sampler.add_metric((), {"host": samples.host, "version": samples.version})
    yield sampler
    about = InfoMetricFamily(DEVICE_INFO, "what each device is")
    for one in samples.devices:
        about.add_metric((), {**_labels(samples.host, one), "name": one.name, "vendor": one.vendor})
    if samples.devices:
        yield about


def _labels(host: str, device: Device | None) -> dict[str, str]:
    return {"host": host, **device_labels(device)}


def _server(address: Address, collector: Exposition) -> _Server:
    try:
        from prometheus_client import CollectorRegistry, make_wsgi_app
    except ImportError as error:
        raise Unavailable(
            f"--openmetrics needs prometheus-client ({error})",
            "pip install 'profharness[export]'",
        ) from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        kind = type("Server", (_Server,), {"address_family": family})
        return make_server(*address, make_wsgi_app(registry), kind, _Handler)
    except OSError as error:
        raise Unavailable(
            f"--openmetrics: {address.host}:{address.port} cannot be listened on "
            f"({error.strerror or error})",
            f"choose another port, or find out who has it: ss -ltnp 'sport = :{address.port}'",
        ) from error
