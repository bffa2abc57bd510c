"""Counters of an exporter: a real HTTP server gives what omnistat and AMD's Device Metrics Exporter
do.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness.analysis.power.device_counters import device_counter_findings
from profharness.errors import Unavailable, UsageError
from profharness.layers import exporter
from profharness.rundir import telemetry
from profharness.telemetry.sources import Target
from profharness.telemetry.sources.amd.devices import Die
from profharness.telemetry.sources.amd.exporter import answer, family, known
from profharness.telemetry.sources.amd.exporter.answer import ExporterError
from profharness.telemetry.sources.amd.exporter.source import ExporterSource
from profharness.trace.model import Trace
from tests.telemetry import emulated
from tests.telemetry.running import Sampler, wait_for

Page = Callable[[], str | tuple[int, str]]
CU, DIES = 304, 8
DME = """# HELP gpu_prof_sm_active The percentage of GPUTime
# TYPE gpu_prof_sm_active gauge
gpu_prof_sm_active{card_model="0x74a1",gpu_id="0",serial_number="x}\\"y",hostname="n"} 37.5
amd_gpu_prof_tensor_active_percent{gpu_id="0",serial_number="x"} 12.25
gpu_prof_occupancy_percent{gpu_id="0",serial_number="x"} 50
gpu_prof_simd_utilization{gpu_id="0",serial_number="x"} 0.625
gpu_prof_gui_util_percent{gpu_id="0",serial_number="x"} NaN
gpu_prof_sm_active{gpu_id="1"} 99
gpu_power_usage{gpu_id="0",serial_number="x"} 600
"""
DME_TRUTH = {
    "exporter_valu_busy": 0.375,
    "exporter_mfma_util": 0.1225,
    "exporter_occupancy": 0.5,
    "exporter_simd_utilization": 0.625,
}


def omnistat(cycles: int, *cards: int, only: tuple[str, ...] = ()) -> str:
    """After so many cycles of a die: a quarter of the units is active, with 8 of 32 waves each."""
    active = CU // 4
    totals = {
        "GRBM_COUNT": DIES * cycles,
        "GRBM_GUI_ACTIVE": DIES * cycles // 2,
        "SQ_BUSY_CU_CYCLES": active * cycles,
        "SQ_WAVE_CYCLES": active * 8 * cycles // 4,
        "SQ_VALU_MFMA_BUSY_CYCLES": CU * 4 * cycles // 16,
        "SQ_WAVES": 77,
    }
    return "# TYPE omnistat_hardware_counter gauge\n" + "".join(
        f'omnistat_hardware_counter{{source="gpu",card="{card}",name="{name}"}} {float(total)!r}\n'
        for card in cards or (0,)
        for name, total in totals.items()
        if not only or name in only
    )


OMNISTAT_TRUTH = {"cu_active": 0.25, "cu_occupancy": 0.0625, "matrix_busy": 0.0625}


def running_totals() -> str:
    """Totals that grow at 2 GHz, in steps of 64 cycles so that all quotients are whole."""
    return omnistat(int(time.monotonic() * 2e9) // 64 * 64)


class Served:
    """A page at an address; every request is counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.paths = page, []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                served.paths.append(self.path)
                found = served.page()
                status, text = found if isinstance(found, tuple) else (200, found)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", text)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/metrics"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Page], Served]]:
    started: list[Served] = []

    def start(page: Page) -> Served:
        started.append(Served(page))
        return started[-1]

    yield start
    for served in started:
        served.stop()


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    root = str(emulated.mi300x(tmp_path / "sys").root)
    monkeypatch.setenv("PROFHARNESS_SYSFS", root)
    return root


def opened(sysfs: str, url: str) -> ExporterSource:
    (source,) = family.open_sources(Target(0, "", 10.0, sysfs, exporter=url))
    assert isinstance(source, ExporterSource)
    return source


def sampled(folder: Path, sysfs: str, served: Served, asked: int) -> Trace:
    with Sampler(
        folder, sources=("counters-exporter",), sysfs=sysfs, exporter=served.url
    ) as sampler:
        assert [one["name"] for one in sampler.ready()["sources"]] == ["counters-exporter"]
        wait_for(lambda: len(served.paths) >= asked, "requests")
        time.sleep(0.7)
        sampler.stop()
    return telemetry.read(folder / "node.samples.bin")


def values(trace: Trace, metric: str) -> np.ndarray:
    return trace.samples.value[trace.samples.metric == trace.strings.find(metric)]


@pytest.mark.slow
def test_totals_of_omnistat_become_our_figures(
    serve: Callable[[Page], Served], sysfs: str, tmp_path: Path
) -> None:
    served = serve(running_totals)
    begin = time.monotonic()
    trace = sampled(tmp_path, sysfs, served, 4)
    assert len(served.paths) <= time.monotonic() - begin + 1, "once a second at most"
    for metric, truth in OMNISTAT_TRUTH.items():
        assert len(values(trace, metric)) >= 1
        assert values(trace, metric) == pytest.approx(truth, rel=1e-9), metric
    assert not len(values(trace, "valu_busy"))
    (whose,) = [one for one in device_counter_findings(trace) if one.id.endswith("-exporter")]
    assert f"omnistat at 127.0.0.1:{served.server.server_port}" in whose.message
    assert whose.severity == "info"


@pytest.mark.slow
def test_figures_of_amds_exporter_keep_their_own_names_and_its_end_is_a_finding(
    serve: Callable[[Page], Served], sysfs: str, tmp_path: Path
) -> None:
    served = serve(lambda: DME if len(served.paths) < 3 else (503, "gone"))
    trace = sampled(tmp_path, sysfs, served, 4)
    for metric, truth in DME_TRUTH.items():
        assert set(values(trace, metric)) == {truth}, metric
    assert not len(values(trace, "exporter_gpu_util"))
    for ours in ("cu_active", "valu_busy", "matrix_busy", "cu_occupancy"):
        assert not len(values(trace, ours))
    (found,) = list(device_counter_findings(trace))
    assert (found.id, found.severity) == ("device-counters-exporter", "warning")
    assert "answers 503" in found.message
    assert "AMD's Device Metrics Exporter" in found.message


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (lambda: "gpu_power_usage 3\n", "publishes no hardware counter"),
        (lambda: "", "publishes no hardware counter"),
        (lambda: (404, "no"), "answers 404"),
        (lambda: (302, "http://127.0.0.1:1/"), "answers 302"),
        (lambda: omnistat(64, 0, 1), "which is which is not known"),
        (
            lambda: omnistat(64, only=("GRBM_COUNT", "GRBM_GUI_ACTIVE")),
            "publishes GRBM_COUNT, GRBM_GUI_ACTIVE, from which no figure follows",
        ),
        (lambda: omnistat(64, only=("SQ_BUSY_CU_CYCLES",)), "from which no figure follows"),
        (lambda: "x" * (answer.LIMIT_BYTES + 1), "longer than 8 MiB"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_before_the_run(
    serve: Callable[[Page], Served], sysfs: str, page: Page, said: str
) -> None:
    served = serve(page)
    with pytest.raises(Unavailable, match=said) as raised:
        exporter.require(served.url)
    assert raised.value.exit_code == 3
    assert len(served.paths) == 1


def test_an_exporter_that_is_absent_or_slow(
    serve: Callable[[Page], Served], sysfs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(lambda: "")
    served.stop()
    with pytest.raises(Unavailable, match="Connection refused"):
        exporter.require(served.url)
    gate = threading.Event()
    slow = serve(lambda: str(gate.wait(10)))
    with pytest.raises(ExporterError, match=r"did not answer within 0\.2 s"):
        answer.fetch(answer.parse_address(slow.url), 0.2)
    gate.set()


@pytest.mark.parametrize("head", [b"HTTP/1.0 200 OK\r\n\r\n", b""])
def test_an_answer_that_drips_ends_in_time(head: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connected, _ = listening.accept()
            with connected, contextlib.suppress(OSError):
                connected.sendall(head)
                while True:
                    connected.sendall(b"H")
                    time.sleep(0.02)

        threading.Thread(target=drip, daemon=True).start()
        port = listening.getsockname()[1]
        begin = time.monotonic()
        with pytest.raises(ExporterError, match=r"did not answer within 0\.3 s"):
            answer.fetch(answer.parse_address(f"http://127.0.0.1:{port}/"), 0.3)
        assert time.monotonic() - begin < 5


def test_each_exporter_counts_devices_in_its_own_order() -> None:
    dies = [
        Die("0", "0000:c1:00.0", "", ""),
        Die("1", "0000:05:00.0", "", "", 1, 2),
        Die("2", "0000:05:00.0", "", "", 0, 2),
    ]
    seen = {number: {"x": 1.0} for number in range(3)}
    for kind, order in ((known.OMNISTAT, "012"), (known.DME, "210")):
        found = known.in_order(known.Published(kind, seen), dies, "here")
        assert "".join(die.number for die in found) == order


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@localhost:8001/metrics",
        "http://localhost:8001/metrics?token=hunter2",
        "ftp://localhost/hunter2",
        "localhost:8001",
        "http://localhost:hunter2/",
    ],
)
def test_addresses_that_are_refused_are_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        exporter.check(url, counts=False)
    assert "hunter2" not in str(raised.value)


def test_one_profiler_at_a_time() -> None:
    with pytest.raises(UsageError, match="only one profiler"):
        exporter.check("http://localhost:8001/metrics", counts=True)


def test_repeated_and_restarting_totals_are_no_readings(
    serve: Callable[[Page], Served], sysfs: str
) -> None:
    source = opened(sysfs, serve(lambda: omnistat(64)).url)
    assert source.probe() == ()
    source.close()
    (device,) = source._of
    second = 1_000_000_000

    def new(cycles: float, at_s: int) -> bool:
        return source._is_new(device, {"GRBM_COUNT": DIES * cycles}, at_s * second)

    assert new(1e9, 1)
    assert not new(1e9, 2), "the exporter said the same again"
    assert new(5e9, 3)
    assert source._intervals == [2.0]
    assert new(2e9, 4), "it went back: the interval ends, and the reader sees it"
    assert not new(2e9 + 1e7, 5), "jitter of totals that start anew at each reading"
    assert source._resets == 1
