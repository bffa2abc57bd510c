"""What `profharness fleet` prints: a sentence that answers, and the figures behind it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from profharness.analysis.fleet.measured import Device, HeldOut
from profharness.analysis.fleet.records import (
    Bill,
    ClosedLoad,
    Fleet,
    FleetFigures,
    Latencies,
    Load,
    OfModel,
    OpenLoad,
    Outages,
    Thinking,
)
from profharness.report.table import Column, Table, row_of
from profharness.report.text.figures import brief_text, percent_text
from profharness.report.text.listing import listing
from profharness.rundir.latency_limit import LatencyLimit
from profharness.rundir.shown.screen import lines_text
from profharness.stats.estimate import Estimate
from profharness.units import format_number

SCHEMA = 1
_COLUMNS = (
    Column("level"),
    Column("requests/s", "right"),
    Column("forecast", "right"),
    Column("off", "right"),
    Column("p99 ms", "right"),
    Column("forecast", "right"),
    Column("off", "right"),
)


class Levels(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says of a device: a batch of n requests takes `fixed_ms` and n times `each_ms`,
    and each level beside its forecast from the others.
    """

    schema: int = SCHEMA
    instances: int
    most_together: int
    fixed_ms: float
    each_ms: float
    service_cv: float
    outside_ms: float
    levels: tuple[HeldOut, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of `fleet` (docs/json.md); latencies in ms, rates per second, utilisation 0 to 1."""

    schema: int = SCHEMA
    devices: int
    instances: int
    service_ms: float
    service_cv: float
    outside_ms: float
    policy: str
    rate: float | None = None
    clients: int | None = None
    think_ms: float | None = None
    think: str | None = None
    utilisation: Estimate
    throughput: Estimate
    latency_ms: Latencies
    limit: str | None = None
    limit_ms: float | None = None
    limited_ms: Estimate | None = None
    keeps_limit: bool | None = None
    requests: int
    cut: int
    settled: bool
    seed: int
    outages: Outages | None = None
    price_per_hour: float | None = None
    watts_idle: Estimate | None = None
    watts_busy: Estimate | None = None
    bill: Bill | None = None
    models: tuple[OfModel, ...] = ()
    measured: Levels | None = None


def levels_of(device: Device, levels: tuple[HeldOut, ...]) -> Levels:
    """What the run says, as it is printed."""
    (model,) = device.fleet.models
    return Levels(
        instances=device.fleet.instances,
        most_together=len(model.service_s),
        fixed_ms=device.fixed_s * 1e3,
        each_ms=device.each_s * 1e3,
        service_cv=model.scatter.variation,
        outside_ms=device.outside[0][1] * 1e3,
        levels=levels,
    )


def answer_of(
    found: FleetFigures,
    fleet: Fleet,
    load: Load,
    limit: LatencyLimit | None,
    beside: tuple[int, Levels | None],
) -> Answer:
    """What was asked beside what came out; `beside` are the seed and what the run says."""
    closed = load if isinstance(load, ClosedLoad) else None
    return Answer(
        devices=found.devices,
        instances=fleet.instances,
        service_ms=fleet.alone_s * 1e3,
        service_cv=fleet.variation,
        outside_ms=fleet.outside_s * 1e3,
        policy=fleet.policy.value,
        rate=load.rate if isinstance(load, OpenLoad) else None,
        clients=closed.clients if closed else None,
        think_ms=closed.think_s * 1e3 if closed else None,
        think=closed.thinking.value if closed else None,
        utilisation=found.utilisation,
        throughput=found.throughput,
        latency_ms=found.latency_ms,
        limit=limit.name if limit else None,
        limit_ms=limit.limit_ms if limit else None,
        limited_ms=found.limited,
        keeps_limit=_keeps(found.limited, limit),
        requests=found.requests,
        cut=found.cut,
        settled=found.settled,
        seed=beside[0],
        outages=found.outages,
        price_per_hour=fleet.price_per_hour,
        watts_idle=fleet.power.idle if fleet.power else None,
        watts_busy=fleet.power.busy if fleet.power else None,
        bill=found.bill,
        models=found.models,
        measured=beside[1],
    )


def _keeps(limited: Estimate | None, limit: LatencyLimit | None) -> bool | None:
    """Whether the limit is kept; None where there is none, or where the interval holds it."""
    if limited is None or limit is None:
        return None
    if limited.low is None or limited.high is None:
        return False  # without bound
    if limited.low <= limit.limit_ms < limited.high:
        return None
    return limited.high <= limit.limit_ms


def fleet_text(answer: Answer) -> str:
    """The whole answer."""
    return lines_text(_lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    yield sentence(answer)
    yield ""
    yield f"load         {_load(answer)}"
    yield f"fleet        {_fleet(answer)}, {answer.policy}"
    yield f"utilisation  {percent_text(answer.utilisation)}"
    yield f"throughput   {_interval(answer.throughput, 'requests/s')}"
    latency = answer.latency_ms
    for name, figure in (("mean", latency.mean), ("p50", latency.p50), ("p99", latency.p99)):
        yield f"{name:<12} {_interval(figure, 'ms')}"
    for one in answer.models:
        p99 = _interval(one.latency_ms.p99, "ms")
        mean = _interval(one.latency_ms.mean, "ms")
        yield (
            f"{one.name:<12} {100 * one.share:.3g} % of requests, {brief_text(one.service_ms)} ms "
            f"each: mean {mean}, p99 {p99}"
        )
    if answer.outages is not None:
        yield f"failures     {_failures(answer.outages)}"
    bill = answer.bill or Bill()
    if bill.cost_per_million is not None:
        yield f"cost         {_interval(bill.cost_per_million, 'for a million requests')}"
    if bill.joules_per_request is not None and bill.watts is not None:
        yield f"energy       {_interval(bill.joules_per_request, 'J a request')}"
        yield f"power        {_interval(bill.watts, 'W')}"
    requests = format_number(answer.requests - answer.cut)
    yield (
        f"from         {requests} simulated requests after {format_number(answer.cut)} that were "
        f"cut as the start; seed {answer.seed}; 95 % intervals"
    )
    if not answer.settled:
        yield (
            "warning      p99 is not known to 5 %: so near to its capacity, a fleet remembers its "
            "queues for too long"
        )


def check_text(found: Levels) -> str:
    """What the run says of the device, and how well it forecasts its own levels."""
    return lines_text(_check_lines(found))


def _check_lines(found: Levels) -> Iterator[str]:
    each = f" and {brief_text(found.each_ms)} ms for each request in it" if found.each_ms else ""
    together = f", at most {found.most_together} together" if found.most_together > 1 else ""
    scatter = f", which scatter by {100 * found.service_cv:.0f} %" if found.service_cv else ""
    yield (
        f"A batch takes {brief_text(found.fixed_ms)} ms{each}{together}{scatter}; a request spends "
        f"{brief_text(found.outside_ms)} ms outside of the server where few are under way."
    )
    yield ""
    if not found.levels:
        yield "Fewer than three levels: none can be held out to try the forecast."
        return
    rows = tuple(
        row_of(
            one.level,
            brief_text(one.throughput),
            _interval(one.throughput_forecast, "").strip(),
            f"{100 * one.throughput_error:+.1f} %",
            "" if one.p99_ms is None else brief_text(one.p99_ms),
            "" if one.p99_forecast_ms is None else _interval(one.p99_forecast_ms, ""),
            "" if one.p99_error is None else f"{100 * one.p99_error:+.1f} %",
        )
        for one in found.levels
    )
    yield from listing(Table("held out", _COLUMNS, rows), heads=True)
    yield "Each level is forecast from the others; p99 needs 1000 answers in the window."


def sentence(answer: Answer) -> str:
    """`3 devices serve 250 requests/s with p99 18.2 ms (18 to 18.4), within the limit of 20 ms`."""
    devices = f"{answer.devices} device{'s' * (answer.devices != 1)}"
    serve = "serves" if answer.devices == 1 else "serve"
    named, figure = ("p99", answer.latency_ms.p99)
    if answer.limit is not None and answer.limited_ms is not None:
        named, figure = answer.limit.replace("_", "."), answer.limited_ms
    text = f"{devices} {serve} {_load(answer)} with {named} {_interval(figure, 'ms')}"
    if answer.limit_ms is None:
        return f"{text}."
    limit = f"the limit of {answer.limit_ms:g} ms"
    said = {True: "within", False: "above", None: "which may or may not keep"}
    return f"{text}, {said[answer.keeps_limit]} {limit}."


def _load(answer: Answer) -> str:
    if answer.rate is not None:
        return f"{answer.rate:g} requests/s"
    scatter = "" if answer.think == Thinking.EXPONENTIAL.value else f" {answer.think}"
    clients = f"{format_number(answer.clients or 0)} client{'s' * (answer.clients != 1)}"
    return f"{clients} that think for{scatter} {answer.think_ms:g} ms"


def _fleet(answer: Answer) -> str:
    per = f"{answer.instances} instance{'s' * (answer.instances != 1)}"
    scatter = f", which scatter by {100 * answer.service_cv:.0f} %" if answer.service_cv else ""
    took = f"{brief_text(answer.service_ms)} ms a request{scatter}"
    return f"{format_number(answer.devices)} x {per} of {took}"


def _failures(found: Outages) -> str:
    """`all devices work for 99.2 % of the time, 3.99 on average; 0.01 % of requests meet ...`."""
    held = "no request meets" if not found.held_up else f"{_share(found.held_up)} of requests meet"
    return (
        f"all devices work for {100 * found.all_work:.4g} % of the time, {found.working:.4g} on "
        f"average; {held} too few of them, {_share(found.requeued)} are on one that fails and "
        "start again"
    )


def _share(value: float) -> str:
    return f"{100 * value:.2g} %" if value >= 1e-5 else f"{1e6 * value:.2g} in a million"


def _interval(estimate: Estimate, unit: str) -> str:
    if estimate.value is None:
        return "without bound"
    text = f"{brief_text(estimate.value)} {unit}"
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return text
    return f"{text} ({brief_text(estimate.low)} to {brief_text(estimate.high)})"
