"""What makes a run reproducible, as the page lists it."""

from __future__ import annotations

from profharness.analysis.records import TRACED_RANKS, Summary
from profharness.report.text.measured.endings import captured
from profharness.report.text.sentences import execution_providers


def provenance(summary: Summary) -> tuple[tuple[str, str], ...]:
    """(name, text) of what made the run reproducible: command line, versions, version control,
    capture.
    """
    run = summary.run
    if run is None:
        return (("source", summary.source),)
    rows = (
        ("command line", " ".join(run.argv)),
        ("run", run.path),
        ("created", run.created),
        ("state", _state(run.state, run.exit_status)),
        ("host", run.host),
        ("device", run.device),
        ("CPU", run.cpu_model),
        ("execution providers", execution_providers(summary)),
        ("capture", captured(summary) or run.capture),
        (TRACED_RANKS, run.asked.get(TRACED_RANKS, "")),
        ("steps", summary.steps_from),
        ("version control", run.git),
        ("profharness", run.profharness),
        ("versions", ", ".join(f"{name} {version}" for name, version in run.versions.items())),
    )
    return tuple((name, text) for name, text in rows if text)


def _state(state: str, exit_status: int | None) -> str:
    return state if exit_status is None else f"{state}, exit status {exit_status}"
