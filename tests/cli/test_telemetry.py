"""`profharness telemetry` as a user calls it: real processes, emulated hardware."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from profharness.report.text.live import latest, line
from profharness.rundir import telemetry
from tests import started
from tests.telemetry import emulated
from tests.telemetry.running import ROOT, Sampler, wait_for

BURN = (
    "import sys, time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: "
    "pass\ntime.sleep(0.8)\nprint('said'); sys.exit(7)"
)


def call(
    *arguments: str | Path, sysfs: Path | str = "/nowhere"
) -> subprocess.CompletedProcess[str]:
    return started.finished(
        line_of(*arguments),
        started.COMMAND_LINE,
        cwd=ROOT,
        env={**os.environ, "PROFHARNESS_SYSFS": str(sysfs)},
    )


def line_of(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "profharness", "telemetry", *map(str, arguments)]


def host_files(folder: Path) -> set[str]:
    return {
        path.name if path.name.startswith("Resource") else path.name.partition(".")[2]
        for path in folder.iterdir()
    }


@pytest.mark.slow
def test_a_command_is_sampled_and_its_status_passed_on(tmp_path: Path) -> None:
    # a stamp of another clock is not used: each read of this still picture then counts at its own
    # time
    emulated.mi250x(tmp_path / "sys", emulated.State(stamp_ns=1)).process(99, 50000, 55)
    done = call(
        "-o",
        tmp_path / "log",
        "--hz",
        "20",
        "--",
        sys.executable,
        "-c",
        BURN,
        sysfs=tmp_path / "sys",
    )
    assert done.returncode == 7
    assert done.stdout.startswith("said\n")
    assert "busy 100.0 % of the time, waves 50.0 %, memory 37.0 %" in " ".join(done.stdout.split())
    assert "with lower confidence" in " ".join(done.stdout.split())
    assert host_files(tmp_path / "log") == {
        "parquet",
        "clocks.jsonl",
        "ResourceLog.csv",
        "ResourceLog.txt",
    }
    assert [
        Path(line.split()[-1]).name.partition(".")[2] for line in done.stdout.splitlines()[-4:]
    ] == ["parquet", "clocks.jsonl", "csv", "txt"]
    (table,) = (tmp_path / "log").glob("*.parquet")
    trace = telemetry.read(table)
    metrics = {trace.strings[int(code)] for code in np.unique(trace.samples.metric)}
    assert {"cpu_tree", "gpu_percent", "power_w", "gpu_memory_used", "wave_fill"} <= metrics
    assert trace.samples.value[trace.samples.metric == trace.strings.find("cpu_tree")].max() > 0.2


@pytest.mark.slow
def test_idle_power_is_measured_before_the_command(tmp_path: Path) -> None:
    """The emulated card draws 100 W until the command itself makes it 324 W."""
    tree = emulated.mi250x(tmp_path / "sys", emulated.State(power_w=100, stamp_ns=1))
    table = tree.root / f"devices/pci0000:c0/{emulated.FIRST}/gpu_metrics"
    busy = tmp_path / "busy"
    busy.write_bytes(emulated.table("1.3", emulated.State(power_w=324, stamp_ns=1)))
    script = f"import shutil, time; shutil.copyfile({str(busy)!r}, {str(table)!r}); time.sleep(1.2)"
    done = call(
        "-o",
        tmp_path / "log",
        "--hz",
        "50",
        "--idle-seconds",
        "0.8",
        "--json",
        "--",
        sys.executable,
        "-c",
        script,
        sysfs=tree.root,
    )
    found = json.loads(done.stdout)
    assert found["figures"]["power_idle"]["value"] == pytest.approx(
        100, rel=0.01
    )  # the interval that the rest ends in reaches to a busy sample
    assert found["seconds"] < 30
    (power,) = [row for row in found["rows"] if row["metric"] == "power_w"]
    assert power["mean"] > 200  # what was sampled at rest is no part of the command's figures
    assert host_files(tmp_path / "log") == {
        "parquet",
        "clocks.jsonl",
        "ResourceLog.csv",
        "ResourceLog.txt",
    }
    again = call("-o", tmp_path / "text", "--idle-seconds", "0.05", "--", "true", sysfs=tree.root)
    assert "idle       not measured: needs a longer --idle-seconds" in again.stdout


@pytest.mark.slow
def test_the_classic_log_and_what_its_columns_mean(tmp_path: Path) -> None:
    emulated.mi250x(tmp_path / "sys")
    before = time.time()
    assert call("-o", tmp_path / "log", "--seconds", "1.6", sysfs=tmp_path / "sys").returncode == 0
    text = (tmp_path / "log" / "ResourceLog.csv").read_text()
    assert (
        text.splitlines()[0] == "Timestamp, GPU Util (%), GPU Mem (%), CPU Util (%), RAM Util (%)"
    )
    rows = list(csv.DictReader(text.splitlines(), skipinitialspace=True))
    assert len(rows) >= 4
    for row in rows:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d", row["Timestamp"])
        assert (row["GPU Util (%)"], row["GPU Mem (%)"]) == (
            "100.00",
            f"{100 * 67000000000 / emulated.VRAM_MI250X:.2f}",
        )
        assert 0 <= float(row["CPU Util (%)"]) <= 100
        assert 0 < float(row["RAM Util (%)"]) < 100
    first = time.mktime(time.strptime(rows[0]["Timestamp"].split(".")[0], "%Y-%m-%d %H:%M:%S"))
    assert before - 1 <= first <= time.time()
    about = (tmp_path / "log" / "ResourceLog.txt").read_text()
    assert "AMD INSTINCT MI250X" in about
    assert "allocated" in about


@pytest.mark.slow
def test_json_and_what_is_missing(tmp_path: Path) -> None:
    done = call("-o", tmp_path / "log", "--seconds", "0.7", "--json")
    found = json.loads(done.stdout)
    assert found["schema"] == 2
    assert {"gpu", "power_cpu"} <= found["missing"].keys()
    assert found["figures"]["cores_used"]["unit"] == "cores"
    assert [Path(path).name.partition(".")[2] for path in found["files"]] == [
        "parquet",
        "clocks.jsonl",
        "csv",
        "txt",
    ]
    assert found["verdict"].keys() == {"kind", "text", "at_most"}
    assert "lower confidence" in found["verdict"]["text"]
    assert ": the node kept " in found["verdict"]["text"]  # there is no process to speak of
    assert found["verdict"]["at_most"] is found["verdict_needs"] is None
    assert found["figures"]["cores_allowed"]["value"] == os.cpu_count()
    assert not [row for row in found["rows"] if row["metric"] == "cpu_tree"]  # no command, no tree


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("--source", "quantum"), 2, "no source 'quantum'"),
        (("--hz", "0"), 2, "outside 0.1 to 1000"),
        (("--",), 2, "nothing stands after --"),
        (("--seconds", "1", "--", "true"), 2, "--seconds goes without a command"),
        (("--source", "amd", "--seconds", "1"), 3, "amdgpu driver is not loaded"),
        (("--", "no-such-program-anywhere"), 3, "no such program"),
        (("--idle-seconds", "5"), 2, "--idle-seconds needs a command"),
        (("--idle-seconds", "601", "--", "true"), 2, "outside 0 to 600"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    done = call("-o", tmp_path / "log", *arguments)
    assert done.returncode == status
    assert said in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "log").exists() or not list((tmp_path / "log").iterdir())


@pytest.mark.slow
@pytest.mark.slow
def test_two_at_once_have_folders_of_their_own(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "profharness", "telemetry", "--seconds", "0.2", "--source", "cpu"]
    both = [started.python(argv, started.COMMAND_LINE, cwd=tmp_path) for _ in range(2)]
    assert [(one.communicate(timeout=60), one.returncode)[1] for one in both] == [0, 0]
    assert len(list((tmp_path / "traces").glob("*-telemetry*/*.parquet"))) == 2


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    assert call("-o", tmp_path, "--seconds", "0.2").returncode == 0
    again = call("-o", tmp_path, "--seconds", "0.2")
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    assert call("-o", tmp_path, "--seconds", "0.2", "--force").returncode == 0


def test_an_interrupt_ends_the_sampling_and_gives_the_answer(tmp_path: Path) -> None:
    with subprocess.Popen(
        line_of("-o", tmp_path), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: any(tmp_path.glob("*.ready.json")), "the sampler")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=90)
        assert process.returncode == 0
    assert "verdict" in out


@pytest.mark.slow
def test_live_values_in_lines_and_on_a_terminal(tmp_path: Path) -> None:
    emulated.mi250x(tmp_path / "sys")
    done = call("-o", tmp_path / "lines", "--live", "--seconds", "2.2", sysfs=tmp_path / "sys")
    assert len([text for text in done.stderr.splitlines() if "power drawn 0 324 W" in text]) >= 1
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        line_of("-o", tmp_path / "table", "--live", "--seconds", "2.2"),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "PROFHARNESS_SYSFS": str(tmp_path / "sys"), "COLUMNS": "150"},
    ) as process:
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], 20)[0]:
            try:
                shown += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
        process.wait(90)
    os.close(ours)
    assert b"AMD INSTINCT" in shown
    assert b"324 W" in shown


@pytest.mark.slow
def test_the_tail_of_a_growing_file_is_read_alone(tmp_path: Path) -> None:
    with Sampler(tmp_path, hz=100) as sampler:
        sampler.ready()
        time.sleep(1.5)
        whole = telemetry.read(sampler.file("samples.bin"))
        tail = telemetry.read_tail(sampler.file("samples.bin"), 5)
        sampler.stop()
    processes = tail.samples.metric == tail.strings.find("processes_tree")
    assert int(processes.sum()) == 5
    assert tail.samples.at_ns.min() > whole.samples.at_ns.min() + 500_000_000
    assert "cores busy on the node" in line(latest(whole))
