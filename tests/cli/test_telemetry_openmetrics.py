"""`profharness telemetry --openmetrics`: the real command over an emulated Cray node with an
MI250X, asked through real requests.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from profharness.trace.series.names import sample_names
from tests.measure.exposing.fetching import fetched, of, samples
from tests.needs import packages
from tests.telemetry import emulated
from tests.telemetry.running import ROOT, wait_for
from tests.telemetry.sources.test_pm_counters import meter
from tests.telemetry.sources.test_slingshot import ALL, nic

packages("prometheus_client")
CLASSES = {"host", "device", "card", "device_class", "interface", "vendor", "accel", "location"}


@pytest.fixture
def node(tmp_path: Path) -> Path:
    emulated.mi250x(tmp_path / "sys", emulated.State(stamp_ns=1))
    nics(tmp_path / "sys", 0)
    meter(tmp_path / "sys", 1, 100.0, at_us=1)
    return tmp_path / "sys"


def nics(sysfs: Path, more: int) -> None:
    for name in ("cxi0", "cxi1"):
        nic(sysfs, name, {counter: count + more for counter, count in ALL.items()})


@contextmanager
def serving(sysfs: Path, *words: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command and its address; killed in the end where it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "profharness", "telemetry", "--openmetrics", "0", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PROFHARNESS_SYSFS": str(sysfs),
            "TMPDIR": str(sysfs.parent),
            "SECRET_OF_MINE": "hunter2",
        },
    )
    try:
        assert process.stderr is not None
        said = re.search(r"http://127\.0\.0\.1:\d+/metrics", process.stderr.readline())
        assert said is not None
        yield process, said.group()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def shown(url: str, name: str, **labels: str) -> str:
    """The text once it has the sample."""
    return wait_for(
        lambda: text if of(text := fetched(url)[1], name, **labels) is not None else "", name
    )


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_node_is_served_and_a_signal_ends_it_without_a_trace(
    node: Path, number: signal.Signals
) -> None:
    with serving(node) as (process, url):
        first = {"card": "0", "device": emulated.FIRST}
        cxi = {"device_class": "cxi", "interface": "cxi1"}
        shown(url, "omnistat_network_rx_bytes", **cxi)
        text = shown(url, "rocm_utilization_percentage", **first)
        assert of(text, "rocm_utilization_percentage", **first) == 100
        assert of(text, "rocm_average_socket_power_watts", **first) == 324
        assert of(text, "rocm_vram_total_bytes", **first) == emulated.VRAM_MI250X
        assert of(text, "omnistat_vendor_power_watts", vendor="cray") == 800
        assert of(text, "omnistat_vendor_accel_power_watts", vendor="cray", accel="0") == 300
        assert {name for name, _ in samples(text)} <= sample_names()
        labels = {label for _, pairs in samples(text) for label, _ in pairs}
        assert labels <= CLASSES | {"version", "name"}
        assert not any("_tree" in name for name, _ in samples(text))
        nics(node, 5_000_000)
        meter(node, 2, 150.0, at_us=50_000_001)
        for name, amount, which in (
            ("omnistat_network_rx_bytes", 5_000_000, cxi),
            ("omnistat_vendor_energy_joules", 800 * 50, {"vendor": "cray"}),
        ):
            wait_for(
                lambda n=name, a=amount, w=which: (
                    of(fetched(url)[1], n, **w) == pytest.approx(a, rel=1e-6)
                ),
                name,
            )
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (0, "", "")
    assert [path.name for path in node.parent.iterdir()] == ["sys"]  # nothing is kept


def test_it_serves_beside_a_recording_and_tells_nothing_of_the_command(
    node: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    script = "import sys, time; time.sleep(60)"
    words = ("-o", log, "--", sys.executable, "-c", script, "--token=hunter2")
    with serving(node, *words) as (process, url):
        text = shown(url, "profharness_telemetry_cpu_tree_seconds_total")
        assert "hunter2" not in text
        assert "token" not in text
        assert sys.executable not in text
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert list(log.glob("*.parquet"))


def test_a_recording_without_a_command_is_ended_by_a_signal_and_kept(
    node: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with serving(node, "-o", log) as (process, url):
        shown(url, "omnistat_host_cpu_aggregate_core_utilization")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "verdict" in out
    assert list(log.glob("*.parquet"))


def test_a_used_port_and_a_dead_sampler_are_said(node: Path) -> None:
    with serving(node) as (first, url):
        port = url.rpartition(":")[2].partition("/")[0]
        second = subprocess.run(
            [sys.executable, "-m", "profharness", "telemetry", "--openmetrics", port],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        assert second.returncode == 3
        assert f"127.0.0.1:{port} cannot be listened on (Address already in use)" in second.stderr
        sampler = wait_for(lambda: _children(first.pid), "the sampler")
        shown(url, "omnistat_host_cpu_aggregate_core_utilization")
        os.kill(sampler[0], signal.SIGKILL)
        assert first.wait(timeout=60) == 3
        assert "the telemetry sampler ended by itself" in first.stderr.read()


def _children(pid: int) -> list[int]:
    time.sleep(0.01)
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]
