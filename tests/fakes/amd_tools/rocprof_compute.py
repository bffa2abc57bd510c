"""rocprof-compute, and omniperf before it: runs the command several times.

What each version takes is that of its list of changes and of its `argparser.py`. STAND_IN_COMPUTE
is how it fails: `never` (it starts nothing and exits 1), `silent` (it starts nothing and exits 0),
`output-path` (its library aborts what it started).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.fakes.amd_tools.starting import traced

VERSIONS = {
    "6.3": "3.0.0",
    "6.4": "3.1.0",
    "7.0": "3.2.3",
    "7.1": "3.3.0",
    "7.2": "3.4.0",
    "7.11": "3.4.0",
    "7.12": "3.5.0",
    "7.13": "3.6.0",
    "7.14": "3.7.0",
    "10.0": "3.8.0",
    "10.1": "3.9.0",
    "10.2": "3.10.0",
}
RELEASES = tuple(VERSIONS)
OLD_RELEASES = ("5.7", "6.1", "6.2")
REPLAYS = 3
ALWAYS, NEVER = (0,), (99,)


class Taken(NamedTuple):
    """One option: its spellings, what it takes, the versions that know it (the last one not), and
    from when on it is experimental.
    """

    names: str
    kind: str
    since: tuple[int, ...] = ALWAYS
    before: tuple[int, ...] = NEVER
    experimental: tuple[int, ...] = NEVER


PROFILE = (
    Taken("-n --name", "value"),
    Taken("-p --path", "value", before=(3, 7)),
    Taken("--subpath", "value", before=(3, 7)),
    Taken("--output-directory", "value", (3, 5), (3, 10)),
    Taken("-d --output-directory", "value", (3, 10)),
    Taken("--overwrite", "switch", (3, 8)),
    Taken("--no-roof", "switch"),
    Taken("--roof-only", "switch"),
    Taken("--device", "value"),
    Taken("-R --roofline-data-type", "many"),
    Taken("-k --kernel", "many"),
    Taken("-d --dispatch", "many", before=(3, 10)),
    Taken("--kernel-iteration-range", "value", (3, 10)),
    Taken("-b --block", "many"),
    Taken("--set", "value", (3, 3)),
    Taken("--list-sets", "switch", (3, 3)),
    Taken("--iteration-multiplexing", "policy", (3, 5)),
    Taken("--join-type", "join", before=(3, 9)),
    Taken("--format-rocprof-output", "value", before=(3, 9)),
    Taken("--retain-rocpd-output", "switch", (3, 3)),
    Taken("--hip-trace", "switch", before=(3, 6)),
    Taken("--kokkos-trace", "switch"),
    Taken("--attach-pid", "value", (3, 3)),
    Taken("--attach-duration-msec", "value", (3, 3)),
    Taken("--no-native-tool", "switch", (3, 5)),
    Taken("--torch-trace", "switch", (3, 5), experimental=(3, 5)),
    Taken("--pc-sampling", "switch", (3, 7), experimental=(3, 7)),
    Taken("--spatial-multiplexing", "many", (3, 1), (3, 8), experimental=(3, 5)),
    Taken("--experimental", "switch", (3, 5)),
)
ANALYZE = (
    Taken("-p --path", "value"),
    Taken("--save-dfs", "value", before=(3, 3)),
    Taken("-o --output", "value", before=(3, 3)),
    Taken("--output-format", "format", (3, 3)),
    Taken("--output-name", "value", (3, 3)),
    Taken("-k --kernel", "many"),
    Taken("-d --dispatch", "many"),
    Taken("-b --block", "many"),
    Taken("-n --normal-unit", "value"),
    Taken("-t --time-unit", "value"),
    Taken("--max-stat-num", "value"),
    Taken("--decimal", "value"),
    Taken("--list-stats", "switch"),
    Taken("--specs-correction", "value"),
    Taken("--gui", "switch", experimental=(3, 7)),
    Taken("--tui", "switch", (3, 2), experimental=(3, 7)),
    Taken("--nodes", "many", (3, 1), (3, 8)),
    Taken("--experimental", "switch", (3, 5)),
)
_KINDS: dict[str, dict[str, object]] = {
    "value": {},
    "switch": {"action": "store_true"},
    "many": {"nargs": "+"},
    "policy": {
        "nargs": "?",
        "choices": ["kernel", "kernel_launch_params"],
        "const": "kernel_launch_params",
    },
    "join": {"choices": ["kernel", "grid"]},
    "format": {"choices": ["stdout", "txt", "csv", "db"], "default": "stdout"},
}
_RANKS = (
    *("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PALS_RANKID"),
    "FLUX_TASK_RANK",
)


def play(tool: str, release: str, arguments: list[str]) -> int:
    """`profile` runs the command several times; `analyze` writes tables of what it left."""
    version = VERSIONS.get(release, "2.0.1")
    own = tuple(int(part) for part in version.split("."))[:2]
    if arguments == ["--version"]:
        name = "omniperf" if tool == "omniperf" else "rocprofiler-compute"
        rule = "-" * 40
        print(f"{rule}\n{name} version: {version} (release)\nGit revision: 1a2b3c\n{rule}")
        return 0
    split = arguments.index("--") if "--" in arguments else len(arguments)
    words, command = arguments[:split], arguments[split + 1 :]
    parser = argparse.ArgumentParser(prog=tool, allow_abbrev=False)
    modes = parser.add_subparsers(dest="mode", required=True)
    for mode, options in (("profile", PROFILE), ("analyze", ANALYZE)):
        # the tool names its modes so
        _declare(modes.add_parser(mode, prog="tool", allow_abbrev=False), options, own, words)
    asked = parser.parse_args(words)
    return _analyze(asked, own) if asked.mode == "analyze" else _profile(tool, asked, own, command)


def _declare(
    mode: argparse.ArgumentParser,
    options: tuple[Taken, ...],
    own: tuple[int, ...],
    words: list[str],
) -> None:
    for taken in options:
        if not taken.since <= own < taken.before:
            continue
        keywords = dict(_KINDS[taken.kind])
        names = taken.names.split()
        if own >= taken.experimental and "--experimental" not in words:
            keywords["action"] = _Experimental
            keywords["nargs"] = "*"
        mode.add_argument(*names, **keywords)  # type: ignore[arg-type]  # from a table of kinds


class _Experimental(argparse.Action):
    """Refuses the option in the tool's words."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        label = self.option_strings[-1].removeprefix("--").replace("-", " ").capitalize()
        parser.error(f"{label} is an experimental feature. Use --experimental to enable it.")


def _failed(text: str) -> int:
    sys.stderr.write(f"   ERROR {text}\n")
    return 1


def _folder(asked: argparse.Namespace, own: tuple[int, ...]) -> Path:
    """Where the workload's files go; under a launcher the rank stands below a plain directory."""
    given = getattr(asked, "output_directory", None)
    if not given:
        return Path(getattr(asked, "path", None) or "workloads") / str(asked.name) / "MI300X_A1"
    assert own >= (3, 5)
    rank = next((os.environ[name] for name in _RANKS if name in os.environ), None)
    folder = Path(given.replace("%rank%", rank or "0").replace("%gpumodel%", "MI300X_A1"))
    return folder if rank is None or "%rank%" in given else folder / rank


def _profile(tool: str, asked: argparse.Namespace, own: tuple[int, ...], command: list[str]) -> int:
    from tests.fakes.amd_tools import compute_files

    if not (asked.name or getattr(asked, "output_directory", None)):
        return _failed("The following arguments are required: -n/--name")
    folder = _folder(asked, own)
    if own >= (3, 8) and folder.is_dir() and any(folder.iterdir()) and not asked.overwrite:
        return _failed(f"Output directory {folder} is not empty. Use --overwrite to replace it.")
    failure = os.environ.get("STAND_IN_COMPUTE", "")
    if failure == "silent":
        return 0
    if failure == "never":
        return _failed("Profiling execution failed.")
    if failure == "output-path" and own < (3, 7):
        sys.stderr.write("ROCPROF_OUTPUT_PATH environment variable must be set\n")
        return _failed("Profiling execution failed.")
    once = bool(getattr(asked, "iteration_multiplexing", None) or getattr(asked, "set", None))
    executions = []
    for _ in range(1 if once else REPLAYS):
        processes = _execute(command)
        if processes is None:
            sys.stderr.write(f"ERROR {tool}: the application failed\n")
            return _failed("Profiling execution failed.")
        executions.append(processes)
    shared = bool(getattr(asked, "iteration_multiplexing", None))
    compute_files.write_workload(folder, own, executions, shared=shared)
    if getattr(asked, "retain_rocpd_output", False):
        compute_files.write_databases(folder, "node1", executions)
    if not (asked.no_roof or (own >= (3, 10) and asked.set)):
        compute_files.write_roofline(folder)
    return 0


def _execute(command: list[str]) -> list[dict[str, object]] | None:
    """The processes of one execution; None where the command failed."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command,
            env=traced(STAND_IN_TRACER=json.dumps({"tool": "raw", "folder": folder})),
            check=False,
        )
        if done.returncode != 0:
            return None
        found = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("raw-*.json"))]
    return sorted(
        found, key=lambda process: min((k["start"] for k in process["kernels"]), default=0)
    )


def _analyze(asked: argparse.Namespace, own: tuple[int, ...]) -> int:
    """Tables beside the counters; from 3.3 on their name is a plain one, below the working
    directory.
    """
    from tests.fakes.amd_tools import compute_files

    folder = Path(asked.path)
    if own < (3, 3):
        if asked.save_dfs:
            compute_files.write_analysis(Path(asked.save_dfs), own)
        return 0
    name = asked.output_name or "rocprof_compute_0123"
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return _failed("Analysis output file/folder name must contain only alphanumeric characters")
    if Path(name).exists():
        return _failed(f"Analysis output file/folder {name} already exists.")
    if not any((*folder.glob("pmc_perf*.csv*"), *folder.glob("results_*.csv*"))):
        return _failed(f"No counter data in {folder}")
    compute_files.join(folder, own)
    if asked.output_format == "csv":
        compute_files.write_analysis(Path(name), own)
    elif asked.output_format == "db":
        compute_files.write_analysis_database(Path(f"{name}.db"))
    return 0
