"""Counters of RDC's daemon: a stand-in for `rdci` on the PATH, which prints what the tool does and
refuses what it refuses.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from profharness.errors import Unavailable, UsageError
from profharness.layers import exporter
from profharness.telemetry.sources import Target
from profharness.telemetry.sources.amd.exporter import family, rdci
from profharness.telemetry.sources.amd.exporter.answer import ExporterError
from profharness.telemetry.sources.amd.exporter.source import ExporterSource
from tests.telemetry import emulated

STAND_IN = """#!{python}
import os, sys, time
words = sys.argv[1:]
mode = os.environ.get("STAND_IN_RDCI", "")
assert words[:2] == ["dmon", "-u"], words
given = dict(zip(words[2::2], words[3::2]))
assert set(given) <= {{"-e", "-c", "-d", "--host"}} and given["-c"] == "1", words
if mode == "away":
    print("Error: Cannot connect to the RDC daemon: 14")
    sys.exit(1)
if mode == "hang":
    time.sleep(60)
if "--host" in given:
    print(given["--host"], file=open(os.environ["STAND_IN_RDCI_HOST"], "w"))
truth = {{"SM_ACTIVE": "37.500", "TENSOR_ACTIVE_PERCENT": "12.250", "OCCUPANCY_PERCENT": "N/A"}}
names = [name.removeprefix("RDC_FI_PROF_") for name in given["-e"].split(",")]
print("GPU".ljust(10) + "".join(name.ljust(20) for name in names), flush=True)
time.sleep(0.01)
print("0".ljust(10) + "".join(truth.get(name, "90").ljust(20) for name in names), flush=True)
"""
TRUTH = {"exporter_valu_busy": 0.375, "exporter_mfma_util": 0.1225, "exporter_gpu_util": 0.9}


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A node with one MI300X, and rdci on the PATH."""
    program = tmp_path / "bin" / "rdci"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    root = str(emulated.mi300x(tmp_path / "sys").root)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("PROFHARNESS_SYSFS", root)
    monkeypatch.setattr(rdci, "WINDOW_MS", 100)
    return root


def test_its_fields_are_the_exporters_figures_and_say_whose_they_are(
    sysfs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_RDCI_HOST", str(tmp_path / "host"))
    (source,) = family.open_sources(Target(0, "", 10.0, sysfs, exporter="rdci:login:50051"))
    assert isinstance(source, ExporterSource)
    assert source.probe() == ()
    assert (tmp_path / "host").read_text() == "login:50051\n"
    names = [column.metric for column in source.columns]
    row: list[float | None] = [None] * len(names)
    until = time.monotonic() + 30
    while row[0] is None and time.monotonic() < until:
        source.read(row, 0)
        time.sleep(0.02)
    source.close()
    found = {
        name: value * column.scale
        for name, value, column in zip(names, row, source.columns, strict=True)
        if name and value is not None
    }
    assert found == pytest.approx(TRUTH)
    assert dict(source.facts())["counters-exporter"] == "RDC at login:50051"


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("away", r"exit status 1: Error: Cannot connect to the RDC daemon"),
        ("hang", r"rdci gave no table within 0\.3 s"),
    ],
)
def test_a_daemon_that_gives_nothing_is_one_sentence_before_the_run(
    sysfs: str, monkeypatch: pytest.MonkeyPatch, mode: str, said: str
) -> None:
    monkeypatch.setenv("STAND_IN_RDCI", mode)
    monkeypatch.setattr(rdci, "SLACK_S", 0.2)
    with pytest.raises(Unavailable, match=said) as caught:
        exporter.require("rdci")
    assert "rdci dmon -u -l" in caught.value.hint


def test_where_there_is_no_rdci(sysfs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    with pytest.raises(Unavailable, match="rdci cannot be started"):
        exporter.require("rdci")


@pytest.mark.parametrize("text", ["rdci:", "rdci:host", "rdci:--help:1", "rdcix"])
def test_what_names_no_daemon_is_a_wrong_option(text: str) -> None:
    with pytest.raises(UsageError, match="device-counters-from"):
        exporter.check(text, counts=False)


def test_rows_of_partitions_and_events_are_no_devices() -> None:
    cells = "1.0  2.0  3.0  4.0"
    found = rdci.table(f"GPU  A  B  C  D\n0  {cells}\ng0.1  {cells}\n1  **Event: thermal\n\n")
    assert list(found.values) == [0]
    with pytest.raises(ExporterError, match="no value"):
        rdci.table("GPU  A  B  C  D\n0  N/A  N/A  N/A  N/A\n")
