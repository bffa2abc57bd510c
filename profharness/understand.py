"""The second half's table of contents: read -> align -> merge -> summarise -> write.

Works on run directories and on loose trace files alike; starts no process and needs no device. What a command
does not need is not imported: a table of hotspots takes no longer than its file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from profharness import calibration
from profharness.errors import InputError, OutputExists
from profharness.loading import Loaded, load
from profharness.outputs import require_writable

if TYPE_CHECKING:
    from profharness.analysis.records import Summary
    from profharness.findings import Finding

__all__ = ["Loaded", "finish", "load", "summarise"]


def finish(root: Path, *, report: Path | None = None, force: bool = False) -> Summary:
    """Understand one run and write merged.pftrace, summary.json, hotspots.csv and report.html into it.

    Raises InputError for a folder that is no run, OutputExists for a `report` elsewhere that exists, and UsageError where
    one of them cannot be written.
    """
    from profharness.merging import attributes, write_options
    from profharness.report import html
    from profharness.report.csv import hotspots_csv
    from profharness.rundir import RunDir, write_atomic
    from profharness.writers import perfetto

    if report is not None and report.exists() and not force:
        raise OutputExists(f"{report} exists", "name another with -o, or overwrite it with --force")
    if not root.is_dir():
        raise InputError(f"{root}: there is no such run directory", "`profharness ls` lists runs")
    run = RunDir.open(root)
    require_writable(run.report, "its trace, figures and report are kept there: copy the run to a place that can be written")
    if report is not None:
        require_writable(report, "name another place with -o")
    loaded = load([root])
    summary = summarise(loaded)
    perfetto.write(loaded.trace, run.merged, attributes=attributes(loaded), options=write_options(loaded))
    write_atomic(run.summary, msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
    if summary.hotspots:
        write_atomic(run.hotspots, hotspots_csv(summary.hotspots[0]).encode())
    write_atomic(report or run.report, html.render(summary).encode())
    _keep_calibrations(root, loaded)
    return summary


def _keep_calibrations(root: Path, loaded: Loaded) -> None:
    """A copy of what this machine measured on the run's devices, so that the run reads the same elsewhere; the first one stays."""
    from profharness.rundir import write_atomic

    nodes = loaded.manifest.nodes if loaded.manifest is not None else ()
    names = {node.cpu_model for node in nodes} | {device.name for node in nodes for device in node.devices}
    found = calibration.relevant(calibration.stored(), names - {""})
    if found and not (root / calibration.COPY_NAME).exists():
        write_atomic(root / calibration.COPY_NAME, calibration.encode(found))


def summarise(loaded: Loaded) -> Summary:
    """The figures of what was loaded: of a run over all its passes, of loose files as one trace.

    Ceilings are those that a run keeps or that this machine's cache holds of its devices. Raises InputError for a
    damaged copy in the run.
    """
    if loaded.manifest is None:
        from profharness.analysis.kernel_facts import Yardstick
        from profharness.analysis.metrics import summarise_trace

        summary = summarise_trace(loaded.trace, loaded.source, yardstick=Yardstick(calibration.stored()))
    else:
        from profharness.analysis.summary import summarise_run

        summary = summarise_run(loaded.manifest, loaded.trace, loaded.source, calibration.for_run(Path(loaded.source)))
    return msgspec.structs.replace(summary, findings=_once((*_incomplete(loaded), *summary.findings, *loaded.findings)))


def _incomplete(loaded: Loaded) -> tuple[Finding, ...]:
    """First of all what a run lacks."""
    if loaded.manifest is None:
        return ()
    from profharness.analysis.run_checks import incomplete_findings
    from profharness.harness_process import state_of

    return incomplete_findings(loaded.manifest, state_of(loaded.manifest))


def _once(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Each finding once, in order; two parts of the analysis may see the same."""
    return tuple({(found.id, found.message, found.point): found for found in findings}.values())
