"""What telemetry says against a run's own measurement: other work on the CPU, a CPU quota, holes in the sampling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from profharness.analysis.records import Figure
from profharness.findings import Finding, finding
from profharness.trace.model import Source, Trace

# Waiting for a core this share of the time that the process tree wanted one makes throughput differ visibly.
WAITING = 0.05
THROTTLED = 0.01
MISSED = 0.05
# Share of time from which a device's own throttling makes throughput differ visibly.
_DEVICE_THROTTLED = (("throttle_power", 0.05, "its power limit"), ("throttle_thermal", 0.01, "its temperature"), ("throttle_external", 0.01, "a signal from outside"))


def telemetry_findings(trace: Trace, figures: Mapping[str, Figure]) -> tuple[Finding, ...]:
    """Findings from figures over the measured time (`run_telemetry.figures_in`) and from the sampler's own account."""
    return (*_cpu(figures), *_device(figures), *(gap for source in trace.sources for gap in _gaps(source)))


def _cpu(figures: Mapping[str, Figure]) -> Iterator[Finding]:
    ran, waited, stopped = (_value(figures, name) for name in ("cores_used", "cpu_tree_wait", "cpu_throttled"))
    if ran is not None and waited is not None and ran + waited > 0 and waited / (ran + waited) > WAITING:
        yield finding("cpu-pressure", f"the workload waited for a core {100 * waited / (ran + waited):.0f} % of the time that it wanted one",
                      waiting_share=waited / (ran + waited))
    if stopped is not None and stopped > THROTTLED:
        yield finding("cpu-pressure", f"the CPU quota of its cgroup stopped the workload {100 * stopped:.0f} % of the time", throttled_share=stopped)


def _device(figures: Mapping[str, Figure]) -> Iterator[Finding]:
    for name, limit, cause in _DEVICE_THROTTLED:
        share = _value(figures, name)
        if share is not None and share > limit:
            yield finding("throttled", f"{cause} held the device's clock down {100 * share:.0f} % of the time", throttled_share=share)


def _value(figures: Mapping[str, Figure], name: str) -> float | None:
    figure = figures.get(name)
    return None if figure is None or figure.value is None else float(figure.value)


def _gaps(source: Source) -> Iterator[Finding]:
    """Deadlines that the sampler let pass, as its reader counted them."""
    details = dict(source.details)
    missed, rows = _count(details.get("missed")), _count(details.get("rows"))
    if missed and rows and missed / (missed + rows) > MISSED:
        share = missed / (missed + rows)
        yield finding("sampler-gaps", f"{source.path}: {missed} of {missed + rows} samples were missed ({100 * share:.0f} %)",
                      missed=missed, missed_share=share)


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
