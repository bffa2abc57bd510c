"""Stand-ins for AMD's command-line tools: they accept exactly the options of one ROCm release, run
the command, and leave real files.

Run as `python -m tests.fakes.stand_in_tools TOOL RELEASE ARGUMENTS ...`; `install` makes a ROCm
folder whose programs do that. What the command did is told by `stand_in_hip`. Unknown options fail
with the real tools' words and exit codes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
NAMES = {
    "rocprofv3": ("6.2", "6.3", "6.4", "7.0"),
    "rocprof": ("5.7", "6.1", "6.2", "6.3", "6.4"),
    "rocprof-sys-sample": ("6.3", "6.4", "7.0"),
    "rocprof-sys-run": ("6.3", "6.4", "7.0"),
    "rocprof-sys-python": ("6.3", "6.4", "7.0"),
    "omnitrace-sample": ("5.7", "6.1", "6.2"),
    "omnitrace-run": ("5.7", "6.1", "6.2"),
    "omnitrace-python": ("5.7", "6.1", "6.2"),
    "rocprof-compute": ("6.3", "6.4", "7.0"),
    "omniperf": ("5.7", "6.1", "6.2"),
}


ROCTX = "librocprofiler-sdk-roctx.so.1"


def install(
    folder: Path, release: str, tools: Sequence[str] | None = None, *, roctx: bool = False
) -> Path:
    """A folder like /opt/rocm-<release>, with the tools that this release has (or those named);
    returns its bin folder.

    With `roctx` its lib folder has a stand-in for that library too, which needs a C compiler.
    """
    rocm = folder / f"rocm-{release}.1"
    (rocm / "bin").mkdir(parents=True)
    (rocm / ".info").mkdir()
    (rocm / ".info" / "version").write_text(f"{release}.1-42\n")
    for tool, releases in NAMES.items():
        if (tool in tools) if tools is not None else (release in releases):
            program = rocm / "bin" / tool
            program.write_text(
                f"#!/bin/sh\n{_version_in_shell(tool, release)}"
                f'PYTHONPATH="{ROOT}${{PYTHONPATH:+:$PYTHONPATH}}" '
                f"STAND_IN_ROCM={shlex.quote(str(rocm))} exec {shlex.quote(sys.executable)} -m "
                f'tests.fakes.stand_in_tools {tool} {release} "$@"\n'
            )
            program.chmod(0o755)
    if roctx:
        (rocm / "lib").mkdir()
        compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
        subprocess.run(
            [
                compiler,
                "-shared",
                "-fPIC",
                "-o",
                rocm / "lib" / ROCTX,
                ROOT / "tests" / "fakes" / "stand_in_roctx.c",
            ],
            check=True,
        )
    return rocm / "bin"


@functools.cache
def _version_in_shell(tool: str, release: str) -> str:
    """Lines of a shell script that answer `--version` as `main` does. Every run asks each tool, and
    to start Python for each answer would be a good part of what the tests cost.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status: int | str | None = main(tool, release, ["--version"])
        except SystemExit as end:
            status = end.code
    return (
        'if [ "$*" = --version ]; then\n'
        f"  printf %s {shlex.quote(out.getvalue())}\n"
        f"  printf %s {shlex.quote(err.getvalue())} >&2\n"
        f"  exit {status or 0}\nfi\n"
    )


def _traced(**variables: str) -> dict[str, str]:
    """The environment of what a tool starts: our stand-in for its library is loaded into every
    Python of it.
    """
    path = os.environ.get("PYTHONPATH", "")
    return {
        **os.environ,
        **variables,
        "PYTHONPATH": f"{ROOT / 'tests' / 'fakes' / 'stand_in_site'}{':' if path else ''}{path}",
    }


def _replace_by(argv: Sequence[str], **variables: str) -> NoReturn:
    """As the real tools do: the command takes this process over, and with it the exit status."""
    try:
        os.execvpe(argv[0], list(argv), _traced(**variables))
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.exit(127)


def _fatal(text: str) -> NoReturn:
    sys.stderr.write(f"Fatal error: {text}\n")
    sys.exit(1)


# ---------------------------------------------------------------- rocprofv3

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


def rocprofv3(release: str, arguments: list[str]) -> NoReturn:
    """One pass: sets the environment and becomes the command."""
    late = release == "7.0"
    parser = argparse.ArgumentParser(prog="rocprofv3", allow_abbrev=False)
    for name in _V3_SWITCHES:
        if late:
            parser.add_argument(name, nargs="?", const=True, default=False)
        else:
            parser.add_argument(name, action="store_true")
    for name in (
        *(["--memory-allocation-trace"] if release in ("6.4", "7.0") else []),
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
    if release in ("6.4", "7.0"):
        parser.add_argument("--collection-period", nargs="+")
        parser.add_argument(
            "--collection-period-unit", choices=("hour", "min", "sec", "msec", "usec", "nsec")
        )
        parser.add_argument("-v", "--version", action="store_true") if late else None
    parser.add_argument("--log-level")
    parser.add_argument("--disable-signal-handlers", nargs="?")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:split])
    if late and options.version:
        print("version: 1.0.0\nrocm_version: 7.0.0")
        sys.exit(0)
    command = arguments[split + 1 :]
    if not command:
        _fatal("No application provided")
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
        _fatal("No tracing options were enabled for --stats")
    if any(name.startswith("NOT_") for name in counters):
        sys.stderr.write("Unable to find all counters for agent 2 (gpu-0, gfx942)\n")
        counters = []
    if on["--marker-trace"] and release == "7.0" and getattr(options, "selected_regions", False):
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
    _replace_by(command, STAND_IN_TRACER=json.dumps(asked))


# ---------------------------------------------------------------- rocprof v1

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


def rocprof(arguments: list[str]) -> int:
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
            env=_traced(STAND_IN_TRACER=json.dumps({"tool": "raw", "folder": folder})),
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


# ---------------------------------------------------------------- rocprof-sys and rocprof-compute


def rocprof_sys(tool: str, arguments: list[str]) -> NoReturn:
    """Sets the environment and becomes the command."""
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
    _replace_by(command, STAND_IN_TRACER=json.dumps({"tool": "rocprof-sys", "prefix": prefix}))


def rocprof_compute(tool: str, arguments: list[str]) -> int:
    """`profile` runs the command several times; `analyze` writes tables of what it left."""
    from tests.fakes.stand_in_files import write_compute

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
                env=_traced(STAND_IN_TRACER=json.dumps({"tool": "raw", "folder": folder})),
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


def main(tool: str, release: str, arguments: list[str]) -> int:
    """Play one tool."""
    if tool == "rocprofv3":
        rocprofv3(release, arguments)
    if tool == "rocprof":
        return rocprof(arguments)
    if arguments == ["--version"]:
        print(f"{tool} v1.0.0")
        return 0
    if tool in ("rocprof-compute", "omniperf"):
        return rocprof_compute(tool, arguments)
    rocprof_sys(tool, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
