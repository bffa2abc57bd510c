"""rocprof-sys, and omnitrace before it: sets the environment and becomes the command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import NoReturn

from tests.fakes.amd_tools.starting import replace_by

VERSIONS = {
    "6.3": "0.1.0",
    "6.4": "1.0.0",
    "7.0": "1.1.0",
    "7.1": "1.2.0",
    "7.2": "1.3.0",
    "7.11": "1.4.0",
    "7.12": "1.5.0",
    "7.13": "1.6.0",
    "7.14": "1.7.0",
    "10.0": "1.8.0",
    "10.1": "1.9.0",
    "10.2": "1.10.0",
}
RELEASES = tuple(VERSIONS)
OLD_RELEASES = ("5.7", "6.1", "6.2")


def play(tool: str, release: str, arguments: list[str]) -> NoReturn:
    """Sets the environment and becomes the command."""
    if arguments == ["--version"]:
        version = VERSIONS.get(release, "1.11.3")
        print(f"{tool} v{version} (rev: 1a2b3c, x86_64-linux-gnu, rocm: v{release}.x)")
        sys.exit(0)
    prefix = "OMNITRACE_" if tool.startswith("omnitrace") else "ROCPROFSYS_"
    python = tool.endswith("-python")
    parser = argparse.ArgumentParser(prog=tool, allow_abbrev=False)
    if not python:
        for names in (
            ("-T", "--trace"),
            ("-P", "--profile"),
            ("-F", "--flat-profile"),
            ("-S", "--sample"),
            ("-H", "--host"),
            ("-D", "--device"),
        ):
            parser.add_argument(*names, action="store_true")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    _, unknown = parser.parse_known_args(arguments[:split])
    command = arguments[split + 1 :]
    if unknown or not command:
        sys.stderr.write(f"[{tool}] unknown option: {' '.join(unknown)}\n")
        sys.exit(1)
    if python:
        command = [os.environ.get("PYTHON_EXECUTABLE", sys.executable), *command]
    replace_by(command, STAND_IN_TRACER=json.dumps({"tool": "rocprof-sys", "prefix": prefix}))
