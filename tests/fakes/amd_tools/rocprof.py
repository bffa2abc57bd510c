"""rocprof, the first version: a script around the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fakes.amd_tools.starting import traced

RELEASES = ("5.7", "6.1", "6.2", "6.3", "6.4", "7.0", "7.1", "7.2", "7.2.4")

_V1_VALUES = (
    "-i",
    "-o",
    "-d",
    "-t",
    "-m",
    "--basenames",
    "--timestamp",
    "--ctx-limit",
    "--heartbeat",
    "--trace-start",
    "--trace-period",
    "--flush-rate",
)
_V1_SWITCHES = (
    "--stats",
    "--roctx-trace",
    "--hip-trace",
    "--hsa-trace",
    "--sys-trace",
    "--roctx-rename",
    "--parallel-kernels",
    "--verbose",
)


def play(arguments: list[str]) -> int:
    """A script around the command: options until the first other word, then the command, evaluated
    by a shell.
    """
    values: dict[str, str] = {}
    switches: set[str] = set()
    words = list(arguments)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--version":
            print("ROCm version: 6.1.2-115")
            return 0
        if word in _V1_VALUES and words:
            values[word] = words.pop(0)
        elif word in _V1_SWITCHES:
            switches.add(word)
        else:
            print(f"Wrong option '{word}'")
            return 1
    output = Path(values.get("-o", "results.csv"))
    if output.suffix != ".csv":
        print("Wrong output file name")
        return 1
    return _run_v1(output, values, switches, words)


def _run_v1(output: Path, values: dict[str, str], switches: set[str], words: Sequence[str]) -> int:
    from tests.fakes.stand_in_files import write_v1

    counters = Path(values["-i"]).read_text().split("pmc:")[1].split() if "-i" in values else []
    sys.stdout.write("RPL: on '260102_095332' from '/opt/rocm'\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:
        # cmd-qts: each word in double quotes, then eval, so that a shell evaluates what they hold
        line = " ".join(f'"{word}"' for word in words)
        done = subprocess.run(
            ["sh", "-c", line],
            env=traced(STAND_IN_TRACER=json.dumps({"tool": "raw", "folder": folder})),
            check=False,
        )
        processes = [
            json.loads(path.read_text()) for path in sorted(Path(folder).glob("raw-*.json"))
        ]
    if os.environ.get("STAND_IN_CORRUPT"):
        sys.stderr.write("Profiling data corrupted: ' results.txt'\n")
        return 1
    if processes:
        output.unlink(missing_ok=True)
        write_v1(
            output,
            processes,
            hip="--hip-trace" in switches or "--sys-trace" in switches,
            counters=counters,
        )
    return done.returncode if done.returncode >= 0 else 128 - done.returncode
