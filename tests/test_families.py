"""Members that an installed package adds to our families, through real commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from profharness import families, layers, readers, scans
from profharness.analysis import verdict
from profharness.errors import UsageError
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles
from profharness.telemetry import sources
from profharness.understand import load

PACKAGE = Path(__file__).parent / "fakes" / "plugin_package"
LOST = "warning: the plug-in lost of profharness.layers cannot be used (ModuleNotFoundError: "
EMPTY = (
    "warning: the plug-in empty of profharness.readers cannot be used "
    "(TypeError: it lacks name, sniff, read); update or uninstall its package\n"
)
TOOL = """#!/bin/sh
out=$1; shift 2
"$@"; status=$?
now=$(( $(cut -d. -f1 /proc/uptime) * 1000000000 ))
printf 'DEMO gemm %s 3000\\nDEMO copy %s 1000\\n' $now $((now + 5000)) > "$out"
exit $status
"""


@pytest.mark.parametrize(
    "name",
    [
        *layers.LAYERS,
        *scans.KINDS,
        *verdict.CHECKS,
        *sources.FAMILIES.values(),
        *(f"profharness.{name}" for name in readers.FORMATS),
    ],
)
def test_each_member_that_a_tuple_names_is_there(name: str) -> None:
    assert families.load(name) is not None


def profharness(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command where the package is installed and its tool is on the PATH."""
    tool = tmp_path / "bin" / "demo-tool"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(TOOL, encoding="utf-8")
    tool.chmod(0o755)
    return subprocess.run(
        [sys.executable, "-m", "profharness", *words],
        env={
            **os.environ,
            "PYTHONPATH": str(PACKAGE),
            "PATH": f"{tool.parent}:{os.environ['PATH']}",
            "COLUMNS": "200",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_layer_of_another_package_is_planned_and_run(tmp_path: Path) -> None:
    words = ("--profile", "demo", "--hip-trace", "--telemetry", "off", "-o", "run")
    plan = profharness(tmp_path, "run", *words, "--dry-run", "--", "true")
    assert plan.returncode == 0, plan.stderr
    assert "argv    demo-tool " in plan.stdout
    assert "/run/artifacts/demo/" in plan.stdout
    assert "expected disk   about 3.8 MiB" in plan.stdout
    assert plan.stderr.count(LOST) == 1

    done = profharness(tmp_path, "run", *words, "--quiet", "--", "true")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert manifest["layers"][0]["facts"]["kernels"] == 1
    assert [artifact["format"] for artifact in manifest["artifacts"]] == ["demo"]

    told = profharness(tmp_path, "hotspots", "run", "--json")
    table = json.loads(told.stdout)
    assert table["pass"] == "demo", table.keys()
    assert [row["name"] for row in table["rows"]] == ["gemm", "copy"]
    found = json.loads(profharness(tmp_path, "metrics", "run", "--json").stdout)
    assert "demo-gemm" in json.dumps(found["findings"])


def test_a_reader_of_another_package_is_asked_after_ours(tmp_path: Path) -> None:
    (tmp_path / "a.demo").write_text("DEMO gemm 0 3000\nDEMO copy 5000 1000\n", encoding="utf-8")
    done = profharness(tmp_path, "hotspots", "a.demo", "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert "gemm" in done.stdout
    assert done.stderr == EMPTY
    (tmp_path / "b.txt").write_text("nobody knows this\n", encoding="utf-8")
    unknown = profharness(tmp_path, "hotspots", "b.txt")
    assert unknown.returncode != 0
    assert "perf_analyzer, demo" in unknown.stderr


def test_a_scan_of_another_package_has_the_name_of_its_entry_point(tmp_path: Path) -> None:
    plan = profharness(tmp_path, "run", "demo-scan", "--batch-sizes", "2,4", "--dry-run")
    assert plan.returncode == 0, plan.stderr
    assert "points  torch-b2\n" in plan.stdout
    unknown = profharness(tmp_path, "run", "no-scan")
    assert "known scans: particlenet, saturation, demo-scan, " in unknown.stderr


def test_a_source_of_another_package_is_sampled(tmp_path: Path) -> None:
    words = ("telemetry", "--source", "demo", "-o", "samples", "--json", "--", "sleep", "1")
    done = profharness(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["mean"] for row in rows if row["metric"] == "demo"] == [42.0]


def test_a_run_may_ask_for_a_source_of_another_package_by_name(tmp_path: Path) -> None:
    words = ("run", "--telemetry", "demo", "--quiet", "-o", "run", "--", "sleep", "0.5")
    done = profharness(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    samples = load.load([tmp_path / "run"]).trace.samples
    assert 42.0 in samples.value.tolist()
    refused = profharness(tmp_path, "run", "--telemetry", "dem", "--", "true")
    assert refused.returncode == 2
    assert "'dem' is not one of auto, off, cpu, amd, amdsmi, nvml, demo" in refused.stderr


def test_doctor_shows_plug_ins_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    done = profharness(tmp_path, "doctor", "--json")
    assert done.returncode == 0, done.stderr
    checkup = json.loads(done.stdout)
    assert {
        key: layer[key]
        for layer in checkup["layers"]
        for key in ("name", "available")
        if layer["name"] == "demo"
    } == {"name": "demo", "available": True}
    (why,) = (each["why"] for each in checkup["plugins"] if each["name"] == "strange")
    assert why.startswith("the plug-in strange: no TOML: ")
    states = {(each["family"], each["name"]): each["available"] for each in checkup["plugins"]}
    assert states == {
        ("profharness.findings", "demo"): True,
        ("profharness.formulas", "demo"): True,
        ("profharness.formulas", "strange"): False,
        ("profharness.layers", "demo"): True,
        ("profharness.layers", "lost"): False,
        ("profharness.readers", "demo"): True,
        ("profharness.readers", "empty"): False,
        ("profharness.scans", "demo-scan"): True,
        ("profharness.sources", "demo"): True,
    }


def test_without_plug_ins_nothing_is_said_of_them() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                "import sys; from profharness import layers; layers.members(); "
                "sys.exit('importlib.metadata' in sys.modules)"
            ),
        ],
        check=False,
    )
    assert done.returncode == 0


def test_a_layer_whose_runs_no_reader_would_take_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = layers.named(("rocprof",))[0]
    facts = LayerFacts(LeftFiles("execution", (LeftFile(r"(?:\w+-)*results\.json", "demo"),)))
    monkeypatch.setattr(theirs, "about", replace(theirs.about, facts=facts))
    with pytest.raises(UsageError, match=r"the layer rocprof cannot be used: .* repeats"):
        layers.named(("rocprof",))
