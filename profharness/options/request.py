"""What the user asked for, as one typed record: from the command line, a TOML scan file, or both
(the line wins).

Its options are declared in chapters, in the order in which a run's manifest records them: the
workload, what layers record, servers, pinned processes, jobs, scans of a command, and here the
place. msgspec's structs take one base each, so each chapter builds on the one before.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from profharness import layers
from profharness.errors import UsageError
from profharness.layers import options as tracers
from profharness.options import (
    axes,
    command_scan,
    pinning,
    providers,
    serving_rules,
    shapes,
    trace_ranks,
)
from profharness.options.command_scan import CommandScanOptions
from profharness.options.declared import (
    OUTPUT,
    PLACE,
    PROCESSES,
    SERVING,
    Limit,
    Only,
    Option,
    check_each,
    declared,
)
from profharness.options.workload import for_commands, is_sleep
from profharness.rundir.capture import in_full
from profharness.rundir.executions.axes import RANKS

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LATER = (SERVING, PROCESSES)
_IN_A_JOB = "--scan ranks=1,2,4 -- srun -n {ranks} python train.py"
_IN_A_CONTAINER = "--scan ranks=1,2,4 -- mpirun -n {ranks} python train.py"
_NO_SUCH_MODEL = "name an .onnx, .pt or .graphdef file, a SavedModel folder, or particlenet"


def _run_id(text: str) -> None:
    """Raises UsageError for what is no part of a file's name."""
    if text and not _RUN_ID.fullmatch(text):
        raise UsageError(
            f"--run-id {text!r} is no name",
            "write up to 64 letters, digits and .-_ that begin with a letter or digit",
        )


class Request(CommandScanOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that `profharness run` can be told."""

    ranks: Annotated[
        int,
        Option(
            "Commands: start this many ranks (RANK, WORLD_SIZE, LOCAL_RANK; "
            "under Slurm its tasks); with --scan of each execution, on this node.",
            PLACE,
            only=for_commands(
                "a scan is one process; profile a command: --ranks 4 -- python train.py"
            ),
            limit=Limit(least=1, says="{} is too few", hint="ask for at least 1"),
        ),
    ] = 1
    run_id: Annotated[
        str,
        Option(
            "A name that all ranks of this run share, for launchers that give them none; the run "
            "directory begins with it.",
            PLACE,
            metavar="NAME",
            check=_run_id,
        ),
    ] = ""
    rank_limit: Annotated[
        float | None,
        Option(
            "Commands: seconds that ranks wait for rank 0 to begin, and rank 0 for each next rank "
            "to end (default 120; and 60 with one more for every 5 MB that a rank leaves).",
            PLACE,
            metavar="SECONDS",
            only=for_commands("leave it out: a scan is one process"),
            limit=Limit(
                above=0,
                says="must be more than 0",
                hint="it is how long, in seconds, ranks wait for one another",
            ),
        ),
    ] = None
    node_clocks: Annotated[
        str,
        Option(
            "Ranks on several nodes: their clocks are compared by packets to rank 0's node (ping), "
            "or taken as equal by the nodes' wall clocks (wall).",
            PLACE,
            choices=("ping", "wall"),
        ),
    ] = "ping"
    output: Annotated[
        str,
        Option(
            "The run directory itself (default traces/<time>-<name>).",
            OUTPUT,
            names=("--output", "-o"),
            common=True,
        ),
    ] = ""
    share: Annotated[
        bool,
        Option(
            "Give the run directory the permissions of your umask, and let your group read its "
            "manifest (default: only you can read it, except in a set-group-id folder).",
            OUTPUT,
        ),
    ] = False
    live_page: Annotated[
        bool,
        Option(
            "Serve a page on 127.0.0.1 that shows the points, the curve and the telemetry as they "
            "come, what is next and how long; it ends with the run.",
            OUTPUT,
        ),
    ] = False
    launcher: Annotated[
        Literal["local", "slurm", "task"],
        Option(
            "local, or slurm: srun starts this command line once per rank, in a job that is "
            "submitted by sbatch unless this is one.",
            PLACE,
        ),
    ] = "local"  # a task is what slurm has started
    site: Annotated[
        str,
        Option(
            "A site's defaults for jobs and images: lumi, or a .toml file of your own.",
            PLACE,
            metavar="NAME|FILE",
        ),
    ] = ""
    launcher_arg: Annotated[
        tuple[str, ...],
        Option("For srun, for example --launcher-arg=--gpus-per-task=1. Repeatable.", PLACE),
    ] = ()
    container: Annotated[
        str,
        Option(
            "Apptainer image that the workload and its tools run in.",
            PLACE,
            metavar="IMAGE.sif",
            common=True,
        ),
    ] = ""
    container_init: Annotated[
        str,
        Option(
            "Shell text to run in the container first: 'source /opt/conda/bin/activate pytorch', "
            "or auto: activate the conda or venv environment that the image brings.",
            PLACE,
            metavar="SHELL",
        ),
    ] = ""
    container_bind: Annotated[
        tuple[str, ...],
        Option(
            "Files or folders that the container sees too: /pfs,/scratch or env.sqsh:/env. "
            "Repeatable.",
            PLACE,
            metavar="SOURCE[:INSIDE]",
        ),
    ] = ()
    container_caches: Annotated[
        str,
        Option(
            "Folder of the node for what MIOpen compiles in the container, made if it is missing.",
            PLACE,
            metavar="FOLDER",
        ),
    ] = ""
    container_run: Annotated[
        bool,
        Option(
            "Start the container by apptainer run, through the image's own start script, in place "
            "of apptainer exec.",
            PLACE,
        ),
    ] = False
    container_arg: Annotated[
        tuple[str, ...],
        Option(
            "For apptainer exec, for example --container-arg=--bind=/scratch. Repeatable.", PLACE
        ),
    ] = ()
    container_gpu: Annotated[
        Literal["auto", "rocm", "nv", "none"],
        Option(
            "How the container gets the devices: by Apptainer's --rocm, by its --nv, as it comes "
            "(none), or auto: as the node's devices and the image need it.",
            PLACE,
        ),
    ] = "auto"
    python: Annotated[
        str,
        Option(
            "Interpreter for the workload (default: this one; in a container its python3).", PLACE
        ),
    ] = ""
    strict: Annotated[
        bool,
        Option(
            "Scans: exit 1 on an error-level finding.",
            OUTPUT,
            common=True,
            only=Only(
                "scan",
                "is for scans: a command's own exit status is passed on",
                "gate on `profharness compare --fail-on`, or on the findings of `profharness "
                "report RUN --json`",
            ),
        ),
    ] = False

    @property
    def starts_ranks(self) -> bool:
        """Whether each execution of a scan is one of several ranks that profharness starts."""
        return bool(self.axes) and (
            self.ranks > 1 or axes.starts_ranks(self.all_axes, self.command)
        )

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "capture", in_full(self.capture))
        batch_sizes = shapes.batch_of(self.shape, self.batch_sizes)
        msgspec.structs.force_setattr(self, "batch_sizes", batch_sizes)
        named = {name: dims for name, dims in self.shape.items() if name != shapes.BATCH}
        msgspec.structs.force_setattr(self, "shape", named)
        _check_capture(self)
        check_each(
            self, [field for field in declared(type(self)) if field.option.topic not in _LATER]
        )
        for wrong, message, hint in (
            *_wrong_ranks(self),
            *_wrong_places(self),
            *_wrong_models(self),
            *_wrong_providers(self),
        ):
            if wrong:
                raise UsageError(message, hint)
        if self.ranks > 1:
            trace_ranks.check(self.trace_ranks, self.ranks)
        command_scan.check(self, self.command)
        tracers.check(self.tracer, self.profile, layers.descriptions)
        # that an option goes with another one says more than what is wrong with its value
        serving_rules.check(self)
        pinning.check(self)
        check_each(self, [field for field in declared(type(self)) if field.option.topic in _LATER])


def _check_capture(request: Request) -> None:
    """Raises UsageError for a window of a scan, which has none."""
    if request.capture not in ("default", "all") and not request.command:
        raise UsageError(
            f"--capture {request.capture}: a scan records all of its few trials under a layer",
            "leave it out; --profile-trials says how many trials",
        )


def _wrong_ranks(request: Request) -> list[tuple[bool, str, str]]:
    return [
        (
            bool(request.axes) and request.launcher != "local",
            "--scan executes the command on this node, not in jobs",
            f"run it in a job of your own; in it, srun may stand after --: {_IN_A_JOB}",
        ),
        (
            request.ranks > 1 and RANKS in request.axes,
            f"--ranks {request.ranks} and --scan ranks: both say how many",
            "leave --ranks out",
        ),
        (
            bool(request.axes) and bool(request.trace_ranks or request.rank_limit),
            "--trace-ranks and --rank-limit are for ranks with a profharness each, not for --scan",
            "leave them out: the layers stand around all ranks of an execution",
        ),
        (
            request.starts_ranks and bool(request.container),
            "--container: the ranks of a scan are started on the node itself",
            f"let the command start them in the container: {_IN_A_CONTAINER}",
        ),
        (
            request.ranks > 1 and not request.command,
            "--ranks: a scan is one process",
            "profile a command: --ranks 4 -- python train.py",
        ),
        (
            bool(request.trace_ranks) and not set(request.profile) - {"telemetry", "none"},
            "--trace-ranks says which ranks the layers stand around, and none were asked for",
            "add --profile, for example --profile rocprofv3",
        ),
    ]


def _wrong_places(request: Request) -> list[tuple[bool, str, str]]:
    return [
        (
            not request.container
            and any(
                (
                    request.container_init,
                    request.container_bind,
                    request.container_caches,
                    request.container_run,
                    request.container_arg,
                    request.container_gpu != "auto",
                )
            ),
            "what begins with --container- goes with --container",
            "name the image: --container image.sif, or leave them out",
        ),
        (
            bool(request.container and request.perf_analyzer_image),
            "--container and --perf-analyzer-image: one image in another",
            "name one of them",
        ),
        (
            request.launcher == "local" and bool(request.launcher_arg),
            "--launcher-arg goes with --launcher slurm",
            "add it, or leave it out",
        ),
        (
            request.launcher == "local" and bool(request.asks_for_a_job),
            f"{', '.join(request.asks_for_a_job)}: only a job has this",
            "add --launcher slurm, or leave it out",
        ),
    ]


def _wrong_models(request: Request) -> list[tuple[bool, str, str]]:
    models, device = request.models, request.device
    # the model of a server that profharness does not start is a name there
    absent = [
        model
        for model in models
        if request.managed
        and not (model == "particlenet" or (request.served and is_sleep(model)))
        and not Path(model).exists()
    ]
    return [
        (not models, "--model: no model is named", _NO_SUCH_MODEL),
        (bool(absent), f"--model: there is no file {', '.join(absent)}", _NO_SUCH_MODEL),
        (
            len(set(models)) != len(models),
            f"--model: {request.model} names one twice",
            "name each model once",
        ),
        (
            len(models) > 1 and not request.served,
            f"--model: {request.model} names several, and a scan without a server takes one",
            "serve them: --via triton; or make a run per model and `profharness compare` them",
        ),
        (
            "," in device and not request.served,
            f"--device: {device} names several, and a scan without a server takes one",
            "serve it: --via triton deals the instances out, and with --together the models",
        ),
    ]


def _wrong_providers(request: Request) -> list[tuple[bool, str, str]]:
    wrong = providers.contradiction(request.provider, request.device)
    return [] if wrong is None else [(True, *wrong)]
