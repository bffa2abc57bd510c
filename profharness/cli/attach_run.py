"""`profharness attach-run`: wait again for a job that was submitted."""

from __future__ import annotations

from typing import Annotated

import msgspec

from profharness.options.declared import OUTPUT, Option


class AttachRunSwitches(msgspec.Struct, frozen=True, kw_only=True):
    """Which job, and how its answer is printed."""

    run: Annotated[
        str,
        Option(
            "The run of the job, or its number.",
            argument=True,
            metavar="RUN|JOB",
        ),
    ]
    json: Annotated[bool, Option("Print one JSON object.", OUTPUT)] = False
    quiet: Annotated[bool, Option("No progress and no summary.", OUTPUT)] = False


def attach_run(switches: AttachRunSwitches) -> int:
    """Wait for a job that `run --launcher slurm` submitted, and show its run. Ctrl-C ends the
    waiting, and the job goes on.

    \b
    profharness attach-run 4711                          (the number of the job)
    profharness attach-run traces/slurm-4711-python      (the run that it makes)
    """
    from profharness.cli.running.watched import watch
    from profharness.measure.planning import runs_folder
    from profharness.rundir.jobs.records import find

    job = find(switches.run, runs_folder())
    return watch(job, as_json=switches.json, quiet=switches.quiet, cancels=False)
