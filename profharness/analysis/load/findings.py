"""What is wrong with a level of load, as findings (docs/findings.md#the-load-on-a-server): a check
of the generator before one of the server.
"""

from __future__ import annotations

import math

from profharness.findings import Finding, finding
from profharness.stats.load_figures import LevelFigures
from profharness.units import format_ns

CPU_LIMIT = 0.9
LATE_LIMIT, LAG_LIMIT = 0.05, 0.05
REACHED = 0.95
SMALL_BATCH, FEWEST_EXECUTIONS = 0.6, 10


def level_findings(
    figures: LevelFigures,
    point: str | None = None,
    *,
    max_batch_size: int | None = None,
    instances: int = 1,
) -> tuple[Finding, ...]:
    """All findings of one level. `max_batch_size` (items) and `instances` are the server's, where
    they are known.
    """
    findings = [
        _littles_law(figures, point),
        _generator_bound(figures, point),
        _errors(figures, point),
        _rate(figures, point),
        _unstable(figures, point),
        _small_batches(figures, point, max_batch_size, instances),
    ]
    return tuple(item for item in findings if item is not None)


def _littles_law(figures: LevelFigures, point: str | None) -> Finding | None:
    little = figures.little
    if little.holds or not figures.requests:
        return None
    seen = little.held if figures.level.mode == "closed" else little.product
    words = "were asked for" if figures.level.mode == "closed" else "were in flight"
    return finding(
        "littles-law",
        f"rate times latency{' and think time' if figures.think_ns else ''} gives {seen:.4g} "
        f"requests in flight, {little.expected:.4g} {words} "
        f"({100 * little.error:.1f} % apart, {100 * little.tolerance:.1f} % allowed)",
        point=point,
        expected=little.expected,
        found=seen,
        error=little.error,
        tolerance=little.tolerance,
    )


def _generator_bound(figures: LevelFigures, point: str | None) -> Finding | None:
    generator = figures.generator
    reasons = []
    if generator.cpu_share is not None and generator.cpu_share > CPU_LIMIT:
        reasons.append(f"each client process used {100 * generator.cpu_share:.0f} % of a core")
    # a server that cannot keep the rate holds up the sends too, and `rate-not-reached` says so
    if (
        figures.level.mode == "open"
        and generator.late_share > LATE_LIMIT
        and not _misses_rate(figures)
    ):
        reasons.append(
            f"{100 * generator.late_share:.0f} % of the requests were sent late (99 % within "
            f"{format_ns(generator.lag_p99_ns)})"
        )
    if figures.level.mode == "closed" and generator.lag_share > LAG_LIMIT:
        reasons.append(
            f"clients sent their next request {format_ns(generator.lag_mean_ns)} late on average, "
            f"{100 * generator.lag_share:.0f} % of a latency"
        )
    if not reasons:
        return None
    return finding(
        "generator-bound",
        "; ".join(reasons),
        point=point,
        cpu_share=generator.cpu_share or 0.0,
        late_share=generator.late_share,
        lag_p99_ns=generator.lag_p99_ns,
    )


def _errors(figures: LevelFigures, point: str | None) -> Finding | None:
    if not figures.failed:
        return None
    return finding(
        "errors",
        f"{figures.failed} of {figures.failed + figures.requests} requests failed or got no "
        "answer in time",
        point=point,
        failed=figures.failed,
        failed_share=figures.failed_share,
    )


def _rate(figures: LevelFigures, point: str | None) -> Finding | None:
    if not _misses_rate(figures):
        return None
    seconds = figures.level.window_ns / 1e9
    return finding(
        "rate-not-reached",
        f"{figures.request_rate:.4g} requests/s were answered of "
        f"{figures.offered / seconds:.4g} that were due",
        point=point,
        reached_share=figures.rate_reached or 0.0,
        answered_per_s=figures.request_rate,
    )


def _misses_rate(figures: LevelFigures) -> bool:
    """Missing answers must be more than the arrivals' own scatter."""
    if figures.rate_reached is None or figures.rate_reached >= REACHED:
        return False
    return figures.offered - figures.requests > 3 * math.sqrt(figures.offered)


def _unstable(figures: LevelFigures, point: str | None) -> Finding | None:
    if figures.settled or not figures.requests:
        return None
    trend = figures.trend
    if trend is not None and (trend.throughput_beyond or trend.latency_beyond):
        changes = " and ".join(
            f"{name} by {100 * change:+.0f} %"
            for name, change, beyond in (
                ("throughput", trend.throughput, trend.throughput_beyond),
                ("latency", trend.latency, trend.latency_beyond),
            )
            if beyond
        )
        return finding(
            "unstable-level",
            f"from its first half to its second the window changed in {changes}",
            point=point,
            throughput_change=trend.throughput,
            latency_change=trend.latency,
        )
    width = figures.throughput_half_width
    spread = f"; throughput is known to ±{100 * width:.0f} %" if width is not None else ""
    return finding(
        "unstable-level",
        f"the warm-up ended by its time limit, not because the level had settled{spread}",
        point=point,
        half_width=width if width is not None else "unknown",
    )


def _small_batches(
    figures: LevelFigures, point: str | None, max_batch_size: int | None, instances: int
) -> Finding | None:
    """Batches far below what was waiting for each instance, and below what the server may put
    together.
    """
    sizes = figures.batches
    if sizes is None or sizes.executions < FEWEST_EXECUTIONS or not figures.requests:
        return None
    request = figures.items / figures.requests
    latency = figures.service.mean.value if figures.service is not None else None
    waiting = figures.request_rate * (latency or 0.0) / 1e9 * request / max(1, instances)
    possible = waiting if max_batch_size is None else min(waiting, float(max_batch_size))
    if possible < 2 * request or sizes.mean >= SMALL_BATCH * possible:
        return None
    return finding(
        "small-batches",
        f"the server ran {sizes.mean:.3g} items at once on average where {possible:.3g} were "
        "waiting",
        point=point,
        mean_batch=sizes.mean,
        possible_batch=possible,
        executions=sizes.executions,
    )
