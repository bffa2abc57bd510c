"""The `rocprof` layer: AMD's first tracer (ROCm up to 6, deprecated since 6.4), a shell script
around the command.

Its command follows its options directly: it takes no `--`. Its exit status may be its
post-processing's, so that the workload's own is recorded inside.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import COMMAND, Availability, Extras, Where, rocm_versions
from profharness.layers.around import own_folder, rank_of
from profharness.layers.recorded import tail_closes
from profharness.layers.rocm_versions import ROCM_7_0
from profharness.node.probe import Environment
from profharness.rundir.capture import period
from profharness.rundir.manifest import Artifact

PROGRAM = "rocprof"
# of one execution the first of these that is whole is read: the database holds what the others are
# made from
_READ = (("results.db", "rocprof-db"), ("results.json", "rocprof-json"), ("results.csv", "rocprof"))
_SUFFIXES = (".csv", ".json", ".db", ".txt")


class RocprofLayer:
    """Kernels with their geometry, copies and host calls; in passes of their own hardware
    counters.
    """

    name = "rocprof"
    claims = frozenset({"hsa-tool"})
    scope: Literal["prefix"] = "prefix"
    perturbing = False
    attach_hint = "it goes around a process: profile a scan's backend or a command"

    def attaches(self, target: str) -> bool:
        return target in ("torch", "onnxruntime", "tensorflow", COMMAND)

    def probe(self, environment: Environment) -> Availability:
        release = rocm_versions.parse(environment.rocm_version)
        gone = release is not None and release >= ROCM_7_0
        newer = (
            "use --profile rocprofv3"
            if "rocprofv3" in environment.tools
            else "install rocprofiler-sdk, which brings rocprofv3, or use --profile torch"
        )
        way_out = (
            f"newer ROCm releases leave it out; {rocm_versions.here(environment)}\n{newer}"
            if gone
            else f"it comes with ROCm's rocprofiler package; {rocm_versions.here(environment)}\n"
            "put ROCm's bin folder on the PATH, or use --profile torch; "
            "`profharness doctor` shows what works here"
        )
        return rocm_versions.availability(environment, way_out, PROGRAM)

    def prepare(self, command: Command, where: Where) -> Command:
        if period(where.capture) is not None:
            raise UsageError(
                f"--capture {where.capture}: rocprof records the whole execution",
                "leave --capture out, or use --profile torch",
            )
        output = ("-o", str(own_folder(self.name, command, where) / "results.csv"))
        chosen = (
            ("-i", str(_input_file(command, where)), "--timestamp", "on")
            if where.counters
            else _traces(where)
        )
        tool = rocm_versions.installed(where.environment, PROGRAM)
        return command.with_prefix(
            (tool.call, *chosen, *output, *where.options.args_for(self.name))
        )

    def extras(self, command: Command, where: Where) -> Extras:
        tool = rocm_versions.installed(where.environment, PROGRAM)
        note = (
            rocm_versions.planned_for(tool)
            if tool.found
            else f"{PROGRAM} is not on this node: planned as in ROCm 5.7 to 6.4, which have it"
        )
        files = (
            ((_input_file(command, where), f"pmc: {' '.join(where.counters)}\n"),)
            if where.counters
            else ()
        )
        return Extras(
            folders=(own_folder(self.name, command, where),),
            files=files,
            hides_status=True,
            notes=(note,) if note else (),
        )

    def follow_up(self, where: Where) -> tuple[Command, ...]:  # noqa: ARG002  nothing is left to do
        return ()

    def collect(self, where: Where, known: frozenset[str]) -> tuple[Artifact, ...]:
        """The files of this pass; of each execution the one that is read, the others kept beside
        it.
        """
        found: list[Artifact] = []
        for folder in sorted((where.artifacts / self.name).glob(f"*/*/{where.pass_name}*")):
            if folder.name.split(".")[0] != where.pass_name:
                continue
            read = next((folder / name for name, _ in _READ if _whole(folder / name)), None)
            found += [
                _artifact(path, where, aside=path != read)
                for path in sorted(folder.iterdir())
                if path.suffix in _SUFFIXES
                and path.is_file()
                and str(path.relative_to(where.run_root)) not in known
            ]
        return tuple(found)


def _traces(where: Where) -> tuple[str, ...]:
    """Kernels come with --stats; without an API trace its results.json is broken, so HIP calls are
    always traced too.
    """
    options = where.options
    chosen = ["--stats", "--timestamp", "on"]
    if options.sys_trace:
        return (*chosen, "--sys-trace", "--roctx-trace")
    chosen.append("--hip-trace")
    chosen += ["--hsa-trace"] if options.hsa_trace else []
    return (*chosen, "--roctx-trace") if options.marker_trace or where.is_worker else tuple(chosen)


def _input_file(command: Command, where: Where) -> Path:
    return own_folder(PROGRAM, command, where) / "input.txt"


def _whole(path: Path) -> bool:
    return (
        path.is_file() and path.stat().st_size > 0 and (path.suffix != ".json" or tail_closes(path))
    )


def _artifact(path: Path, where: Where, *, aside: bool) -> Artifact:
    owner, host = path.parent.parent.name, path.parent.parent.parent.name
    return Artifact(
        path=str(path.relative_to(where.run_root)),
        layer=PROGRAM,
        format=dict(_READ).get(path.name, f"rocprof-{path.suffix[1:]}"),
        pass_name=where.pass_name,
        host=host,
        rank=rank_of(owner, where),
        size_bytes=path.stat().st_size,
        aside=aside,
    )
