"""Why the host does not feed the device in time, and what to change, with what a replay of the
change says that it is worth.
"""

from __future__ import annotations

from profharness.analysis.critical.records import Forecast
from profharness.analysis.host.kinds import Kind
from profharness.analysis.host.records import AfterWait, HostTime
from profharness.analysis.records import Summary
from profharness.analysis.verdict.wording import NOT_KNOWN
from profharness.report.tables.critical import bound_text, holding_path
from profharness.report.text.folding import fold_kernel_name
from profharness.report.text.labels import device_word
from profharness.report.text.limits import largest_cause
from profharness.report.text.measured.host_time import WAIT_LESS, idle_advice, main_wait
from profharness.report.text.measured.vendors import on_nvidia
from profharness.units import format_ns, format_number, format_share

_MUCH = 0.2  # of the window: so much idle time is a loss whatever the kernels do
_LAUNCHING = (Kind.OPERATOR.key, Kind.LAUNCH_CALL.key, Kind.RUNTIME_CALL.key)
_MOST = 0.5  # of the idle time
_MANY_CALLS = 0.25  # of the idle time, so that graphs help beside the Python around the calls
_WORTH_A_WORD = 0.05  # of the window
_COMPUTES_NS = 100_000  # to call another operator or to launch takes some microseconds
_SEVERAL = 3  # gaps: one or two are no habit


def first(summary: Summary) -> str:
    """What to change where nobody knows how well kernels use the device, but it is idle for much of
    the time and the records say what the host did meanwhile; else empty.
    """
    verdict, partition = summary.verdict, summary.partition
    cause = largest_cause(partition)
    if verdict is None or verdict.kind not in NOT_KNOWN or partition is None or cause is None:
        return ""
    limit, ns = cause
    if partition.idle_ns < _MUCH * partition.window_ns or 2 * ns < partition.idle_ns:
        return ""
    change = advice(summary)
    share = format_share(ns / partition.window_ns)
    clause = limit.clause.format(share=share, device=device_word(summary))
    return f"{clause[0].upper()}{clause[1:]}. Try {change}." if change else ""


def advice(summary: Summary) -> str:
    """What to change, what is worth most first: graphs where the host works through operators and
    launches in at least half of the idle time, and less waiting where gaps follow waits; of an
    operator that the host computes itself, to do it elsewhere. Where it is Python that fills most
    of that time, less of it. Empty where the host does nothing in particular.
    """
    host = summary.host
    told = idle_advice(host, summary.findings)
    if host is None or host.of != "idle" or not host.total_ns or told not in ("", WAIT_LESS):
        return told
    computed = _computed_on_host(host)
    if computed:
        return computed
    ways: list[tuple[float, str]] = []
    if host.kind_ns(*_LAUNCHING) >= _MOST * host.total_ns:
        made = _forecast(summary, "graphs")
        ways.append((_gain(made), f"{_graphs(summary)}{_worth(made)}"))
    made, wait = _forecast(summary, "no-sync"), _wait(host)
    if told or (wait is not None and _gain(made) >= _WORTH_A_WORD):
        ways.append((_gain(made), f"{WAIT_LESS}{_worth(made)}"))
    if not ways and host.kind_ns(Kind.PYTHON.key, *_LAUNCHING) >= _MOST * host.total_ns:
        made = _forecast(summary, "graphs")
        calls = host.kind_ns(*_LAUNCHING) >= _MANY_CALLS * host.total_ns
        other = f"{_graphs(summary)}{_worth(made)}" if calls else "torch.compile"
        return f"fewer Python steps between launches, or {other}"
    ways.sort(key=lambda way: -way[0])
    return ", and ".join(text for _, text in ways)


def _computed_on_host(host: HostTime) -> str:
    """The operator that the host computes itself in at least half of the idle time, each time for
    longer than it takes to call others; else empty.
    """
    top = max(host.parts, key=lambda part: part.ns if part.computed else 0, default=None)
    if top is None or not top.computed or top.ns < _MOST * host.total_ns:
        return ""
    mean = top.ns / top.computed
    if top.computed < _SEVERAL or mean < _COMPUTES_NS:
        return ""
    return (
        f"doing {fold_kernel_name(top.name, 48)} on the device, or before the loop: the host "
        f"computes it for {format_ns(mean)} at a time"
    )


def wait_sentence(host: HostTime | None) -> str:
    """`The host waits for the device in aten::item 18 times a step, and 24.5 % of the time lies in
    the gaps that follow.`; empty where these are short.
    """
    wait = None if host is None or host.of != "idle" else _wait(host)
    if host is None or wait is None:
        return ""
    # where it is the main reason, the share of the gaps is told already
    told = main_wait(host) is not None
    gaps = (
        "" if told else f", and {format_share(wait.share)} of the time lies in the gaps that follow"
    )
    return (
        f"The host waits for the device in {fold_kernel_name(wait.name, 48)} "
        f"{_often(wait, host)}{gaps}."
    )


def _often(wait: AfterWait, host: HostTime) -> str:
    """`18 times a step`, of all waits that left the device without work."""
    each = wait.gaps / host.steps if host.steps else 0.0
    if each >= 1.5:
        return f"{each:.0f} times a step"
    if each >= 0.95:
        return "once a step"
    return f"{format_number(wait.gaps)} times"


def _wait(host: HostTime) -> AfterWait | None:
    """The waiting call that most of the idle time follows, where that is worth a word."""
    often = [wait for wait in host.after_waits if wait.gaps >= _SEVERAL]
    wait = max(often, key=lambda wait: wait.ns, default=None)
    return wait if wait is not None and wait.share >= _WORTH_A_WORD else None


def _graphs(summary: Summary) -> str:
    kind = "CUDA graphs" if on_nvidia(summary) else "device graphs (HIP or CUDA graphs)"
    return f'{kind} or torch.compile(mode="reduce-overhead")'


def _forecast(summary: Summary, change: str) -> Forecast | None:
    path = summary.critical_path
    if path is None or not path.processes:
        return None
    made = (made for made in holding_path(path).what_if if made.change == change)
    return next(made, None)


def _gain(made: Forecast | None) -> float:
    return 0.0 if made is None else 1 - made.replayed_ns / made.window_ns


def _worth(made: Forecast | None) -> str:
    """` (no-sync: at most -30.1 %)`."""
    if made is None or _gain(made) <= 0 or not made.at_most_ns:
        return ""
    return f" ({made.change}: {bound_text(made)})"
