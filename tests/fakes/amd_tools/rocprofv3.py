"""rocprofv3: one pass sets the environment and becomes the command; several passes start it several
times. What it takes in which version is in `rocprofv3_options`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from tests.fakes.amd_tools import attaching
from tests.fakes.amd_tools.rocprofv3_options import Version, parser
from tests.fakes.amd_tools.starting import fatal, replace_by, traced

SDK = {
    "6.2": "0.4.0",
    "6.3": "0.5.0",
    "6.4": "0.6.0",
    "7.0": "1.0.0",
    "7.1": "1.1.0",
    "7.2": "1.1.0",
    "7.2.4": "1.3.0",
    "7.11": "1.1.0",
    "7.12": "1.2.0",
    "7.13": "1.3.0",
    "7.14": "1.3.2",
    "10.0": "1.3.5",
    "10.1": "1.4.0",
    "10.2": "1.4.1",
}
RELEASES = tuple(SDK)
DECODER = "librocprof-trace-decoder.so"
_NS = {"hour": 3600 * 10**9, "min": 60 * 10**9, "sec": 10**9, "msec": 10**6, "usec": 10**3}


def sdk(release: str) -> Version:
    """The version of rocprofiler-sdk in a ROCm release."""
    return tuple(int(part) for part in SDK[release].split("."))


def play(release: str, arguments: list[str]) -> NoReturn:
    """Check the line as the tool does, then start the command."""
    own = sdk(release)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser(own).parse_args(arguments[:split])
    if _on(options, "version"):
        facts = {"version": SDK[release], "git_revision": "1a2b3c", "library_arch": "x86_64"}
        facts |= {"system_name": "Linux", "system_version": "5.15.0-70", "compiler_version": "19.0"}
        for name, value in {**facts, "rocm_version": f"{release}.0"}.items():
            print(f"    {name:>16}: {value}")
        sys.exit(0)
    if _on(options, "list_avail") or _on(options, "list_metrics"):
        print("GPU:0\nName:SQ_WAVES")
        sys.exit(0)
    if getattr(options, "pid", None) is not None:
        attaching.play_v3(own, options)
    command = arguments[split + 1 :]
    if not command:
        fatal("No application provided")
    _refuse(options)
    passes = _passes(options, own)
    asked = [_asked(release, options, counters, sub) for counters, sub in passes]
    library = Path(os.environ.get("STAND_IN_ROCM", "/nowhere")) / "lib"
    os.environ["LD_LIBRARY_PATH"] = ":".join(
        filter(None, (os.environ.get("LD_LIBRARY_PATH"), str(library)))
    )
    if len(asked) == 1:
        replace_by(command, STAND_IN_TRACER=json.dumps(asked[0]))
    for one in asked:  # the application's own exit status is lost here
        done = subprocess.run(command, env=traced(STAND_IN_TRACER=json.dumps(one)), check=False)
        if done.returncode != 0:
            fatal(f"Command {command} returned non-zero exit status {done.returncode}")
    sys.exit(0)


def _on(options: argparse.Namespace, name: str) -> bool:
    return bool(getattr(options, name, False))


def _refuse(options: argparse.Namespace) -> None:
    """The combinations that end it before the command starts."""
    sampling = [getattr(options, f"pc_sampling_{one}", None) for one in _SAMPLING]
    if any(sampling) and not (all(sampling) and _on(options, "pc_sampling_beta_enabled")):
        fatal("PC sampling needs --pc-sampling-beta-enabled and its method, unit and interval")
    if _on(options, "stats") and not any(
        getattr(options, name) for name in vars(options) if name.endswith("_trace")
    ):
        fatal("No tracing options were enabled for --stats")
    if _on(options, "selected_regions") and getattr(options, "collection_period", None):
        fatal("--selected-regions and --collection-period are mutually exclusive")
    if _on(options, "att"):
        places = os.environ.get("ROCPROF_ATT_LIBRARY_PATH", "").split(":")
        places += [*(options.att_library_path or ()), f"{os.environ.get('STAND_IN_ROCM')}/lib"]
        if not any((Path(place) / DECODER).exists() for place in places if place):
            fatal("rocprof-trace-decoder library path not found in " + ":".join(places))
    apart = {
        "PC sampling": any(sampling),
        "--att": _on(options, "att"),
        "--spm": _on(options, "spm"),
    }
    if getattr(options, "replay_mode", None) == "kernel":
        if not _on(options, "kernel_replay_beta_enabled"):
            fatal("--replay-mode kernel needs --kernel-replay-beta-enabled")
        for name, is_on in apart.items():
            if is_on:
                fatal(f"--replay-mode kernel cannot be used with {name}")
    if apart["--spm"] and (apart["PC sampling"] or getattr(options, "pmc", [])):
        fatal("--spm cannot be used with --pmc or PC sampling")
    if _on(options, "stats") and not {"csv", "json"} & set(options.output_format):
        sys.stderr.write("--stats has no effect for the requested output format(s)\n")


_SAMPLING = ("unit", "method", "interval")


def _passes(options: argparse.Namespace, own: Version) -> list[tuple[list[list[str]], str]]:
    """The groups of counters of each start of the command, and the folder of its files."""
    if options.input:
        lines = Path(options.input).read_text().splitlines()
        jobs = [line.removeprefix("pmc:").split() for line in lines if line.startswith("pmc:")]
        return [([names], f"pmc_{number}") for number, names in enumerate(jobs, 1)]
    pmc = getattr(options, "pmc", [])
    if own < (1, 3):
        return [([pmc] if pmc else [], "")]
    if len(pmc) < 2 or getattr(options, "replay_mode", None) == "kernel":
        return [(pmc, "")]
    return [([names], f"pass_{number}") for number, names in enumerate(pmc, 1)]


def _period(options: argparse.Namespace) -> tuple[int, int] | None:
    """Start and duration in ns of the first collection period; its repetitions are not played."""
    triplets = getattr(options, "collection_period", None)
    if not triplets:
        return None
    unit = _NS.get(options.collection_period_unit or "sec", 1)
    start, duration, _ = (float(part) for part in triplets[0].split(":"))
    return int(start * unit), int(duration * unit)


def _asked(
    release: str, options: argparse.Namespace, groups: Sequence[Sequence[str]], sub: str
) -> dict[str, Any]:
    """What the library inside the process is told."""
    names = [name for group in groups for name in group]
    if any(name.startswith("NOT_") for name in names):
        sys.stderr.write("Unable to find all counters for agent 2 (gpu-0, gfx942)\n")
        names, groups = [], []
    every = _on(options, "sys_trace")
    runtime = every or _on(options, "runtime_trace")
    if _on(options, "marker_trace") and _on(options, "selected_regions"):
        os.environ["ROCPROF_SELECTED_REGIONS"] = "1"
    method = getattr(options, "pc_sampling_method", None)
    return {
        "tool": "rocprofv3",
        "release": release,
        "markers": _on(options, "marker_trace") or runtime,
        "period": _period(options),
        "formats": options.output_format,
        "directory": options.output_directory or "%cwd%",
        "file": options.output_file or "%hostname%/%pid%",
        "sub": sub,
        "hip": _on(options, "hip_trace") or _on(options, "hip_runtime_trace") or runtime,
        "copies": _on(options, "memory_copy_trace") or runtime,
        "allocations": _on(options, "memory_allocation_trace") or runtime,
        "scratch": _on(options, "scratch_memory_trace") or runtime,
        "pmc": names,
        "groups": [list(group) for group in groups],
        "sampling": {"method": method, "interval": int(options.pc_sampling_interval)}
        if method
        else None,
        "att": _on(options, "att"),
    }
