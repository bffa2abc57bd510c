"""rocprof-compute, and omniperf before it: runs the command several times."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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


def play(tool: str, release: str, arguments: list[str]) -> int:
    """`profile` runs the command several times; `analyze` writes tables of what it left."""
    from tests.fakes.stand_in_files import write_compute

    if arguments == ["--version"]:
        name = "omniperf" if tool == "omniperf" else "rocprofiler-compute"
        rule = "-" * 40
        version = VERSIONS.get(release, "2.0.1")
        print(f"{rule}\n{name} version: {version} (release)\nGit revision: 1a2b3c\n{rule}")
        return 0

    parser = argparse.ArgumentParser(prog=tool, allow_abbrev=False)
    modes = parser.add_subparsers(dest="mode", required=True)
    profile = modes.add_parser("profile", prog=tool, allow_abbrev=False)
    profile.add_argument("-n", "--name", required=True)
    profile.add_argument("-p", "--path", default="workloads")
    profile.add_argument("--no-roof", action="store_true")
    analyze = modes.add_parser("analyze", prog=tool, allow_abbrev=False)
    analyze.add_argument("-p", "--path", required=True)
    analyze.add_argument("--save-dfs")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:split])
    if options.mode == "analyze":
        Path(options.save_dfs).mkdir(parents=True)
        (Path(options.save_dfs) / "0.1_Top_Kernels.csv").write_text("Kernel_Name,Count\n")
        return 0
    executions: list[dict[str, Any]] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                arguments[split + 1 :],
                env=traced(STAND_IN_TRACER=json.dumps({"tool": "raw", "folder": folder})),
                check=False,
            )
            if done.returncode != 0:
                sys.stderr.write(f"ERROR {tool}: the application failed\n")
                return 1
            processes = [
                json.loads(path.read_text()) for path in sorted(Path(folder).glob("raw-*.json"))
            ]
            executions.append(
                {"kernels": [kernel for process in processes for kernel in process["kernels"]]}
            )
    write_compute(Path(options.path) / options.name / "MI300X_A1", executions)
    return 0
