"""The second half's table of contents: read -> align -> merge -> summarise -> write.

Works on run directories and on loose trace files alike; starts no process and needs no device. What
a command does not need is not imported: a table of hotspots takes no longer than its file.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.errors import InputError, OutputExists
from profharness.node import ceilings as calibration
from profharness.rundir.outputs import can_keep, require_writable
from profharness.rundir.paths import MANIFEST
from profharness.rundir.private.folders import private_folder
from profharness.understand.load import Loaded, load, no_run, of_records, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from profharness.analysis.kernels.facts import KernelFacts
    from profharness.analysis.pictures.records import Flame
    from profharness.analysis.records import StepSummary, Summary
    from profharness.findings import Finding
    from profharness.node.ceilings import Calibration
    from profharness.rundir.manifest import Manifest
    from profharness.rundir.paths import RunDir
    from profharness.trace.model import Trace

__all__ = ["Loaded", "finish", "load", "step_by_step", "summarise"]


@dataclass(frozen=True)
class Outputs:
    """What to write of a run, and where.

    `report` is the page's place outside of the run, overwritten with `force`; with `raw_csv` the
    two tables hold names unchanged that a spreadsheet takes for formulas; `figures_alone` asks for
    no page where the run cannot be written into.
    """

    report: Path | None = None
    force: bool = False
    raw_csv: bool = False
    figures_alone: bool = False


IN_THE_RUN = Outputs()


def finish(
    root: Path,
    *,
    outputs: Outputs = IN_THE_RUN,
    step_range: str = "",
    operator_input: OperatorInput = NO_INPUT,
) -> Summary:
    """Understand one run and write merged.pftrace, summary.json, hotspots.csv, results.csv (of
    scans), the telemetry's tables and report.html into it.

    Of a run that cannot be written into, only a report elsewhere is written. `step_range` is for
    `steps.stepped`. Raises InputError for a folder that is no run, OutputExists for a report
    elsewhere that exists, and UsageError where one of them cannot be written, or no range is a step
    as asked.
    """
    from profharness.report.page import html
    from profharness.rundir.paths import RunDir, write_atomic
    from profharness.understand.device_use import use_of
    from profharness.understand.loose.critical import shown_path
    from profharness.understand.pictures import pictures_of
    from profharness.understand.replays import with_captures

    report = outputs.report
    if report is not None and report.exists() and not outputs.force:
        raise OutputExists(f"{report} exists", "name another with -o, or overwrite it with --force")
    _require_run(root)
    run = RunDir.open(root)
    keeps = can_keep(root)
    if report is not None:
        require_writable(report, "name another place with -o")
    elif not (keeps or outputs.figures_alone):
        require_writable(run.report, _READ_ONLY)
    with (
        nullcontext(root) if keeps else private_folder() as folder,
        private_folder(folder) as aside,
    ):
        records = _loaded(root, run, folder / run.merged.name, aside)
        loaded = with_captures(records.loaded, operator_input.captures)
        summary = summarise(loaded, step_range, operator_input)
        summary = msgspec.structs.replace(
            summary,
            use=use_of(loaded, operator_input),
            pictures=pictures_of(loaded, summary, step_range, records.shown, records.flames),
            critical_path=shown_path(loaded, records.shown, step_range),
        )
        if keeps:
            records.write_trace()
    if keeps:
        _keep(run, loaded, summary, raw_csv=outputs.raw_csv)
    if report is not None or keeps:
        write_atomic(report or run.report, html.render(summary).encode())
    return summary


_READ_ONLY = (
    "name a place for the report with -o, or print the figures with --json; "
    "the trace and the tables are kept in the run: copy it to a place that can be written"
)


def _keep(run: RunDir, loaded: Loaded, summary: Summary, *, raw_csv: bool) -> None:
    """Write what a run keeps of its figures beside the report."""
    from profharness.report.csv import hotspots_csv, results_csv
    from profharness.report.json import summary_json
    from profharness.rundir.paths import write_atomic
    from profharness.understand import telemetry_products

    write_atomic(run.summary, summary_json(summary))
    if summary.hotspots:
        write_atomic(run.hotspots, hotspots_csv(summary.hotspots[0], raw=raw_csv).encode())
    if loaded.manifest is not None and any(
        point.throughput is not None for point in summary.points
    ):
        facts = scan_facts(loaded.manifest)
        write_atomic(run.results, results_csv(summary, *facts, raw=raw_csv).encode())
    if loaded.manifest is not None:
        telemetry_products.write(run, loaded.manifest)
    _keep_calibrations(run.root, loaded)


def _require_run(root: Path) -> None:
    """Raises InputError for what is no run, with what takes it where it is a file or holds
    files.
    """
    if not root.is_dir():
        raise InputError(
            f"{root}: there is no such file or run directory", "`profharness ls` lists runs"
        )
    if not (root / MANIFEST).is_file():
        raise no_run(root)


@dataclass(frozen=True)
class _Records:
    """What a run recorded, as figures need it and as it is `shown`: with Python's functions and
    modules, None without any; and what writes the merged trace. Of a large run they are not kept:
    their `flames` were made on the way.
    """

    loaded: Loaded
    shown: Trace | None
    write_trace: Callable[[], object]
    flames: tuple[Flame, ...] | None = None


def _loaded(root: Path, run: RunDir, merged: Path, aside: Path) -> _Records:
    """The records of a run, whose trace goes to `merged`: of a large run that was done on the way,
    one group of its files after the other, which lie `aside` while the records are in use.
    """
    from profharness.trace.parts.cutting import Cut
    from profharness.trace.wanted import Wanted
    from profharness.understand.merge.command import fits_in_memory
    from profharness.understand.merge.figures import teller
    from profharness.understand.merge.head import attributes, write_options
    from profharness.understand.merge.merger import merge_and_load
    from profharness.understand.merge.writing import MergeJob
    from profharness.writers import perfetto

    manifest = run.read_manifest()
    options = replace(write_options(manifest), tell_kernels=teller([root], manifest))
    if not fits_in_memory([root]):
        job = MergeJob(
            merged,
            Cut(),
            options,
            lambda sources: attributes(str(root), manifest, sources),
        )
        if (records := merge_and_load(root, job, aside)) is not None:
            return _Records(of_records(records, root), None, lambda: None, records.flames)
    loaded = load([root], wanted=Wanted.SHOWN)
    shown = loaded.trace
    stated = attributes(loaded.source, manifest, shown.sources)
    plain = told(loaded)
    return _Records(
        plain,
        None if plain.trace is loaded.trace else loaded.trace,
        lambda: perfetto.write(shown, merged, attributes=stated, options=options),
    )


def scan_facts(manifest: Manifest) -> tuple[str, str, dict[str, str]]:
    """Model and way of a scan, and the name of each point's device."""
    settings = manifest.scan.settings if manifest.scan is not None else {}
    accelerators = {
        f"{'cuda' if device.kind != 'cpu' else 'cpu'}:{device.index}": device.name
        for node in manifest.nodes
        for device in node.devices
    }
    cpus = next((node.cpu_model for node in manifest.nodes), "")
    names = {
        record.id: cpus
        if record.device == "cpu"
        else accelerators.get(record.device, record.device)
        for record in manifest.points
    }
    return _model_name(str(settings.get("model", ""))), str(settings.get("via", "direct")), names


def _model_name(model: str) -> str:
    """A file's name without its ending; in a model repository (NAME/1/model.onnx or
    NAME/config.pbtxt) the model's folder.
    """
    path = Path(model)
    if path.name == "config.pbtxt" and path.parent.name:
        return path.parent.name
    return (
        path.parent.parent.name
        if path.parent.name.isdigit() and path.parent.parent.name
        else path.stem
    )


def _keep_calibrations(root: Path, loaded: Loaded) -> None:
    """A copy of what this machine measured on the run's devices, so that the run reads the same
    elsewhere.

    What it has stays; devices, numbers of threads and software that were measured since are added.
    """
    from profharness.rundir.paths import write_atomic

    nodes = loaded.manifest.nodes if loaded.manifest is not None else ()
    names = {node.cpu_model for node in nodes} | {
        device.name for node in nodes for device in node.devices
    }
    path = root / calibration.COPY_NAME
    kept = calibration.of_run(root)
    added = calibration.lacking(kept, calibration.relevant(calibration.stored(), names - {""}))
    if added:
        write_atomic(path, calibration.encode((*kept, *added)))


def summarise(
    loaded: Loaded,
    step_range: str = "",
    operator_input: OperatorInput = NO_INPUT,
    facts: KernelFacts | None = None,
    calibrations: tuple[Calibration, ...] | None = None,
) -> Summary:
    """The figures of what was loaded: of a run over all its passes, of loose files as one trace.

    Ceilings of a run are `calibrations`, else those that it keeps or that this machine's cache
    holds of its devices. `facts` are those of the kernels of loose files, which are used where the
    steps are in them. Raises InputError for a damaged copy in the run, and UsageError as
    `steps.stepped` does for a `step_range`.
    """
    from profharness.analysis.verdict.asleep import without_sleep
    from profharness.understand.host_frames import told_by_frames
    from profharness.understand.steps import stepped

    loaded = stepped(loaded, step_range)
    if loaded.manifest is None:
        from profharness.analysis.summarise import summarise_trace
        from profharness.understand.device_use import facts_of

        if facts is None or facts.trace is not loaded.trace:  # other marks are its steps
            facts = facts_of(loaded, operator_input)
        summary = summarise_trace(loaded.trace, loaded.source, facts=facts)
    else:
        from profharness.analysis.run.summary import summarise_run

        if calibrations is None:
            calibrations = calibration.for_run(Path(loaded.source))
        summary = summarise_run(
            loaded.manifest, loaded.trace, loaded.source, calibrations, operator_input
        )
    return msgspec.structs.replace(
        without_sleep(told_by_frames(summary, loaded), loaded.findings),
        steps_from=loaded.steps_from,
        findings=_once((*_incomplete(loaded), *summary.findings, *loaded.findings)),
    )


def step_by_step(
    loaded: Loaded, steps: str, step_range: str = "", operator_input: OperatorInput = NO_INPUT
) -> tuple[StepSummary, ...]:
    """The figures of single steps (`all`, `3`, `10:30`) of what was loaded; of a run in the pass
    that speaks for kernels.

    Raises UsageError for a selection that says nothing or finds nothing, and as `steps.stepped`
    does for a `step_range`; InputError for a damaged calibration in the run.
    """
    from profharness.analysis.kernels.facts import KernelFacts
    from profharness.analysis.power.step_samples import with_samples
    from profharness.analysis.run import kernel_pass as passes
    from profharness.analysis.time.step_summaries import parse, step_summaries
    from profharness.understand.device_use import yardstick_of
    from profharness.understand.steps import stepped

    selection = parse(steps)
    loaded = stepped(loaded, step_range)
    if loaded.manifest is None:
        yardstick = yardstick_of(loaded, None, operator_input)
        return step_summaries(loaded.trace, KernelFacts(loaded.trace, yardstick), selection)
    perturbing = frozenset(record.name for record in loaded.manifest.passes if record.perturbing)
    _, records = passes.choose(
        loaded.trace, perturbing=perturbing, order=loaded.manifest.kernel_order()
    )
    counted = loaded.trace if len(loaded.trace.counters) else None
    yardstick = yardstick_of(loaded, counted, operator_input)
    summaries = step_summaries(records, KernelFacts(records, yardstick), selection)
    return with_samples(summaries, loaded.trace)


def _incomplete(loaded: Loaded) -> tuple[Finding, ...]:
    """First of all what a run lacks."""
    if loaded.manifest is None:
        return ()
    from profharness.analysis.run.checks import incomplete_findings, job_findings
    from profharness.rundir.harness_process import state_of
    from profharness.rundir.jobs.records import end_of_run

    return (
        *job_findings(end_of_run(Path(loaded.source))),
        *incomplete_findings(loaded.manifest, state_of(loaded.manifest)),
    )


def _once(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Each finding once, in order; two parts of the analysis may see the same."""
    return tuple(
        {(finding.id, finding.message, finding.point): finding for finding in findings}.values()
    )
