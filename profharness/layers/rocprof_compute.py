"""The `rocprof-compute` layer: ROCm Compute Profiler (Omniperf before ROCm 6.3), counters of every
block of the device.

It runs the whole command once per input file of its own, some twelve to twenty times, and
serialises kernels: it needs a short command that does the same each time, and no time of its pass
is ever used. Newer versions can also count in one execution, so that each dispatch carries a part
of the counters.

Which version takes what is that of rocprofiler-compute's list of changes and of its `argparser.py`.
"""

from __future__ import annotations

from pathlib import Path

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import releases, rocm_versions
from profharness.layers.around import own_folder
from profharness.layers.contract import (
    Availability,
    Description,
    Extras,
    Layer,
    Program,
    Where,
)
from profharness.layers.releases import Version
from profharness.layers.rocm_versions import Installed
from profharness.node import access
from profharness.node.probe import Environment
from profharness.rundir.capture import period
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles
from profharness.rundir.left_files import LayerPass, executions

PROGRAMS = (Program("rocprof-compute", (6, 3), "compute"), Program("omniperf", (5, 7)))
WORKLOAD = "profharness"
ANALYZE = "rocprof-compute-analyze"
_LEAST, _MOST = 12, 20
_REPLAYS = f"{_LEAST} to {_MOST}"

# own versions of rocprof-compute, and what it takes from then on
_NAMED_FORMAT = (3, 3)  # analyze writes its tables by --output-format, and no more by --save-dfs
_SET = (3, 3)  # --set, one set of metrics in one execution
_OUTPUT_DIRECTORY = (3, 5)  # in place of --path, which 3.7 does not know any more
_MULTIPLEXING = (3, 5)
_OVERWRITE = (3, 8)  # needed for a folder that is not empty
_D_IS_A_PLACE = (3, 10)  # -d is --output-directory, before it --dispatch
_GFX11 = (3, 5)  # besides Instinct devices

_INSTINCT = ("gfx908", "gfx90a", "gfx94", "gfx95")
_OTHERS = ("gfx115", "gfx12")
# files that hold counters, in any version; what is below `out` belongs to the folder that holds it
_COUNTED = ("pmc_perf*.csv", "pmc_perf*.csv.gz", "results_*.csv", "results_*.csv.gz")
_OWN_OF_ANALYZE = ("-p", "--path", "--save-dfs", "--output-format", "--output-name")
_SCREENS = ("--gui", "--tui")
_PLACES = ("-p", "--path", "--subpath", "--output-directory", "-n", "--name")
_NO_COMMAND = ("-h", "--help", "-v", "--version", "--list-sets", "--list-metrics", "--list-blocks")
_RANKS = (
    "each rank is started again by a rocprof-compute of its own: ranks that wait for each other "
    "may hang; --one-execution or --pmc-set NAME starts them once"
)
_OTHER_RANKS = (
    "the ranks that are not traced run once: a traced one that waits for them will hang or fail in "
    "its second execution; --one-execution or --pmc-set NAME starts it once"
)


class RocprofComputeLayer(Layer):
    """Tables of counters with a row per dispatch, and the tool's own analysis of them."""

    about = Description(
        name="rocprof-compute",
        gives="counters and roofline per kernel, many executions (Omniperf before ROCm 6.3)",
        needs="Instinct",
        scope="prefix",
        claims=frozenset({"hsa-tool", "hardware-counters", "traced-process"}),
        perturbing=True,
        programs=PROGRAMS,
        honours=frozenset({"roofline", "one_execution", "pmc_set"}),
        refusals=(
            # its parser calls itself `tool` in the modes
            r"^(?:rocprof-compute|omniperf|tool)(?: \w+)?: error: .*$",
            r"^.*ROCPROF_OUTPUT_PATH environment variable must be set.*$",
            r"^.*is an experimental feature\. Use --experimental to enable it.*$",
            r"^.*Profiling execution failed\..*$",
        ),
        further_steps=(ANALYZE,),
        bytes_per_command=20_000_000,  # from public recordings
        facts=LayerFacts(
            LeftFiles(
                "execution",
                (
                    LeftFile(r"pmc_perf\.csv(\.gz)?", "rocprof-compute", turn=0, whole="filled"),
                    LeftFile(r"results_.*\.csv(\.gz)?", "rocprof-compute", turn=1, whole="filled"),
                    LeftFile(r"pmc_perf_.*\.csv(\.gz)?", "rocprof-compute", turn=2, whole="filled"),
                    LeftFile(
                        r"\d+(_results)?\.db", "rocprof-compute-replay", turn=3, whole="filled"
                    ),
                    LeftFile(r".*\.csv(\.gz)?", "rocprof-compute", aside=True),
                    LeftFile(r"(rocprof_compute|analysis).*\.db", "rocprof-compute-db", aside=True),
                ),
                deep=True,
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

        Raises UsageError for a capture window in time, and for what this version cannot do.
        """
        if period(where.capture) is not None:
            raise UsageError(
                f"--capture {where.capture}: rocprof-compute replays whole executions",
                "leave --capture out",
            )
        _check_analyze(where.options.args_for(ANALYZE))
        tool = _tool(where)
        _check_profile(where.options.args_for(self.name), tool.own)
        folder = own_folder(self.name, command, where)
        return command.with_prefix(
            (
                tool.call,
                "profile",
                "-n",
                WORKLOAD,
                *_destination(tool.own, folder),
                *(() if where.options.roofline else ("--no-roof",)),
                *_one_execution(tool, where),
                *where.options.args_for(self.name),
                "--",
            )
        )

    def extras(self, command: Command, where: Where) -> Extras:
        """The folder of the workload that it writes; it hides the exit status of the command."""
        tool = _tool(where)
        assumed = rocm_versions.planned_for(tool)
        return Extras(
            folders=(own_folder(self.name, command, where),),
            hides_status=True,
            notes=(assumed,) if assumed else (),
            costs=(*_executions_told(where), *_doubts(tool, where.environment)),
            starts=(
                (1, 1) if where.options.one_execution or where.options.pmc_set else (_LEAST, _MOST)
            ),
        )

    def follow_up(self, where: Where) -> tuple[Command, ...]:
        """The tool's own analysis, into tables beside its counters."""
        tool = _tool(where)
        # before the pass has run, the folder that an older tool will name after the device is not
        # known
        own = where.artifacts / self.name / where.host / where.owner / where.pass_name
        planned = own if tool.own >= _OUTPUT_DIRECTORY else own / "GPU_MODEL"
        return tuple(
            Command(
                (
                    *(tool.call, "analyze", "-p", str(folder)),
                    *_tables(tool.own, folder),
                    *where.options.args_for(ANALYZE),
                ),
                cwd=folder if tool.own >= _NAMED_FORMAT else None,
            )
            for folder in _workloads(self.name, where) or ([] if planned.is_dir() else [planned])
        )


def _tool(where: Where) -> Installed:
    return rocm_versions.installed(where.environment, *PROGRAMS)


def _destination(own: Version, folder: Path) -> tuple[str, ...]:
    """Where the tool writes. Under a launcher newer versions put the rank below that folder, which
    is one of this rank already: its files are looked for in both places.
    """
    if own < _OUTPUT_DIRECTORY:
        return ("-p", str(folder))
    overwrite = ("--overwrite",) if own >= _OVERWRITE else ()  # a run that goes on has files there
    return ("--output-directory", str(folder), *overwrite)


def _one_execution(tool: Installed, where: Where) -> tuple[str, ...]:
    """The words that make it start the command once. Raises UsageError where it cannot do that."""
    options = where.options
    if options.one_execution and options.pmc_set:
        raise UsageError(
            "--one-execution and --pmc-set both ask for a single execution, in different ways",
            "--pmc-set gives every launch the same few counters, --one-execution all counters "
            "among many launches: leave one out",
        )
    if options.one_execution:
        _need(tool, "--one-execution", _MULTIPLEXING)
        return ("--iteration-multiplexing", "kernel_launch_params")
    if options.pmc_set:
        _need(tool, f"--pmc-set {options.pmc_set}", _SET)
        return ("--set", options.pmc_set)
    return ()


def _need(tool: Installed, flag: str, since: Version) -> None:
    if tool.own >= since:
        return
    known = "" if tool.own <= releases.BEFORE else f" {releases.text(tool.own)}"
    release = next(row for row in releases.RELEASES if row.compute >= since)
    raise UsageError(
        f"{flag}: {tool.program}{known} of ROCm {tool.release} cannot count in one execution",
        f"it came with rocprof-compute {releases.text(since)} "
        f"(ROCm {releases.text(release.rocm)}); leave it out, and the command runs "
        f"{_REPLAYS} times",
    )


def _executions_told(where: Where) -> tuple[str, ...]:
    """How often the command runs, and what that means for the figures."""
    options = where.options
    roofline = (
        ("rocprof-compute also measures the device's ceilings, which takes some minutes",)
        if options.roofline
        else ()
    )
    if options.one_execution:
        return (
            (
                "rocprof-compute counts in one execution: each launch of a kernel carries a part "
                "of the counters, so that a kernel with few launches lacks some"
            ),
            *roofline,
        )
    if options.pmc_set:
        return (
            f"rocprof-compute counts the set {options.pmc_set} alone, in one execution",
            *roofline,
        )
    return (
        (
            f"rocprof-compute runs the command {_REPLAYS} times by itself; it must do the same "
            "work each time"
        ),
        *((_OTHER_RANKS if where.untraced else _RANKS,) if where.ranks > 1 else ()),
        *roofline,
    )


def _doubts(tool: Installed, environment: Environment) -> tuple[str, ...]:
    """Why all of these executions may count nothing, as far as the node tells beforehand."""
    if not tool.found:
        return ()
    if warning := access.amd_warning(environment):
        return (f"rocprof-compute may count nothing: {warning}",)
    here = {device.architecture for device in environment.devices if device.kind == "rocm"} - {""}
    known = (*_INSTINCT, *(_OTHERS if tool.own >= _GFX11 else ()))
    if here and not any(one.startswith(known) for one in here):
        return (
            (
                "rocprof-compute may count nothing: it is for Instinct devices, and here is "
                f"{', '.join(sorted(here))}"
            ),
        )
    return ()


def _check_profile(arguments: tuple[str, ...], own: Version) -> None:
    """Raises UsageError for arguments that take the run out of our hands."""
    places = (*_PLACES, *(("-d",) if own >= _D_IS_A_PLACE else ()))
    for argument in arguments:
        option = argument.partition("=")[0]
        way_out = (
            "the harness names the folder, so that each rank and pass has its own"
            if option in places
            else "leave it out: it starts no command; call the tool by itself for that"
            if option in _NO_COMMAND
            else "it attaches to another process, and here a command is started"
            if option == "--attach-pid"
            else ""
        )
        if way_out:
            raise UsageError(
                f"--tool-arg rocprof-compute:{argument}: not under profharness", way_out
            )


def _check_analyze(arguments: tuple[str, ...]) -> None:
    """Raises UsageError for arguments with which its analysis would not end, or write elsewhere."""
    for argument in arguments:
        option = argument.partition("=")[0]
        if option in _SCREENS:
            raise UsageError(
                f"--tool-arg {ANALYZE}:{argument} opens a screen and does not end by itself",
                f"leave it out, and run `rocprof-compute analyze -p FOLDER {argument}` on the "
                "folder of the run afterwards",
            )
        if option in _OWN_OF_ANALYZE:
            raise UsageError(
                f"--tool-arg {ANALYZE}:{argument}: profharness says itself where the analysis "
                "reads and writes",
                "leave it out",
            )


def _tables(own: Version, folder: Path) -> tuple[str, ...]:
    """Where the analysis leaves its tables. Newer versions take a plain name below the working
    directory, and none that is there already.
    """
    if own < _NAMED_FORMAT:
        return ("--save-dfs", str(folder / "analysis"))
    names = ("analysis", *(f"analysis_{number}" for number in range(2, 1000)))
    free = next(name for name in names if not (folder / name).exists())
    return ("--output-format", "csv", "--output-name", free)


def _workloads(layer: str, where: Where) -> list[Path]:
    """The folders that hold counters; some versions put the workload's and the device's names, or
    the rank, in between.
    """
    of = LayerPass(where.run_root, layer, where.pass_name)
    found = {
        path.parent
        for folder in executions(of)
        for pattern in _COUNTED
        for path in folder.rglob(pattern)
        if "out" not in path.relative_to(folder).parts[:-1]
    }
    found |= {
        path.parent for folder in executions(of) for path in folder.rglob("out") if path.is_dir()
    }
    return sorted(found)
