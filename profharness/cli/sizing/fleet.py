"""`profharness fleet`: how many devices a load needs, by a discrete-event simulation."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from profharness.cli.sizing.mix import runs_of, shares_of, times_of
from profharness.errors import UsageError
from profharness.options.declared import Limit, Option
from profharness.rundir.latency_limit import LatencyLimit, parse_latency_limit
from profharness.rundir.shown.screen import encoded

if TYPE_CHECKING:
    from profharness.analysis.fleet.failures import Failures
    from profharness.analysis.fleet.measured import Device
    from profharness.analysis.fleet.records import Fleet, Load, Power
    from profharness.report.fleet.text import Answer, Levels

POLICIES = ("round-robin", "least-loaded", "random-of-two")
THINKING = ("exponential", "fixed")
MOST_DEVICES = 10_000


class FleetLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of `fleet` asks for."""

    run: Annotated[
        tuple[str, ...],
        Option(
            "A run of a served scan, whose levels say how long the server takes; of a mix NAME=RUN "
            "for each model.",
            argument=True,
            metavar="RUN",
        ),
    ] = ()
    service_ms: Annotated[
        str,
        Option(
            "Without a RUN: milliseconds that an instance takes for one request; of a mix "
            "a=10,b=3.",
            metavar="MS",
        ),
    ] = ""
    service_cv: Annotated[
        float,
        Option(
            "With --service-ms: how times scatter (gamma), their standard deviation over the mean.",
            limit=Limit(least=0, most=20),
        ),
    ] = 0.0
    mix: Annotated[
        str,
        Option("a=0.7,b=0.3: which share of the requests is for which model.", metavar="SHARES"),
    ] = ""
    rate: Annotated[
        float | None,
        Option(
            "Requests per second of the whole fleet, at random (Poisson).", limit=Limit(above=0)
        ),
    ] = None
    clients: Annotated[
        int | None,
        Option("Clients that each think, ask, and wait for the answer.", limit=Limit(least=1)),
    ] = None
    think_ms: Annotated[
        float | None,
        Option(
            "Mean milliseconds from a client's answer to its next request.", limit=Limit(least=0)
        ),
    ] = None
    think: Annotated[str, Option("How these pauses scatter.", choices=THINKING)] = "exponential"
    devices: Annotated[
        int | None,
        Option(
            "Devices of the fleet (default: the fewest that keep --latency-limit).",
            limit=Limit(least=1, most=MOST_DEVICES),
        ),
    ] = None
    instances: Annotated[
        int | None,
        Option(
            "Instances of each device, which share its queue (default: those of the RUN, else 1).",
            limit=Limit(least=1, most=1000),
        ),
    ] = None
    latency_limit: Annotated[
        str, Option("p99=20ms: the most that clients accept.", metavar="LIMIT")
    ] = ""
    mtbf_hours: Annotated[
        float | None,
        Option("Hours for which a device works on average before it fails.", limit=Limit(above=0)),
    ] = None
    repair_minutes: Annotated[
        float | None,
        Option("With --mtbf-hours: minutes until it works again.", limit=Limit(above=0)),
    ] = None
    price_per_hour: Annotated[
        float | None,
        Option("What an hour of one device costs, in any currency.", limit=Limit(least=0)),
    ] = None
    watts_busy: Annotated[
        float | None,
        Option(
            "What a device draws while all of its instances work (default: as the RUN measured).",
            limit=Limit(least=0),
        ),
    ] = None
    watts_idle: Annotated[
        float | None,
        Option("With --watts-busy: what it draws while none works.", limit=Limit(least=0)),
    ] = None
    policy: Annotated[str, Option("Which device gets the next request.", choices=POLICIES)] = (
        "least-loaded"
    )
    seed: Annotated[int, Option("Of the random numbers.", limit=Limit(least=0))] = 0
    json: Annotated[bool, Option("Print one JSON object.")] = False


def fleet(line: FleetLine) -> None:
    """Say how many devices a load needs, and how long its requests take."""
    from profharness.report.fleet.text import check_text, fleet_text

    if bool(line.run) == bool(line.service_ms):
        raise UsageError(
            "fleet: the time of a request comes from a RUN or from --service-ms",
            "name a run of a served scan, or write --service-ms 10",
        )
    if line.run and line.service_cv:
        raise UsageError(
            "--service-cv: the RUN says by itself how its times scatter", "leave one of them out"
        )
    limit = parse_latency_limit(line.latency_limit)
    if len(line.run) == 1 and not line.mix and line.rate is None and line.clients is None:
        _, levels = _measured(Path(line.run[0]), line.seed)
        _print(levels if line.json else check_text(levels))
        return
    load = _load(line)
    if line.devices is None and limit is None:
        raise UsageError(
            "fleet: neither a number of devices nor a limit is given",
            "--devices 4 says what four of them do, --latency-limit p99=20ms how many it takes",
        )
    answer = _answer(line, load, limit)
    _print(answer if line.json else fleet_text(answer))


def _print(answer: msgspec.Struct | str) -> None:
    text = (
        answer
        if isinstance(answer, str)
        else msgspec.json.format(encoded(answer), indent=2).decode() + "\n"
    )
    sys.stdout.write(text)


def _measured(
    run: Path, seed: int, *, held_out: bool = True, plan: bool = False
) -> tuple[Device, Levels]:
    """The device that the run measured, and each of its levels beside its forecast from the
    others. For a `plan` its levels must be told apart.
    """
    from profharness.analysis.fleet.measured import device_of, power_of, require_told_apart
    from profharness.analysis.fleet.measured import held_out as beside
    from profharness.report.fleet.text import levels_of
    from profharness.understand.sizing import measured_device

    levels, asked, idle = measured_device(run)
    if plan:
        require_told_apart(levels)
    device = device_of(levels, asked)
    power = power_of(levels, device, idle)
    device = replace(device, fleet=replace(device.fleet, power=power))
    return device, levels_of(device, beside(levels, asked, seed) if held_out else ())


def _answer(line: FleetLine, load: Load, limit: LatencyLimit | None) -> Answer:
    from profharness.analysis.fleet.answer import figures, smallest
    from profharness.analysis.fleet.records import Policy
    from profharness.report.fleet.text import answer_of

    one, levels = _device(line)
    asked = replace(
        one,
        devices=line.devices or 1,
        instances=line.instances or one.instances,
        policy=Policy(line.policy),
        price_per_hour=line.price_per_hour,
        power=_power(line) or one.power,
    )
    failures = _failures(line)
    if line.devices is None:
        assert limit is not None
        found = smallest(asked, load, line.seed, limit, MOST_DEVICES, failures)
    else:
        found = figures(asked, load, line.seed, limit, failures)
    return answer_of(found, asked, load, limit, (line.seed, levels))


def _device(line: FleetLine) -> tuple[Fleet, Levels | None]:
    """One device with the models that the line names, and what its only run says."""
    from profharness.analysis.fleet.records import Fleet, Model, Scatter

    shares = shares_of(line.mix)
    names = tuple(shares)
    if line.service_ms:
        models = tuple(
            Model(
                service_s=(ms / 1e3,),
                scatter=Scatter(cv=line.service_cv),
                name=name,
                share=shares.get(name, 1.0),
            )
            for name, ms in times_of(line.service_ms, names).items()
        )
        return Fleet(devices=1, instances=1, models=models), None
    found = {
        name: _measured(run, line.seed, held_out=not names, plan=True)
        for name, run in runs_of(line.run, names).items()
    }
    fleets = {name: device.light() for name, (device, _) in found.items()}
    if not names:
        return fleets[""], found[""][1]
    models = tuple(
        replace(fleets[name].models[0], name=name, share=share) for name, share in shares.items()
    )
    most = max(fleet.instances for fleet in fleets.values())
    return Fleet(devices=1, instances=most, models=models), None


def _power(line: FleetLine) -> Power | None:
    from profharness.analysis.fleet.records import Power
    from profharness.stats.estimate import Estimate

    if (line.watts_busy is None) != (line.watts_idle is None):
        raise UsageError(
            "fleet: a device draws power at work and idle",
            "--watts-busy 300 --watts-idle 60: give both",
        )
    if line.watts_busy is None or line.watts_idle is None:
        return None
    idle, busy = (
        Estimate(value=watts, low=watts, high=watts) for watts in (line.watts_idle, line.watts_busy)
    )
    return Power(idle, busy)


def _failures(line: FleetLine) -> Failures | None:
    from profharness.analysis.fleet.failures import Failures

    if (line.mtbf_hours is None) != (line.repair_minutes is None):
        raise UsageError(
            "fleet: failures take two numbers",
            "--mtbf-hours 1000 --repair-minutes 30: how long a device works, and how long it is "
            "down",
        )
    if line.mtbf_hours is None or line.repair_minutes is None:
        return None
    return Failures(line.mtbf_hours * 3600, line.repair_minutes * 60)


def _load(line: FleetLine) -> Load:
    from profharness.analysis.fleet.records import ClosedLoad, OpenLoad, Thinking

    if (line.rate is None) == (line.clients is None):
        raise UsageError(
            "fleet: a load is either --rate or --clients",
            "--rate 500 for requests that come at random, --clients 68 --think-ms 67 for clients "
            "that wait for each answer",
        )
    if line.rate is not None:
        if line.think_ms is not None:
            raise UsageError(
                "--think-ms: --rate has no clients that think", "leave one of them out"
            )
        return OpenLoad(line.rate)
    if line.think_ms is None:
        raise UsageError(
            "--clients: how long does a client think?",
            "--think-ms 67 is the time from an answer to its next request; 0 asks again at once",
        )
    assert line.clients is not None
    return ClosedLoad(line.clients, line.think_ms / 1e3, Thinking(line.think))
