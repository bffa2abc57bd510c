"""Stand-ins for AMD's command-line tools: they accept exactly the options of one ROCm release, run
the command, and leave real files.

Run as `python -m tests.fakes.stand_in_tools TOOL RELEASE ARGUMENTS ...`; `install` makes a ROCm
folder whose programs do that. What the command did is told by `stand_in_hip`. Unknown options fail
with the real tools' words and exit codes.
"""

from __future__ import annotations

import contextlib
import functools
import io
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fakes.amd_tools import attaching, rocprof, rocprof_compute, rocprof_sys, rocprofv3
from tests.fakes.amd_tools.starting import ROOT

NAMES = {
    "rocprofv3": rocprofv3.RELEASES,
    "rocprof": rocprof.RELEASES,
    **{f"rocprof-sys-{mode}": rocprof_sys.RELEASES for mode in ("sample", "run", "python")},
    **{f"omnitrace-{mode}": rocprof_sys.OLD_RELEASES for mode in ("sample", "run", "python")},
    "rocprof-sys-attach": rocprof_sys.ATTACHING,
    "rocprof-compute": rocprof_compute.RELEASES,
    "omniperf": rocprof_compute.OLD_RELEASES,
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


def main(tool: str, release: str, arguments: list[str]) -> int:
    """Play one tool."""
    if tool == "rocprofv3":
        rocprofv3.play(release, arguments)
    if tool == "rocprof":
        return rocprof.play(arguments)
    if tool in ("rocprof-compute", "omniperf"):
        return rocprof_compute.play(tool, release, arguments)
    if tool == "rocprof-sys-attach":
        return attaching.play_sys(release, arguments)
    return rocprof_sys.play(tool, release, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
