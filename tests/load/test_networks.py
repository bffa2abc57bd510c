"""A near and a far server: two network namespaces with a delay or a limit of bandwidth between
them.

Both by the kernel's own queues; where it has no netem, the delay is that of a wire in user space.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir.requests_raw import DONE, SENT, SERVER, STATUS
from tests import needs
from tests.load import running

needs.packages("tritonclient", "grpc")

DELAY_MS = 15
ANSWERS_WITHIN_S = 20.0
WIRE = running.ROOT / "tests" / "fakes" / "stand_in_wire.py"


@dataclass(frozen=True)
class Sides:
    """Two network namespaces: this one, and that of `pid`. The addresses are the pair's own, so
    that no earlier pair's route can be taken.
    """

    pid: str

    def _address(self, last: int) -> str:
        block = int(self.pid) % (
            1 << 15
        )  # of 198.18.0.0/15, which is set aside for trials of networks
        return f"198.{18 + (block >> 14)}.{(block >> 6) & 255}.{((block & 63) << 2) + last}"

    @property
    def near(self) -> str:
        return self._address(1)

    @property
    def far(self) -> str:
        return self._address(2)

    @property
    def prefix(self) -> tuple[str, ...]:
        return ("nsenter", "-t", self.pid, "-n")


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def far_server(folder: Path, sides: Sides, **settings: object) -> Iterator[running.Served]:
    """A server on the far side, handed over when a connection to it was made from here."""
    with running.server(folder, sides.prefix, name="far", host=sides.far, **settings) as server:
        host, _, port = str(server.description["grpc"]).rpartition(":")
        deadline = time.monotonic() + ANSWERS_WITHIN_S
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=ANSWERS_WITHIN_S).close()
                break
            except OSError as error:
                routes = subprocess.run(
                    ["ip", "route", "get", host], capture_output=True, text=True, check=False
                ).stdout
                if time.monotonic() > deadline:
                    pytest.fail(f"the far server was never reached: {error}; {routes}")
                time.sleep(0.05)
        yield server


@contextmanager
def far_side() -> Iterator[Sides]:
    """The far side's namespace. Skips where it is not allowed."""
    if any(shutil.which(tool) is None for tool in ("ip", "tc", "unshare", "nsenter")):
        pytest.skip("needs ip, tc, unshare and nsenter")
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; exec sleep 300"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        if holder.stdout is None or holder.stdout.readline().strip() != "ready":
            pytest.skip("needs the right to make network namespaces (root)")
        yield Sides(str(holder.pid))
    finally:
        holder.kill()
        holder.wait()


@contextmanager
def link(sides: Sides, *queue: str) -> Iterator[None]:
    """A pair of virtual devices with a queue on the near end. Raises CalledProcessError where it
    cannot be made.
    """
    name = f"ph{sides.pid}"
    try:
        run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p")
        run("ip", "link", "set", f"{name}p", "netns", sides.pid)
        run("ip", "address", "add", f"{sides.near}/30", "dev", name)
        run("ip", "link", "set", name, "up")
        run(*sides.prefix, "ip", "address", "add", f"{sides.far}/30", "dev", f"{name}p")
        run(*sides.prefix, "ip", "link", "set", f"{name}p", "up")
        run("tc", "qdisc", "add", "dev", name, *queue)
        yield
    finally:
        subprocess.run(["ip", "link", "del", name], check=False, capture_output=True)


@contextmanager
def wire(sides: Sides, delay_ms: float) -> Iterator[None]:
    """Packets carried by a process of ours. Skips where there are no TUN devices."""
    process = subprocess.Popen(
        [sys.executable, str(WIRE), sides.pid, str(delay_ms), sides.near, sides.far],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if process.stdout is None or process.stdout.readline().strip() != "ready":
            _, words = process.communicate()
            pytest.skip(
                "this kernel has neither netem nor TUN devices for us "
                f"({words.strip().splitlines()[-1:]})"
            )
        yield
    finally:
        process.kill()
        process.communicate()


@contextmanager
def delayed(delay_ms: float) -> Iterator[Sides]:
    """A far side behind a delay on the way there (netem), or half of it each way (the wire)."""
    with far_side() as sides, ExitStack() as stack:
        try:
            stack.enter_context(link(sides, "root", "netem", "delay", f"{delay_ms}ms"))
        except subprocess.CalledProcessError:
            stack.enter_context(wire(sides, delay_ms / 2))
        yield sides


@contextmanager
def limited(rate: str) -> Iterator[Sides]:
    """A far side behind a token bucket. Skips where the kernel has none."""
    with far_side() as sides, ExitStack() as stack:
        try:
            stack.enter_context(
                link(sides, "root", "tbf", "rate", rate, "burst", "32kb", "latency", "400ms")
            )
        except subprocess.CalledProcessError as error:
            pytest.skip(
                "network links or queues cannot be made here "
                f"({(error.stderr or b'').decode(errors='replace').strip()})"
            )
        yield sides


@pytest.mark.slow
@pytest.mark.xdist_group("network-namespaces")
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_delay_between_client_and_server_is_in_the_transport(tmp_path: Path, protocol: str) -> None:
    with (
        delayed(DELAY_MS) as sides,
        running.server(tmp_path, name="near", service_ms=5, slots=8) as near,
        far_server(tmp_path, sides, service_ms=5, slots=8) as far,
    ):
        done = running.level(
            tmp_path, [near.ready, far.ready], concurrency=4, spec={"protocol": protocol}
        )
    assert done.result.ok, done.result.error + done.log
    rows = done.raw().rows
    latency = {
        at: float(
            np.median(
                (rows[:, DONE] - rows[:, SENT])[(rows[:, SERVER] == at) & (rows[:, STATUS] == 0)]
            )
        )
        / 1e6
        for at in (0, 1)
    }
    assert latency[1] - latency[0] == pytest.approx(DELAY_MS, rel=0.4)
    assert latency[1] > DELAY_MS + 5
    assert done.figures().little.holds


@pytest.mark.slow
@pytest.mark.xdist_group("network-namespaces")
def test_bandwidth_limits_what_a_far_server_gets(tmp_path: Path) -> None:
    """At 20 Mbit/s requests of 100 kB take 40 ms each on the wire, whatever the server could do."""
    with limited("20mbit") as sides, far_server(tmp_path, sides, service_ms=1, slots=8) as far:
        done = running.level(
            tmp_path,
            far.ready,
            concurrency=2,
            seconds=2.0,
            warmup_s=0.5,
            spec={"shapes": {"x": [25000]}, "distinct": 2},
        )
    assert done.result.ok, done.result.error + done.log
    figures = done.figures()
    assert figures.request_rate == pytest.approx(20e6 / 8 / 1e5, rel=0.25)
    assert done.level.network_bytes is not None
    assert done.level.network_bytes.tx / done.level.window_ns * 1e9 == pytest.approx(
        2.5e6, rel=0.25
    )
