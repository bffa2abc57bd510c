"""The `rocprof-compute` layer: ROCm Compute Profiler (Omniperf before ROCm 6.3), counters of every
block of the device.

It runs the whole command once per input file of its own, some twelve to twenty times, and
serialises kernels: it needs a short command that does the same each time, and no time of its pass
is ever used.
"""

from __future__ import annotations

import re
from pathlib import Path

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import rocm_versions
from profharness.layers.around import own_folder
from profharness.layers.contract import Availability, Description, Extras, Layer, Program, Where
from profharness.layers.rocm_versions import Installed
from profharness.node.probe import Environment
from profharness.rundir.capture import period
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles
from profharness.rundir.left_files import LayerPass, executions

PROGRAMS = (Program("rocprof-compute", (6, 3), "compute"), Program("omniperf", (5, 7)))
WORKLOAD = "profharness"
COUNTERS = "pmc_perf.csv"
_REPLAYS = "12 to 20"


class RocprofComputeLayer(Layer):
    """pmc_perf.csv (all counters, one row per dispatch) and the tool's own analysis of it."""

    about = Description(
        name="rocprof-compute",
        gives="counters and roofline per kernel, many executions (Omniperf before ROCm 6.3)",
        needs="Instinct",
        scope="prefix",
        claims=frozenset({"hsa-tool", "hardware-counters"}),
        perturbing=True,
        programs=PROGRAMS,
        refusals=(r"^(?:rocprof-compute|omniperf): error: .*$",),
        bytes_per_command=20_000_000,  # from public recordings
        facts=LayerFacts(
            LeftFiles(
                "execution",
                (
                    LeftFile(re.escape(COUNTERS), "rocprof-compute"),
                    LeftFile(r".*\.csv", "rocprof-compute", aside=True),
                ),
                beside=COUNTERS,
            )
        ),
    )

    def probe(self, environment: Environment) -> Availability:
        """Whether rocprof-compute (or Omniperf) is on the node, with counters that can be read."""
        other = rocm_versions.alternatives(environment, counting=True)
        way_out = (
            "it comes with ROCm 6.3 (as Omniperf before it) and needs its own Python packages; "
            f"{rocm_versions.here(environment)}\n"
            f"install rocprofiler-compute and its requirements, or use {other}"
        )
        state = rocm_versions.availability(environment, way_out, *PROGRAMS)
        return rocm_versions.with_counters(
            state, environment, "from ROCm 7.0.2 on its counters may include other programs' work"
        )

    def prepare(self, command: Command, where: Where) -> Command:
        """`rocprof-compute profile` in front, which starts the command many times.

        Raises UsageError for a capture window in time.
        """
        if period(where.capture) is not None:
            raise UsageError(
                f"--capture {where.capture}: rocprof-compute replays whole executions",
                "leave --capture out",
            )
        folder = own_folder(self.name, command, where)
        return command.with_prefix(
            (
                _tool(where).call,
                "profile",
                "-n",
                WORKLOAD,
                "-p",
                str(folder),
                "--no-roof",
                *where.options.args_for(self.name),
                "--",
            )
        )

    def extras(self, command: Command, where: Where) -> Extras:
        """The folder of the workload that it writes; it hides the exit status of the command."""
        notes = [
            (
                f"rocprof-compute runs the command {_REPLAYS} times by itself; "
                "it must do the same work each time"
            )
        ]
        assumed = rocm_versions.planned_for(_tool(where))
        return Extras(
            folders=(own_folder(self.name, command, where),),
            hides_status=True,
            notes=(*notes, *([assumed] if assumed else [])),
        )

    def follow_up(self, where: Where) -> tuple[Command, ...]:
        """The tool's own analysis, into tables beside its counters."""
        program = _tool(where).call
        # before the pass has run, the folder that the tool will name after the device is not known
        found = _workloads(self.name, where) or [
            where.artifacts / self.name / where.host / where.owner / where.pass_name / "GPU_MODEL"
        ]
        return tuple(
            Command((program, "analyze", "-p", str(folder), "--save-dfs", str(folder / "analysis")))
            for folder in found
        )


def _tool(where: Where) -> Installed:
    return rocm_versions.installed(where.environment, *PROGRAMS)


def _workloads(layer: str, where: Where) -> list[Path]:
    """The folders that hold counters; some releases put the workload's and the device's names in
    between.
    """
    of = LayerPass(where.run_root, layer, where.pass_name)
    return [path.parent for folder in executions(of) for path in sorted(folder.rglob(COUNTERS))]
