"""The `rocprofv3` layer: AMD's tracer since ROCm 6.2, around the workload's process.

It replaces itself by the workload, so that exit status and signals stay the workload's own. Kernels
and copies are always recorded: --hip-trace alone would give host calls only.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from profharness.launchers.command import Command
from profharness.layers import COMMAND, Availability, Extras, Where, rocm_versions
from profharness.layers.around import execution
from profharness.layers.recorded import tail_closes
from profharness.layers.rocm_versions import ROCM_6_2, ROCM_6_3, ROCM_6_4, ROCM_7_0, Installed
from profharness.node.probe import Environment
from profharness.rundir.capture import period
from profharness.rundir.manifest import Artifact

PROGRAM = "rocprofv3"
PREDECESSOR = "rocprof"
# <execution>_<pid>_<kind>.<ext>; the tool adds kind and extension
_FILE = re.compile(
    r"(?P<pass>.+)_(?P<pid>\d+)_(?P<kind>[a-z_]+)\.(?P<ext>csv|json|db|pftrace)(\.gz)?"
)
_FORMATS = {"csv": "rocprofv3-csv", "json": "rocprofv3-json", "db": "rocpd", "pftrace": "pftrace"}
_PREFERRED = ("db", "json", "csv", "pftrace")  # of one process, the first that is whole is read
# records only between roctxProfilerResume and roctxProfilerPause; since ROCm 7.0
_REGIONS = "--selected-regions"
_SWITCHES = ("hip_trace", "hsa_trace", "marker_trace", "rccl_trace", "sys_trace", "stats")


class Rocprofv3Layer:
    """Kernels, copies, host calls, markers; in passes of their own hardware counters."""

    name = "rocprofv3"
    claims = frozenset({"hsa-tool"})
    scope: Literal["prefix"] = "prefix"
    perturbing = False
    attach_hint = "it goes around a process: profile a scan's backend or a command"

    def attaches(self, target: str) -> bool:
        return target in ("torch", "onnxruntime", "tensorflow", COMMAND)

    def probe(self, environment: Environment) -> Availability:
        older = (
            "--profile rocprof (kernel statistics) or " if PREDECESSOR in environment.tools else ""
        )
        release = rocm_versions.parse(environment.rocm_version)
        get = (
            "install rocprofiler-sdk, or put ROCm's bin folder on the PATH; or "
            if release is not None and release >= ROCM_6_2
            else ""
        )
        way_out = (
            f"it came with ROCm 6.2; {rocm_versions.here(environment)}\n"
            f"{get}use {older}--profile torch; `profharness doctor --try` shows what works here"
        )
        return rocm_versions.availability(environment, way_out, PROGRAM)

    def prepare(self, command: Command, where: Where) -> Command:
        tool = rocm_versions.installed(where.environment, PROGRAM)
        options = where.options
        chosen = (
            []
            if where.counters
            else [f"--{name.replace('_', '-')}" for name in _SWITCHES if getattr(options, name)]
        )
        window = _window(tool, where.capture)
        if (not where.counters or _REGIONS in window) and "--marker-trace" not in chosen:
            chosen.append(
                "--marker-trace"
            )  # our hooks mark steps and points as roctx ranges, and tell the tool when to record
        argv = (
            tool.call,
            "--kernel-trace",
            "--memory-copy-trace",
            *chosen,
            *_counters(tool, where, command),
            *window,
            "--output-format",
            *_formats(tool, where),
            "-d",
            str(where.artifacts / self.name),
            "-o",
            _file_name(command, where),
            *options.args_for(self.name),
            "--",
        )
        env = (
            {"PROFHARNESS_REGIONS": where.capture.removeprefix("steps=")}
            if _REGIONS in window
            else {}
        )
        return command.with_prefix(argv).with_env(
            {**env, **({"ROCPROF_TMPDIR": str(_spill(where))} if where.spill else {})}
        )

    def extras(self, command: Command, where: Where) -> Extras:
        tool = rocm_versions.installed(where.environment, PROGRAM)
        cut = where.capture if _is_whole(tool, where.capture) else ""
        notes = tuple(
            note for note in (rocm_versions.planned_for(tool), _cut_note(tool, cut)) if note
        )
        files = (
            ((_input_file(command, where), f"pmc: {' '.join(where.counters)}\n"),)
            if where.counters and tool.rocm < ROCM_6_3
            else ()
        )
        folders = (where.artifacts / self.name, *((_spill(where),) if where.spill else ()))
        return Extras(folders=folders, files=files, notes=notes, cut=cut)

    def follow_up(self, where: Where) -> tuple[Command, ...]:  # noqa: ARG002  nothing is left to do
        return ()

    def collect(self, where: Where, known: frozenset[str]) -> tuple[Artifact, ...]:
        """The files of this pass, of each process the best one to be read; some releases put
        folders in between.
        """
        found: dict[tuple[Path, str], list[tuple[Path, re.Match[str]]]] = {}
        for path in sorted((where.artifacts / self.name).rglob("*")):
            match = _FILE.fullmatch(path.name)
            if match and path.is_file() and match["pass"].split(".")[0] == where.pass_name:
                found.setdefault((path.parent, match["pid"]), []).append((path, match))
        return tuple(
            _artifact(path, match, where, aside=not _is_read(path, match, group))
            for group in found.values()
            for path, match in group
            if str(path.relative_to(where.run_root)) not in known
        )


def _file_name(command: Command, where: Where) -> str:
    """Host, rank (or pid) and pid are the tool's to fill in: every process writes files of
    its own.
    """
    owner = "%nid%" if where.rank is None else str(where.rank)
    return f"%hostname%/{owner}/{execution(command, where)}_%pid%"


def _formats(tool: Installed, where: Where) -> tuple[str, ...]:
    """A rocpd database where it exists; before it CSV, and JSON for the bytes of copies. The tool's
    own statistics are CSV.
    """
    if tool.rocm >= ROCM_7_0:
        return ("rocpd", "csv") if where.options.stats and not where.counters else ("rocpd",)
    return ("csv", "json")


def _counters(tool: Installed, where: Where, command: Command) -> tuple[str, ...]:
    """The counters of the pass; --pmc came with ROCm 6.3, an input file with one `pmc:` line does
    before.
    """
    if not where.counters:
        return ()
    options = where.options
    chosen = (
        ("--pmc", *where.counters)
        if tool.rocm >= ROCM_6_3
        else ("-i", str(_input_file(command, where)))
    )
    if options.kernel_include_regex:
        chosen += ("--kernel-include-regex", options.kernel_include_regex)
    if options.kernel_iteration_range:
        chosen += ("--kernel-iteration-range", options.kernel_iteration_range)
    return chosen


def _input_file(command: Command, where: Where) -> Path:
    return (
        where.run_root / "control" / where.pass_name / f"{execution(command, where)}.counters.txt"
    )


def _window(tool: Installed, capture: str) -> tuple[str, ...]:
    """What bounds the recording: for steps our hooks tell the tool when to record, a time with its
    length it knows itself.
    """
    if capture in ("default", "all") or _is_whole(tool, capture):
        return ()
    asked = period(capture)
    return (
        (_REGIONS,)
        if asked is None
        else (
            "--collection-period",
            f"{asked.after_ns}:{asked.for_ns}:1",
            "--collection-period-unit",
            "nsec",
        )
    )


def _is_whole(tool: Installed, capture: str) -> bool:
    """Whether a window was asked for that this release cannot keep to, so that it records the whole
    execution.
    """
    if capture in ("default", "all"):
        return False
    asked = period(capture)
    return tool.rocm < ROCM_7_0 if asked is None else tool.rocm < ROCM_6_4 or asked.for_ns is None


def _cut_note(tool: Installed, cut: str) -> str:
    return (
        f"rocprofv3 of ROCm {tool.release} records the whole execution; "
        f"--capture {cut} is cut from it"
        if cut
        else ""
    )


def _spill(where: Where) -> Path:
    """Of each rank its own: names in there hold pids, and nodes may share them."""
    return (where.spill or where.run_root) / where.host / where.owner


def _is_read(path: Path, match: re.Match[str], group: list[tuple[Path, re.Match[str]]]) -> bool:
    """Whether this file speaks for its process; statistics and agent lists never do."""
    if match["ext"] == "csv" and not match["kind"].endswith(("_trace", "counter_collection")):
        return False
    whole = {other["ext"] for file, other in group if other["ext"] != "json" or tail_closes(file)}
    if match["ext"] == "json" and match["kind"] != "results":
        return False
    best = next((ext for ext in _PREFERRED if ext in whole), "")
    return match["ext"] == best or (not best and path == group[0][0])


def _artifact(path: Path, match: re.Match[str], where: Where, *, aside: bool) -> Artifact:
    owner, host = path.parent.name, path.parent.parent.name
    rank = int(owner) if owner.isdigit() and owner != match["pid"] else None
    return Artifact(
        path=str(path.relative_to(where.run_root)),
        layer=PROGRAM,
        format=_FORMATS[match["ext"]],
        pass_name=where.pass_name,
        host=host,
        pid=int(match["pid"]),
        rank=rank,
        size_bytes=path.stat().st_size,
        aside=aside,
    )
