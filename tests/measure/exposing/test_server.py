"""The exporter over a sampler's file of known numbers, asked through real requests."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from profharness.errors import Unavailable
from profharness.measure.exposing.address import Address
from profharness.measure.exposing.forgetting import HEAD_BYTES, KEEP_BYTES, Forgotten
from profharness.measure.exposing.server import Exposition, of_a_command
from profharness.trace.series.names import sample_names
from tests.measure.exposing.fetching import families, fetched, samples
from tests.needs import packages
from tests.rundir.series.growing_file import GrowingFile

packages("prometheus_client")
FREE = Address("127.0.0.1", 0)


def test_the_strict_parser_reads_what_is_served(tmp_path: Path) -> None:
    growing = GrowingFile(tmp_path / "a", 2.0)
    with Exposition(FREE, 10.0, followed=False) as exposed:
        kind, nothing = fetched(exposed.address.url)
        assert kind.startswith("application/openmetrics-text; version=1.0.0")
        assert families(nothing) == []
        growing.add(1000, 5_000, 300)
        growing.add(3000, 35_000, 310)
        exposed.look(tmp_path / "a")
        text = fetched(exposed.address.url)[1]
        amd, nvidia = {"card": "0", "device": "0000:c1:00.0"}, {"card": "1", "device": "GPU-1234"}

        def key(name: str, /, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
            return name, tuple(sorted(labels.items()))

        assert samples(text) == {
            key("profharness_telemetry_network_sent_bytes_total"): pytest.approx(2000),
            key("omnistat_network_tx_bytes", device_class="net", interface="eth0"): pytest.approx(
                2000
            ),
            key("rocm_energy_joules", **amd): pytest.approx(30),
            key("profharness_telemetry_energy_joules_total", **nvidia): pytest.approx(60),
            key("rocm_average_socket_power_watts", **amd): 310,
            key("profharness_telemetry_sampler_info", version="9.9"): 1,
            key("profharness_telemetry_device_info", **amd, name="MI300X", vendor="amd"): 1,
            key("profharness_telemetry_device_info", **nvidia, name="H100", vendor="nvidia"): 1,
        }
        found = families(text)
        assert {sample.labels["host"] for family in found for sample in family.samples} == {"n1"}
        assert {one.name: one.type for one in found}["rocm_energy_joules"] == "gauge"
        assert {name for name, _ in samples(text)} <= sample_names()


def test_plain_prometheus_text_is_served_too(tmp_path: Path) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    growing = GrowingFile(tmp_path / "a", 2.0)
    growing.add(1, 1, 1)
    growing.add(2, 2, 2)
    with Exposition(FREE, 10.0, followed=True) as exposed:
        exposed.look(tmp_path / "a")
        kind, text = fetched(exposed.address.url, "text/plain; version=0.0.4")
        assert kind.startswith("text/plain")
        assert len(list(text_string_to_metric_families(text))) == 7


def test_a_used_port_is_refused_and_a_closed_server_frees_it(tmp_path: Path) -> None:
    with Exposition(FREE, 10.0, followed=False) as first:
        taken = first.address
        with (
            pytest.raises(Unavailable, match=rf"127\.0\.0\.1:{taken.port} cannot be listened on"),
            Exposition(taken, 10.0, followed=False),
        ):
            pass
    with Exposition(taken, 10.0, followed=False) as again:
        assert fetched(again.address.url)[1] == "# EOF\n"
    with pytest.raises(urllib.error.URLError):
        fetched(taken.url)


def test_a_name_that_is_no_host_is_refused() -> None:
    with (
        pytest.raises(Unavailable, match="cannot be listened on"),
        Exposition(Address("no-such-host.invalid", 0), 10.0, followed=False),
    ):
        pass


def test_a_silent_client_keeps_nobody_waiting(tmp_path: Path) -> None:
    with (
        Exposition(FREE, 10.0, followed=False) as exposed,
        socket.create_connection(exposed.address),
    ):
        assert fetched(exposed.address.url)[1] == "# EOF\n"


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    with pytest.raises(Unavailable) as caught, Exposition(FREE, 10.0, followed=False):
        pass
    assert caught.value.hint == "pip install 'profharness[export]'"


def test_what_speaks_of_a_command() -> None:
    told = ("cpu_tree", "cpu_tree_wait", "memory_tree", "tree_read", "gpu_processes_other")
    assert all(map(of_a_command, told))
    assert not any(map(of_a_command, ("cpu_node", "gpu_processes", "network_sent:eth0")))


def test_what_was_read_is_given_back_and_the_end_stays(tmp_path: Path) -> None:
    """The writer's own place and the last bytes are as they were."""
    path = tmp_path / "a"
    block = bytes(range(256)) * 4096  # 1 MiB
    with path.open("wb", buffering=0) as file:
        forgotten = Forgotten(path)
        for _ in range(32):
            file.write(block)
            forgotten.forget()
        file.write(b"end")
        content = path.read_bytes()
        assert len(content) == 32 * len(block) + 3
        assert content[:HEAD_BYTES] == block
        assert content[-KEEP_BYTES:] == (block * 32 + b"end")[-KEEP_BYTES:]
        if not any(content[HEAD_BYTES : 2 * HEAD_BYTES]):  # a file system that can forget
            assert path.stat().st_blocks * 512 < 16 << 20
        else:
            pytest.skip("this file system makes no holes")
    Forgotten(tmp_path / "none").forget()
