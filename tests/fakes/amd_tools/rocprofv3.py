"""rocprofv3: one pass sets the environment and becomes the command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tests.fakes.amd_tools import attaching
from tests.fakes.amd_tools.starting import fatal, replace_by

SDK = {
    "6.2": "0.4.0",
    "6.3": "0.5.0",
    "6.4": "0.6.0",
    "7.0": "1.0.0",
    "7.1": "1.1.0",
    "7.2": "1.1.0",
    "7.11": "1.1.0",
    "7.12": "1.2.0",
    "7.13": "1.3.0",
    "7.14": "1.3.2",
    "10.0": "1.3.5",
    "10.1": "1.4.0",
    "10.2": "1.4.1",
}
RELEASES = tuple(SDK)

_V3_SWITCHES = (
    "--hip-trace",
    "--hip-runtime-trace",
    "--hip-compiler-trace",
    "--hsa-trace",
    "--kernel-trace",
    "--memory-copy-trace",
    "--scratch-memory-trace",
    "--marker-trace",
    "--rccl-trace",
    "--kokkos-trace",
    "--sys-trace",
    "--stats",
    "--summary",
    "--mangled-kernels",
    "--truncate-kernels",
)
_V3_TRACES = tuple(name for name in _V3_SWITCHES if name.endswith("-trace"))


def _sdk(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in SDK[release].split("."))


def play(release: str, arguments: list[str]) -> NoReturn:
    """One pass: sets the environment and becomes the command."""
    late = _sdk(release) >= (1, 0)
    parser = argparse.ArgumentParser(prog="rocprofv3", allow_abbrev=False)
    for name in _V3_SWITCHES:
        if late:
            parser.add_argument(name, nargs="?", const=True, default=False)
        else:
            parser.add_argument(name, action="store_true")
    for name in (
        *(["--memory-allocation-trace"] if _sdk(release) >= (0, 6) else []),
        *(["--selected-regions", "--group-by-queue"] if late else []),
    ):
        parser.add_argument(name, nargs="?", const=True, default=False)
    parser.add_argument("-i", "--input")
    parser.add_argument("-d", "--output-directory", default="%cwd%")
    parser.add_argument("-o", "--output-file", default="%hostname%/%pid%")
    parser.add_argument(
        *(["-f"] if late else []),
        "--output-format",
        nargs="+",
        choices=("csv", "json", "pftrace", "otf2", *(("rocpd",) if late else ())),
        default=["rocpd"] if late else ["csv"],
    )
    if release != "6.2":
        parser.add_argument("--pmc", nargs="*", default=[])
    parser.add_argument("--kernel-include-regex", nargs="+")
    parser.add_argument("--kernel-iteration-range", nargs="+")
    if _sdk(release) >= (0, 6):
        parser.add_argument("--collection-period", nargs="+")
        parser.add_argument(
            "--collection-period-unit", choices=("hour", "min", "sec", "msec", "usec", "nsec")
        )
        parser.add_argument("-v", "--version", action="store_true") if late else None
    parser.add_argument("--log-level")
    parser.add_argument("--disable-signal-handlers", nargs="?")
    if _sdk(release) >= (1, 1):
        attaching.add_options(parser)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:split])
    if late and options.version:
        facts = {"version": SDK[release], "git_revision": "1a2b3c", "library_arch": "x86_64"}
        facts |= {"system_name": "Linux", "system_version": "5.15.0-70", "compiler_version": "19.0"}
        for name, value in {**facts, "rocm_version": f"{release}.0"}.items():
            print(f"    {name:>16}: {value}")
        sys.exit(0)
    if getattr(options, "pid", None) is not None:
        attaching.play_v3(_sdk(release), options)
    command = arguments[split + 1 :]
    if not command:
        fatal("No application provided")
    _become_v3(release, options, command)


def _period(options: argparse.Namespace) -> tuple[int, int] | None:
    """Start and duration in ns of the first collection period; its repetitions are not played."""
    triplets = getattr(options, "collection_period", None)
    if not triplets:
        return None
    unit = {
        "hour": 3600 * 10**9,
        "min": 60 * 10**9,
        "sec": 10**9,
        "msec": 10**6,
        "usec": 10**3,
        "nsec": 1,
    }[options.collection_period_unit or "sec"]
    start, duration, _ = (float(part) for part in triplets[0].split(":"))
    return int(start * unit), int(duration * unit)


def _become_v3(release: str, options: argparse.Namespace, command: Sequence[str]) -> NoReturn:
    counters = list(getattr(options, "pmc", []))
    sub = ""
    if options.input:
        lines = [
            line for line in Path(options.input).read_text().splitlines() if line.startswith("pmc:")
        ]
        counters, sub = lines[0].removeprefix("pmc:").split(), "pmc_1"
    on = {name: bool(getattr(options, name.strip("-").replace("-", "_"))) for name in _V3_TRACES}
    if options.stats and not any(on.values()):
        fatal("No tracing options were enabled for --stats")
    if any(name.startswith("NOT_") for name in counters):
        sys.stderr.write("Unable to find all counters for agent 2 (gpu-0, gfx942)\n")
        counters = []
    if on["--marker-trace"] and getattr(options, "selected_regions", False):
        os.environ["ROCPROF_SELECTED_REGIONS"] = "1"
    library = Path(os.environ.get("STAND_IN_ROCM", "/nowhere")) / "lib"
    os.environ["LD_LIBRARY_PATH"] = ":".join(
        filter(None, (os.environ.get("LD_LIBRARY_PATH"), str(library)))
    )
    asked = {
        "tool": "rocprofv3",
        "release": release,
        "markers": on["--marker-trace"] or on["--sys-trace"],
        "period": _period(options),
        "formats": options.output_format,
        "directory": options.output_directory,
        "file": options.output_file,
        "sub": sub,
        "hip": on["--hip-trace"] or on["--hip-runtime-trace"] or on["--sys-trace"],
        "copies": on["--memory-copy-trace"] or on["--sys-trace"],
        "pmc": counters,
    }
    replace_by(command, STAND_IN_TRACER=json.dumps(asked))
