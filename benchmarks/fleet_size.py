"""What a simulated fleet costs, and what it says of published ones: `python
benchmarks/fleet_size.py [--requests 1000000]`.

CPU seconds of this process for a million requests of 10,000 clients on 100 devices, and for the
search of the fewest devices that keep p99 below 20 ms for these clients, each from the start and
with nothing kept. A request takes 10 ms, and clients think for so long that 100 devices are used
to 80 %. Then the fleets of two published demonstrations, as far as their figures say what to
simulate (docs/fleet.md#published). Goal: less than a minute each; exit status 1 where one is
missed. Results go to benchmarks/results/fleet-size-DATE.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

import description

from profharness.analysis.fleet.answer import figures, smallest
from profharness.analysis.fleet.records import ClosedLoad, Fleet, FleetFigures, Model
from profharness.analysis.fleet.simulate import Simulation
from profharness.rundir.latency_limit import LatencyLimit

CLIENTS, DEVICES, SERVICE_S, USE = 10_000, 100, 0.01, 0.8
THINK_S = CLIENTS * SERVICE_S / (DEVICES * USE) - SERVICE_S
LIMIT = LatencyLimit("p99", 20.0)
GOAL_S = 60.0
THREADS, CHAIN, PART = 68, 2.7, 17.0
"""ProtoDUNE-SP (arXiv:2009.04509): CPU threads for one GPU, and how many times as fast the whole
chain and its part on the GPU became.
"""
KNEE, ADVICE = 115, 105
"""CMS, on a T4: jobs at which it saturated, and with which it was advised to be used."""


def main() -> int:
    """Print the figures and keep them; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    asked = parser.parse_args()
    fleet, load = _fleet(DEVICES, SERVICE_S), ClosedLoad(CLIENTS, THINK_S)
    simulation = Simulation(fleet, load, 0)
    requests_s = _cpu(lambda: simulation.advance(asked.requests))
    print(f"{asked.requests:,} requests of {CLIENTS:,} clients: {requests_s:.1f} CPU s")
    found: list[FleetFigures] = []
    search_s = _cpu(lambda: found.append(smallest(fleet, load, 0, LIMIT, 10_000)))
    print(f"search for p99 below 20 ms: {found[0].devices} devices, {search_s:.1f} CPU s")
    published = list(_published())
    for row in published:
        print(row)
    results = {
        "machine": description.machine(["numpy"]),
        "requests": asked.requests,
        "requests_cpu_s": round(requests_s, 2),
        "search_cpu_s": round(search_s, 2),
        "devices": found[0].devices,
        "published": published,
    }
    print(description.keep("fleet-size", results))
    return int(max(requests_s, search_s) > GOAL_S)


def _published() -> Iterator[dict[str, object]]:
    """By ratios alone, as no demonstration has published the time of a request on the GPU.

    ProtoDUNE-SP, in the time of an event on the CPU: with a part f of the work made 17 times as
    fast and all of it 2.7 times, f = (1 - 1/2.7) / (1 - 1/17). A thread works by itself for 1 - f
    and then waits for f / 17, of which the GPU takes 1/68 of the whole, so that 68 threads just
    fill it; the rest is outside of the server. CMS: the jobs' cycle is 115 times the GPU's time.
    """
    part = (1 - 1 / CHAIN) / (1 - 1 / PART)
    service = 1 / CHAIN / THREADS
    outside = part / PART - service
    yield {
        "demonstration": "ProtoDUNE-SP",
        "part_on_gpu": part,
        "gpu_of_wait": service * PART / part,
    }
    for threads in (34, 54, 61, THREADS, 102):
        load = ClosedLoad(threads, 1 - part)
        yield _row("ProtoDUNE-SP", load, _fleet(1, service, outside))
    load = ClosedLoad(100 * THREADS // 2, 1 - part)
    yield _row("ProtoDUNE campaign, 100 GPUs", load, _fleet(100, service, outside))
    for jobs in (ADVICE, KNEE, KNEE * 5 // 4):
        yield _row("CMS, T4", ClosedLoad(jobs, KNEE - 1.0), _fleet(1, 1.0))


def _row(demonstration: str, load: ClosedLoad, fleet: Fleet) -> dict[str, object]:
    """The speed of the clients as a share of what it is where none waits for another."""
    found = figures(fleet, load, 0)
    alone_s = load.think_s + fleet.alone_s + fleet.outside_s
    return {
        "demonstration": demonstration,
        "clients": load.clients,
        "utilisation": round(found.utilisation.value or 0.0, 3),
        "of_full_speed": round((found.throughput.value or 0.0) * alone_s / load.clients, 3),
    }


def _fleet(devices: int, service_s: float, outside_s: float = 0.0) -> Fleet:
    model = Model(service_s=(service_s,), outside_s=outside_s)
    return Fleet(devices=devices, instances=1, models=(model,))


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
