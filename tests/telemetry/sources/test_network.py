"""Network bytes: over made-up texts, and of real traffic on the loopback."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from profharness.report.text.names import meaning_of, title_of
from profharness.rundir import telemetry
from profharness.stats.streams import Stream, streams
from profharness.telemetry.sources.host.network import NetworkSource, interfaces
from tests.telemetry.running import Sampler, wait_for

HEAD = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes\n"
)


def text(**counts: tuple[int, int]) -> str:
    return HEAD + "".join(
        f"{name:>6}: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n"
        for name, (received, sent) in counts.items()
    )


def values(source: NetworkSource) -> dict[str, int | float]:
    row: list[int | float] = [-1] * len(source.columns)
    source.read(row, 0)
    return dict(zip((column.metric for column in source.columns), row, strict=True))


def test_totals_count_each_byte_once(tmp_path: Path) -> None:
    path = tmp_path / "dev"
    path.write_text(
        text(lo=(50, 50), eth0=(1000, 10), hsn0=(7, 3000), bond0=(1007, 3010), unused=(0, 0))
    )
    for name in ("eth0", "hsn0", "unused"):
        (tmp_path / f"sys/class/net/{name}/device").mkdir(parents=True)
    source = NetworkSource(str(tmp_path / "sys"), str(path))
    assert source.probe() == ()
    assert values(source) == {
        "network_received": 1007,
        "network_sent": 3010,
        "network_loopback": 50,
        "network_received:hsn0": 7,
        "network_sent:hsn0": 3000,
        "network_received:eth0": 1000,
        "network_sent:eth0": 10,
    }
    path.write_text(text(lo=(60, 60), eth0=(2000, 20)))
    gone = values(source)
    assert (gone["network_received"], gone["network_received:hsn0"], gone["network_loopback"]) == (
        2000,
        -1,
        60,
    )


def test_in_a_container_all_but_the_loopback_count(tmp_path: Path) -> None:
    (tmp_path / "dev").write_text(text(lo=(50, 50), eth0=(1000, 10)))
    source = NetworkSource(str(tmp_path), str(tmp_path / "dev"))
    source.probe()
    assert values(source) == {"network_received": 1000, "network_sent": 10, "network_loopback": 50}


def test_names_with_colons_and_numbers_without_a_blank() -> None:
    assert interfaces((HEAD + "eth0:1:123 1 0 0 0 0 0 0 456 1 0 0 0 0 0 0\n").encode()) == {
        b"eth0:1": (123, 456)
    }
    for broken in ("", HEAD, HEAD + "eth0: 1 2 3\n"):
        with pytest.raises(ValueError, match=r"interface|numbers"):
            interfaces(broken.encode())


def test_without_the_file_there_is_a_reason(tmp_path: Path) -> None:
    missing = NetworkSource(str(tmp_path), str(tmp_path / "dev")).probe()
    assert [one.metric for one in missing] == [
        "network_received",
        "network_sent",
        "network_loopback",
    ]
    assert "No such file" in missing[0].why


def test_real_bytes_on_the_loopback(tmp_path: Path) -> None:
    payload = b"x" * (1 << 20)
    with socket.create_server(("127.0.0.1", 0)) as server, Sampler(tmp_path, hz=10) as sampler:

        def drain() -> None:
            with server.accept()[0] as accepted:
                while accepted.recv(1 << 20):
                    pass

        thread = threading.Thread(target=drain, daemon=True)
        thread.start()
        sampler.ready()
        with socket.create_connection(server.getsockname()) as client:
            for _ in range(20):
                client.sendall(payload)
                time.sleep(0.02)
        thread.join()
        sent_ns = time.monotonic_ns()
        wait_for(lambda: read_after(sampler.file("samples.bin"), sent_ns), "a later reading")
        sampler.stop()
    stream = loopback(sampler.file("samples.bin"))
    assert stream is not None
    samples = stream.samples
    assert stream.unit == "B/s"
    # other programs of this machine may use the loopback too
    assert float(np.dot(samples.value, samples.until_ns - samples.at_ns)) / 1e9 >= 20 * len(payload)


def loopback(file: Path) -> Stream | None:
    """The loopback's samples, once there are any."""
    found = [one for one in streams(telemetry.read(file)) if one.metric == "network_loopback"]
    return found[0] if found else None


def read_after(file: Path, at_ns: int) -> bool:
    """Whether the interfaces, which are read twice a second, have been read since `at_ns`."""
    stream = loopback(file)
    return stream is not None and bool(stream.samples.until_ns[-1:] >= at_ns)


def test_an_interface_is_part_of_the_title() -> None:
    assert title_of("network_sent:eth0") == "network sent, eth0"
    assert meaning_of("network_sent:eth0") == meaning_of("network_sent")
