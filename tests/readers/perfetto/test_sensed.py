"""Telemetry of our own merged files comes back on the device that it is of."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from profharness import readers
from profharness.readers.perfetto import reader as pftrace
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Kernels, Samples, Source, Stream, Strings, Trace
from profharness.trace.sample_metrics import SAMPLE_METRICS
from profharness.understand.merge.head import write_options
from profharness.writers.perfetto import WriteOptions, write

METRICS = ("torch_allocated", "power_w")


def sampled(hosts: tuple[str, ...], devices: tuple[Device, ...], ran: list[int]) -> Trace:
    """One source per host; a kernel on each device of `ran`; of each device, and of the first
    host, one sample of each metric, whose value tells the device: its position, 99 for the host.
    """
    of = [*range(len(devices)), NULL]
    home = [hosts.index(device.host) if device.host else 0 for device in devices]
    rows = [(place, metric) for place in of for metric in (0, 1)]
    return Trace(
        tuple(Source(f"{host}.json", "kineto", host=host, pid=7, rank=0) for host in hosts),
        Strings((*METRICS, "k")),
        devices,
        tuple(Stream(place, "0") for place in ran),
        kernels=Kernels.build(
            start_ns=[100 * (place + 1) for place in ran],
            dur_ns=10,
            name=2,
            device=ran,
            stream=list(range(len(ran))),
            pid=7,
            source=[home[place] for place in ran],
        ),
        samples=Samples.build(
            at_ns=50,
            until_ns=50,
            device=[place for place, _ in rows],
            metric=[metric for _, metric in rows],
            value=[99.0 if place == NULL else float(place) for place, _ in rows],
            source=[0 if place == NULL else home[place] for place, _ in rows],
        ),
    )


def returned(trace: Trace, path: Path, how: Literal["render-stage", "track-event"]) -> Trace:
    write(trace, path / "merged.pftrace", options=WriteOptions(gpu_repr=how))
    return pftrace.read(path / "merged.pftrace")


def places(trace: Trace) -> set[tuple[str, float, tuple[str, str] | None]]:
    """(metric, value, (host, index) of the device) of each sample."""
    samples = trace.samples
    named = [(device.host, device.index) for device in trace.devices]
    metrics = trace.strings.decode(samples.metric)
    rows = zip(metrics, samples.value.tolist(), samples.device.tolist(), strict=True)
    return {(metric, value, None if at == NULL else named[at]) for metric, value, at in rows}


def test_devices_of_two_hosts_have_their_own_telemetry(tmp_path: Path) -> None:
    devices = (
        Device("0", "n0", name="AMD Instinct MI300X", vendor="AMD"),
        Device("3", "n0"),
        Device("0", "n1", name="AMD Instinct MI300X", vendor="AMD"),
    )
    read = returned(sampled(("n0", "n1"), devices, [0, 2]), tmp_path, "render-stage")
    assert places(read) == {
        (metric, value, place)
        for metric in METRICS
        for value, place in (
            (0.0, ("n0", "0")),
            (1.0, ("n0", "3")),
            (2.0, ("n1", "0")),
            (99.0, None),
        )
    }
    assert len(read.devices) == 3  # the one that ran nothing is added, the others are the work's
    assert set(read.kernels.device.tolist()) < set(read.samples.device.tolist())


@pytest.mark.parametrize("how", ["render-stage", "track-event"])
@pytest.mark.parametrize("device", [Device("2", "", name="H100"), Device("2", "n0"), Device("0")])
def test_telemetry_and_work_are_of_one_device(
    tmp_path: Path, device: Device, how: Literal["render-stage", "track-event"]
) -> None:
    read = returned(sampled(("n0",), (device,), [0]), tmp_path, how)
    assert len(read.devices) == 1
    assert {(value, at is not None) for _, value, at in places(read)} == {
        (0.0, True),
        (99.0, False),
    }


def test_the_peaks_of_torch_are_those_of_the_file_that_was_merged(
    shared: Path, tmp_path: Path
) -> None:
    recorded = readers.read(shared / "fixtures/kineto/mi300x_timesformer.json.gz")
    read = returned(recorded, tmp_path, "render-stage")

    def peaks(trace: Trace) -> dict[tuple[str, bool], float]:
        samples = trace.samples
        largest: dict[tuple[str, bool], float] = {}
        for metric, value, at in zip(
            trace.strings.decode(samples.metric), samples.value, samples.device, strict=True
        ):
            key = (metric, bool(at != NULL))
            largest[key] = max(largest.get(key, 0.0), float(value))
        return largest

    assert peaks(read) == peaks(recorded)
    assert len(peaks(read)) == 3  # the host reserves nothing


def test_a_title_hides_no_metric(tmp_path: Path) -> None:
    """A counter is called by a title for people, and read back by its metric's own name."""
    trace = sampled(("n0",), (Device("0", "n0"),), [0])
    path = tmp_path / "titled.pftrace"
    write(trace, path, options=WriteOptions(metric_title=lambda metric: f"the {metric[:5]}"))
    assert b"the power" in path.read_bytes()
    assert places(pftrace.read(path)) == places(trace)


def test_every_title_of_a_merged_trace_is_of_one_metric() -> None:
    """Counters of one group and one name would be one track in a viewer."""
    title = write_options(None).metric_title
    metrics = [one.name for one in SAMPLE_METRICS]
    assert len({title(name) for name in metrics}) == len(metrics) > 50
    assert title("power_w") == "power"
    assert title("SQ_WAVES") == "SQ_WAVES"  # not ours
