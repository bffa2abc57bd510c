"""`profharness run`: a scan or a command under layers, then the merged trace, the figures and the
report.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from profharness import scans
from profharness.cli.parsing.commands import OptionsOf, Settings
from profharness.cli.parsing.words import Rest
from profharness.errors import UsageError
from profharness.layers import planned_node
from profharness.options.declared import OUTPUT, PLACE, SCAN, Option
from profharness.options.request import Request
from profharness.options.settings import (
    COMMAND_LINE,
    check_kind,
    check_scan,
    from_mapping,
    read_scan_file,
)
from profharness.scans import SCANS, studies, training


def _names() -> tuple[str, ...]:
    return (*scans.names(), *studies.names(), *training.TRAINING)


class RunSwitches(msgspec.Struct, frozen=True, kw_only=True):
    """What a line says beside the settings of the run."""

    scan: Annotated[
        str | None,
        Option(
            "A name listed above (default particlenet), or a .toml scan file; "
            "a command goes after --.",
            SCAN,
            argument=True,
            metavar="[SCAN]",
            examples=_names,
        ),
    ] = None
    resume: Annotated[
        bool,
        Option("Go on with the run in --output at its first missing point.", OUTPUT, common=True),
    ] = False
    retry_failed: Annotated[
        bool,
        Option("With --resume: measure the points again that failed.", OUTPUT),
    ] = False
    take_over: Annotated[
        bool,
        Option(
            "Measure in --output although this node cannot see whether the process that held it "
            "has ended: you know that it has.",
            OUTPUT,
        ),
    ] = False
    dry_run: Annotated[
        bool,
        Option("Print the plan and every command; write nothing.", OUTPUT, common=True),
    ] = False
    for_node: Annotated[
        str,
        Option(
            "With --dry-run: plan for a node with such devices, gfx90a, gfx942, sm_80 ...",
            PLACE,
            metavar="ARCHITECTURE",
            examples=planned_node.architectures,
        ),
    ] = ""
    rocm_version: Annotated[
        str,
        Option(
            "With --dry-run: plan for the tools of this ROCm release, such as 6.4 or 7.2.4.",
            PLACE,
            metavar="RELEASE",
            examples=planned_node.rocm_releases,
        ),
    ] = ""
    json: Annotated[
        bool,
        Option(
            "Print one JSON object; the workload's output goes to stderr and logs.",
            OUTPUT,
            common=True,
        ),
    ] = False
    quiet: Annotated[bool, Option("No progress and no summary.", OUTPUT, common=True)] = False


def run(
    ctx: typer.Context,
    switches: RunSwitches,
    settings: Annotated[Settings, OptionsOf(Request)],
) -> int:
    """Run a scan or a command under instrumentation layers.

    \b
    profharness run particlenet --batch-sizes 1,4,16 --profile torch
    profharness run --profile torch -- python train.py --epochs 1
    profharness run --scan batch=8..64 -- python train.py {batch}

    \b
    Scans:
      particlenet                     our ParticleNet over batch sizes (default)
      saturation                      looks for the knee of a server by itself
    Training scripts; their own options follow --:
      train-cifar100                  image classifiers on CIFAR-100
      finetune-gpt-neo                GPT-Neo on film reviews
    Published studies, as scan files:
      particlenet-onnx                ParticleNet in onnxruntime
      particlenet-torchscript         ParticleNet as TorchScript
      deepmet                         DeepMET in TensorFlow (give it by --model)
      particlenet-onnx-client         one client of a Triton, sizes 120 to 132
      particlenet-torchscript-client  the same with TorchScript, 4 to 2048
      deepmet-client                  the same with DeepMET, 4 to 512
      particlenet-perf-analyzer       NVIDIA's perf_analyzer, 8 in flight
      multi-process                   1, 2, ... pinned copies at once
    """
    elsewhere = planned_for(switches)
    _require_here()
    if switches.resume:
        return _resumed(switches, settings, ctx.obj)
    if switches.retry_failed:
        raise UsageError(
            "--retry-failed goes with --resume", "add --resume, or leave it out: a new run has none"
        )
    request = _at_site(build_request(switches.scan, settings, ctx.obj))
    from profharness.cli.running.in_jobs import in_job, is_rank, of_task
    from profharness.cli.running.steps import dry, perform, start_ranks

    if switches.dry_run:
        dry(request, elsewhere)
        return 0
    if request.launcher == "slurm":
        from profharness.cli.running.watched import watch

        job = in_job(request)
        return watch(job, as_json=switches.json, quiet=switches.quiet, cancels=True)
    if request.ranks > 1 and not request.axes and not is_rank():
        return start_ranks(request.ranks)
    return perform(
        of_task(request),
        tuple(sys.argv),
        as_json=switches.json,
        quiet=switches.quiet,
        take_over=switches.take_over,
    )


def _at_site(request: Request) -> Request:
    """With the defaults of the site that is named. Raises as `read_site` and `at_site` do."""
    if not request.site:
        return request
    from profharness.node.sites import read_site
    from profharness.options.site import at_site

    return at_site(request, read_site(request.site, os.environ))


def _require_here() -> None:
    """Raises UsageError where the working directory was removed: nothing can be started in it."""
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise UsageError(
            "the working directory was removed", "go to an existing folder: cd FOLDER"
        ) from error


def planned_for(switches: RunSwitches) -> planned_node.PlannedNode | None:
    """The node that a plan was asked for, where it is another one. Raises UsageError where more
    than a plan was asked for.
    """
    elsewhere = planned_node.named(switches.for_node, switches.rocm_version)
    if elsewhere is not None and (switches.resume or not switches.dry_run):
        raise UsageError(
            f"{'--for-node' if switches.for_node else '--rocm-version'} is for a plan alone: a run "
            "takes the node that it is on",
            "add --dry-run (and leave --resume out), or leave it out",
        )
    return elsewhere


def _resumed(switches: RunSwitches, settings: Settings, rest: Rest) -> int:
    from profharness.cli.running.again import GoingOn, resumed
    from profharness.measure.resume import Again

    going_on = GoingOn(
        Again(retry_failed=switches.retry_failed),
        as_json=switches.json,
        quiet=switches.quiet,
        take_over=switches.take_over,
    )
    return resumed(switches.scan, settings, rest, going_on)


def _python_of(flags: Settings) -> str:
    """Which interpreter a training script is for; empty for this one."""
    return str(flags.get("python") or ("python3" if flags.get("container") else ""))


def build_request(scan: str | None, flags: Settings, rest: Rest) -> Request:
    """Join scan file, flags (which win) and the command after `--`. Raises UsageError or
    InputError.
    """
    if scan is None:
        if rest.given and not rest.words:
            raise UsageError(
                "nothing stands after --",
                "write the command there: profharness run --profile torch -- python train.py",
            )
        request = from_mapping({**flags, "command": rest.words}, COMMAND_LINE)
        check_kind(flags, COMMAND_LINE, is_command=bool(rest.words), has_axes=bool(request.axes))
        check_scan(flags, COMMAND_LINE, request)
        return request
    if scan in training.TRAINING:
        request = from_mapping(
            {
                "name": scan,
                **flags,
                "command": training.command(scan, rest.words, _python_of(flags)),
            },
            COMMAND_LINE,
        )
        check_kind(flags, COMMAND_LINE, is_command=True, has_axes=bool(request.axes))
        return request
    if rest.given:
        raise UsageError(
            f"a scan ({scan}) takes no words after --"
            + (f", and {rest.words[0]} stands there" if rest.words else ""),
            "leave one out: a command stands alone after --, and a scan's workload is set by "
            "options",
        )
    file = Path(scan) if scan.endswith(".toml") else studies.path_of(scan)
    if file is not None:
        settings = {"name": file.stem, **read_scan_file(file)}
        alone = from_mapping(settings, scan)  # so that a wrong key is blamed on the file
        check_kind(
            settings, scan, is_command=bool(settings.get("command")), has_axes=bool(alone.axes)
        )
        check_scan(settings, scan, alone)
        request = from_mapping({**settings, **flags}, COMMAND_LINE)
        check_kind(
            flags, COMMAND_LINE, is_command=bool(request.command), has_axes=bool(request.axes)
        )
        check_scan(flags, COMMAND_LINE, request)
        return request
    if scan not in SCANS and scan not in scans.names():
        raise UsageError(
            f"there is no scan {scan!r}",
            f"known scans: {', '.join(_names())}, or a .toml file; a command goes after --: "
            f"profharness run -- {'python ' if scan.endswith('.py') else ''}{scan}",
        )
    request = from_mapping({**flags, "scan": scan}, COMMAND_LINE)
    check_kind(flags, COMMAND_LINE, is_command=False)
    check_scan(flags, COMMAND_LINE, request)
    return request
