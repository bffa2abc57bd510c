"""`run --profile device-counters` and `telemetry --device-counters` as a user starts them, over an
emulated MI300X with compiled stand-ins of AMD's libraries.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from profharness.cli.telemetry import TelemetryLine, _check_counters
from profharness.errors import UsageError
from profharness.measure.wrap import plan_wrap
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.rundir import telemetry
from tests import started
from tests.fakes.device_counting import MI300X, Load, compiled, playing, rocm_tree
from tests.telemetry import emulated


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables that make a node of it."""
    folder = tmp_path_factory.mktemp("node")
    compiled("stand_in_kfd.c", folder / "kfd.so", "-ldl")
    # each read of a table without a time of its own counts when it was read
    still = emulated.State(power_w=612, gpu=100, stamp_ns=1)
    tree = emulated.mi300x(folder / "sys", state=still)
    tree.process(99, MI300X.gpu_id, 12)
    return {
        **os.environ,
        **playing((MI300X,), Load()),
        "ROCM_PATH": str(rocm_tree(folder / "rocm")),
        "PROFHARNESS_SYSFS": str(tree.root),
        "STAND_IN_KFD": "1.23,profiler",
        "LD_PRELOAD": str(folder / "kfd.so"),
    }


@pytest.mark.slow
def test_a_run_counts_in_its_own_pass_only(node: dict[str, str], tmp_path: Path) -> None:
    run, calls = tmp_path / "run", tmp_path / "calls"
    program = "import time; time.sleep(1.6)"
    done = started.run(
        *("run", "-o", str(run), "--bare", "--profile", "device-counters"),
        *("--device-counters-hz", "10", "--", sys.executable, "-c", program),
        cwd=tmp_path,
        env={**node, "STAND_IN_TRACE": str(calls)},
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((run / "summary.json").read_text())
    assert [row["name"] for row in summary["passes"]] == ["bare", "device-counters"]
    assert summary["metrics"]["cu_active"]["value"] == pytest.approx(0.38, rel=1e-3)
    assert summary["metrics"]["matrix_busy"]["value"] == pytest.approx(0.04, rel=1e-3)
    assert summary["verdict"]["kind"] == "underfilled"
    said = done.stdout + done.stderr
    assert "only 38.0 % of the compute units work meanwhile" in " ".join(said.split())
    assert "CUs active 38.0 %, CU occupancy 11.0 %, matrix cores (MFMA) 4.0" in " ".join(
        said.split()
    )
    assert "CUs active" in (run / "report.html").read_text()
    assert b"cu_active" in (run / "merged.pftrace").read_bytes()
    assert "device-counters-limiter" in {one["id"] for one in summary["findings"]}

    # counted once, and not during the bare pass
    assert calls.read_text().split().count("start_context") == 1
    manifest = json.loads((run / "manifest.json").read_text())
    counted = next(one for one in manifest["passes"] if one["name"] == "device-counters")
    (path,) = run.glob("telemetry/*.samples.bin")
    trace = telemetry.read(path)
    active = trace.samples.metric == trace.strings.find("cu_active")
    first_ns = int(trace.samples.at_ns[active].min())
    bare = next(one for one in manifest["passes"] if one["name"] == "bare")
    offset = manifest["clocks"][0]["boot_ns"] - manifest["clocks"][0]["monotonic_ns"]
    assert bare["end_boot_ns"] < first_ns + offset < counted["end_boot_ns"]
    assert not list(run.glob("telemetry/*.counting*"))


@pytest.mark.slow
def test_a_library_that_aborts_costs_a_run_nothing_else(
    node: dict[str, str], tmp_path: Path
) -> None:
    done = started.run(
        *("run", "-o", "run", "--profile", "device-counters", "--", "sleep", "0.5"),
        cwd=tmp_path,
        env={**node, "STAND_IN_MODE": "abort-start"},
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    (found,) = [one for one in summary["findings"] if one["id"] == "device-counters-hidden"]
    assert "AMD's library ended the counting process (SIGABRT)" in found["message"]
    assert "cu_active" not in {row["metric"] for row in summary["telemetry"]}
    assert summary["metrics"]["gpu_percent"]["value"] == 100


@pytest.mark.slow
def test_telemetry_shows_them_live_and_keeps_their_totals(
    node: dict[str, str], tmp_path: Path
) -> None:
    done = started.run(
        *("telemetry", "-o", "log", "--live", "--device-counters", "--device-counters-hz", "10"),
        *("--", "sleep", "2.5"),
        cwd=tmp_path,
        env=node,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "CUs active 0 38.0 %   CU occupancy 0 11.0 %   matrix cores (MFMA) 0 4.0 %" in done.stderr
    )
    assert (
        "device     GPU 100 %, CUs active 38.0 %, CU occupancy 11.0 %, matrix cores (MFMA) 4.0 %"
        in done.stdout
    )
    (table,) = (tmp_path / "log").glob("*.parquet")
    kept = telemetry.read_raw(table)
    assert "counter_rate:GRBM_COUNT:7" in kept.strings.texts
    again = telemetry.read(table)
    active = again.samples.value[again.samples.metric == again.strings.find("cu_active")]
    assert active == pytest.approx(0.38, rel=1e-4)


@pytest.mark.slow
def test_what_cannot_be_counted_is_said_before_the_command_begins(
    node: dict[str, str], tmp_path: Path
) -> None:
    done = started.run(
        *("telemetry", "-o", "log", "--device-counters", "--", "touch", "began"),
        cwd=tmp_path,
        env={**node, "STAND_IN_MODE": "no-register"},
    )
    assert done.returncode == 3
    assert "--device-counters cannot be used here: the HSA runtime does not register" in done.stderr
    assert not list((tmp_path / "log").iterdir())
    assert not (tmp_path / "began").exists()


def test_a_rate_beyond_the_limit_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--device-counters-hz: 50 is outside 0\.1 to 10"):
        _check_counters(TelemetryLine(device_counters=True, device_counters_hz=50))


def test_wrap_has_no_sampler_to_count() -> None:
    request = from_mapping(
        {"command": ("true",), "profile": "device-counters", "yes": True}, COMMAND_LINE
    )
    with pytest.raises(UsageError, match="wrap starts none"):
        plan_wrap(request, dry=True)
