"""Which vendor tools a node has: their paths, versions, and the ROCm releases that they came with.

Standard library only, Python 3.8 on; part of `probe.py`.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from probe_devices import read
from probe_profilers import beside_torch, packages_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict


TOOLS = (
    "rocprofv3",
    "rocprof",
    "rocprofv2",
    "rocprof-sys-run",
    "rocprof-sys-sample",
    "rocprof-sys-python",
    "rocprof-compute",
    "omnitrace",
    "omnitrace-run",
    "omnitrace-sample",
    "omnitrace-python",
    "omniperf",
    "rocm-smi",
    "amd-smi",
    "nsys",
    "ncu",
    "nvidia-smi",
    "perf_analyzer",
    "apptainer",
    "singularity",
    "srun",
)
WHEELS = ("py-spy",)  # programs that a wheel puts beside the interpreter
TOOL_SECONDS = 15
_RELEASE = r"\d+\.\d+(?:\.\d+)?"


def _tool_environment() -> Dict[str, str]:
    """The environment without our hooks: a tool written in Python is not part of the workload."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PROFHARNESS_") and name != "PYTHONPATH"
    }


def tools() -> Dict[str, Dict[str, str]]:
    """Path, version and ROCm release of the vendor tools on PATH or in ROCm's bin folder, and of
    the programs that PROFHARNESS_PROGRAMS names. All are asked for their versions at once, and have
    TOOL_SECONDS together.
    """
    more = [name for name in os.environ.get("PROFHARNESS_PROGRAMS", "").split(",") if name]
    rocm = os.environ.get("ROCM_PATH", "/opt/rocm")
    path = os.pathsep.join(
        (os.environ.get("PATH", ""), os.path.join(rocm, "bin"), os.path.join(rocm, "core", "bin"))
    )
    beside = os.pathsep.join(
        (path, os.path.dirname(sys.executable), os.environ.get("PROFHARNESS_BIN", ""))
    )
    asked = {}
    for name in dict.fromkeys([*TOOLS, *more]):
        place = shutil.which(
            os.environ.get("PROFHARNESS_PERF_ANALYZER") or name
            if name == "perf_analyzer"
            else name,
            path=beside if name in WHEELS else path,
        )
        if place and name == "rocprofv3":
            place = beside_torch(place)
        if place:
            asked[name] = (place, _ask(place))
    until = time.monotonic() + TOOL_SECONDS
    found = {}
    for name, (place, process) in asked.items():
        answer = _answer(process, until)
        is_told = process is not None and process.returncode == 0
        found[name] = {
            "path": place,
            "version": version_in(answer, anywhere=is_told),
            "rocm": rocm_in(answer) or rocm_of(place),
        }
    return found


def rocm_in(text: str) -> str:
    """The ROCm release in a tool's answer, which newer ones give; "" where there is none."""
    match = re.search(r"\brocm(?:_version)?\s*:\s*v?(\d+\.\d+(?:\.\d+)?)", text, re.I)
    return match.group(1) if match else ""


def rocm_of(place: str) -> str:
    """The release of the ROCm installation that a tool lies in; "" for a tool from elsewhere.

    That is of the wheels of a Python beside whose bin folder the tool lies, whatever that folder is
    called, a tree with `.info/version` (in bin, or deeper, as rocprof-compute in libexec), or a
    folder that is named after its release (rocm-7.2.1, or core-7.13 below rocm).
    """
    root = os.path.dirname(os.path.realpath(place))
    of_wheels = rocm_of_wheels(os.path.dirname(root))
    if of_wheels:
        return of_wheels
    for _ in range(3):
        root = os.path.dirname(root)
        text = read(os.path.join(root, ".info/version"))
        if not text and re.match(r"(?:rocm|core(?:-asan)?)-\d", os.path.basename(root)):
            text = os.path.basename(root)
        match = re.search(_RELEASE, text)
        if match:
            return match.group(0)
    return ""


def rocm_of_wheels(prefix: str) -> str:
    """The release of the wheel rocm-sdk-core in the Python below `prefix`; "" where there is none.
    Names of wheels that are no releases end in a text of their own.
    """
    packages = packages_of(prefix)
    for pattern in ("_rocm_sdk_core*/.info/version", "_rocm_sdk_devel*/.info/version"):
        for path in sorted(glob.glob(os.path.join(packages, pattern))):
            match = re.search(_RELEASE, read(path))
            if match:
                return match.group(0)
    for path in sorted(glob.glob(os.path.join(packages, "rocm_sdk_core*.dist-info"))):
        match = re.search(_RELEASE, os.path.basename(path))
        if match:
            return match.group(0)
    return ""


def _ask(place: str) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            [place, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_tool_environment(),
            start_new_session=True,
        )
    except OSError:
        return None


def _answer(process: subprocess.Popen[bytes] | None, until: float) -> str:
    if process is None:
        return ""
    try:
        output = process.communicate(timeout=max(0.1, until - time.monotonic()))[0]
    except subprocess.TimeoutExpired:
        # it leads a group; a child of it would keep the pipe open
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return ""
    return output.decode("utf-8", "replace")


def version_in(text: str, *, anywhere: bool = True) -> str:
    """The version in a tool's answer: from a line that says "version" if there is one, else the
    first one `anywhere`; "" where there is none. What a tool says that fails may name versions of
    other things: the time, or packages that it lacks.
    """
    lines = text.splitlines()
    saying = [line for line in lines if re.search(r"(?<!-)\bversion\b|slurm|apptainer", line, re.I)]
    for line in saying + (lines if anywhere else []):
        match = re.search(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)*)", line)
        if match:
            return match.group(1)
    return ""


def rocm_version(tools_found: Dict[str, Dict[str, str]] | None = None) -> str:
    """The release of the installation in ROCM_PATH (or /opt/rocm), from its own file or its
    folder's name, also where its packages lie in a folder core below it; else the release of the
    first tool found that has one; else "".
    """
    root = os.environ.get("ROCM_PATH", "/opt/rocm")
    core = os.path.join(root, "core")
    for text in (
        read(os.path.join(root, ".info/version")),
        os.path.basename(os.path.realpath(root)),
        read(os.path.join(core, ".info/version")),
        os.path.basename(os.path.realpath(core)),
    ):
        match = re.search(_RELEASE, text)
        if match:
            return match.group(0)
    return next((tool["rocm"] for tool in (tools_found or {}).values() if tool["rocm"]), "")


def lacks_rocm(torch_hip: str = "", opt: str = "/opt") -> bool:
    """Whether there is no ROCm here: no installation in ROCM_PATH or below /opt, no wheels in this
    Python, and no torch that brings its own libraries (`torch_hip` is its HIP version). Libraries
    that Apptainer bound by --rocm are none of these.
    """
    return not (
        torch_hip
        or os.path.isdir(os.environ.get("ROCM_PATH", ""))
        or glob.glob(os.path.join(opt, "rocm*"))
        or rocm_of_wheels(sys.prefix)
    )
