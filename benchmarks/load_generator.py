"""Our load generator, perf_analyzer and client libraries on the same server in one run: is ours as
fast, what does it cost, and what would a library cost in its place?

    python benchmarks/load_generator.py [--models sleep:10ms,particlenet] [--concurrency 1,4]
      [--protocols grpc,http] [--libraries all|none|NAME,...] [--rounds 12] [--seconds 1.5]
      [--max-batch-size 1] [--shared-cores]

A real PyTriton server is started once per model; all clients put the same levels on it in turn, in
random order within each round, with the same inputs. The libraries are grpcio (blocking calls in
threads, and asyncio), h2 with hpack under our socket loop, httpx, http.client, and h11 under our
socket loop: each sends the messages that our generator serialised beforehand, in its process and
measured as it is (`load_clients/library_worker.py`). One that is not installed is left out, and
the run says so.

Throughput is what each reports itself. CPU time is taken from the process clocks of the clients
while load runs; perf_analyzer's requests are counted from the server's own statistics. Printed
are, per model, protocol and concurrency, the medians over rounds of the ratios within a round
(client / perf_analyzer's), with Student's 95 % interval of their mean, since a machine that others
use too changes between rounds. The server has one half of the cores to itself and the client at
work the other: where they share them, a client that takes less CPU leaves more to a server that
needs it, and is ahead by that alone (`--shared-cores` shows it). By default the server puts no
requests together: with a dynamic batcher the same load settles in one of several patterns (1, 7,
1, 7 or 4, 4, 4), which differ more than clients do. The figures go to benchmarks/results.
Goals, which only our own generator has to meet: the median throughput ratio between 0.95 and 1.05,
the median CPU ratio at most 1.5, Little's law at each level. Exit status 1 when one is missed, 3
when a throughput ratio lies outside and its interval does not, so that the machine was too noisy to
tell.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

import description
from load_clients.figures import (
    OURS,
    PERF_ANALYZER,
    Compared,
    Place,
    Round,
    compared,
)
from load_clients.serving import SEED, halves, server

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(ROOT / "wrappers"))

from load_clients.clients import (  # noqa: E402  it imports the workers' own modules
    LIBRARIES,
    Client,
    Library,
    Load,
    PerfAnalyzer,
    Setting,
    Worker,
)

PROTOCOLS = ("grpc", "http")
PACKAGES = ("grpcio", "h2", "hpack", "httpx", "httpcore", "h11", "nvidia-pytriton", "numpy")
UNCLEAR = 3


def chosen_libraries(asked: str) -> tuple[Library, ...]:
    """The libraries asked for that are installed; says which are not. Ends the program for a name
    that is none.
    """
    names = [library.name for library in LIBRARIES]
    wanted = {"all": names, "none": []}.get(asked, asked.split(","))
    if unknown := sorted(set(wanted) - set(names)):
        sys.exit(f"--libraries: {', '.join(unknown)} is none of {', '.join(names)}")
    for library in LIBRARIES:
        if library.name in wanted and library.missing:
            print(f"{library.name} is left out: {', '.join(library.missing)} is not installed")
    return tuple(library for library in LIBRARIES if library.name in wanted and not library.missing)


def clients_of(
    protocol: str, libraries: Sequence[Library], setting: Setting, perf_analyzer: PerfAnalyzer
) -> dict[str, Client]:
    """All clients that speak the protocol, by name."""
    names = [OURS, *(library.name for library in libraries if library.protocol == protocol)]
    workers = {name: Worker(setting, name, protocol) for name in names}
    return {**workers, PERF_ANALYZER: perf_analyzer}


def compare(
    model: str, libraries: Sequence[Library], asked: argparse.Namespace, order: random.Random
) -> list[Compared]:
    """All levels of one model."""
    results: list[Compared] = []
    server_cores, client_cores = halves(asked.shared_cores)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="profharness-load-")))
        ready = stack.enter_context(server(folder, model, asked.max_batch_size, server_cores))
        setting = Setting(folder, ready, client_cores, asked.clients)
        perf_analyzer = PerfAnalyzer(setting)
        for protocol in asked.protocols:
            with ExitStack() as running:
                clients = clients_of(protocol, libraries, setting, perf_analyzer)
                for client in clients.values():
                    running.enter_context(closing(client))
                for concurrency in asked.concurrency:
                    place = Place(model, protocol, concurrency)
                    results += at_place(place, clients, asked, order)
    return results


def at_place(
    place: Place, clients: dict[str, Client], asked: argparse.Namespace, order: random.Random
) -> list[Compared]:
    """All clients under one load, over the rounds; prints a line for each."""
    load = Load(place.protocol, place.concurrency, asked.seconds, asked.lead)
    rounds: list[Round] = [
        {name: clients[name].level(load) for name in order.sample(sorted(clients), len(clients))}
        for _ in range(asked.rounds)
    ]
    results = []
    for name in clients:
        result = compared(place, name, rounds) if name != PERF_ANALYZER else None
        if result is not None:
            results.append(result)
            print(line_of(result), flush=True)
    return results


def line_of(one: Compared) -> str:
    """What is printed of a client."""
    goal = f"   goal {one.verdict}" if one.client == OURS else ""
    return (
        f"{one.model:>12} {one.protocol} {one.concurrency:>2} in flight {one.client:>14}: "
        f"throughput {one.items_per_s:7.1f} / {one.perf_analyzer_items_per_s:7.1f} items/s = "
        f"{one.throughput}; CPU {one.cpu_us:6.1f} / {one.perf_analyzer_cpu_us:6.1f} us per "
        f"request = {one.cpu}; Little's law {'holds' if one.little else 'BROKEN'}{goal}"
    )


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--models", default="sleep:10ms,particlenet", type=lambda text: text.split(",")
    )
    options.add_argument(
        "--concurrency", default="1,4", type=lambda text: [int(part) for part in text.split(",")]
    )
    options.add_argument(
        "--protocols", default=",".join(PROTOCOLS), type=lambda text: text.split(",")
    )
    options.add_argument("--libraries", default="all", help="all, none, or names with commas")
    options.add_argument("--rounds", type=int, default=12)
    options.add_argument("--seconds", type=float, default=1.5)
    options.add_argument(
        "--lead", type=float, default=1.0, help="seconds of warm-up before CPU time counts"
    )
    options.add_argument("--max-batch-size", type=int, default=1)
    options.add_argument("--clients", type=int, default=1, help="client processes of a worker")
    options.add_argument(
        "--shared-cores", action="store_true", help="server and clients on all cores"
    )
    return options


def main() -> int:
    asked = parser().parse_args()
    libraries = chosen_libraries(asked.libraries)
    machine = description.machine(PACKAGES)
    order = random.Random(SEED)
    results = [one for model in asked.models for one in compare(model, libraries, asked, order)]
    RESULTS.mkdir(exist_ok=True)
    suffix = "-shared-cores" if asked.shared_cores else ""
    path = RESULTS / f"load-generator-{description.today()}{suffix}.json"
    levels = [{**asdict(one), "goal": one.verdict} for one in results]
    kept = {
        "date": description.today(),
        "machine": {**machine, "load_average_after": [round(one, 2) for one in os.getloadavg()]},
        "asked": vars(asked),
        "levels": levels,
    }
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(path.relative_to(ROOT))
    verdicts = {one.verdict for one in results if one.client == OURS}
    return 1 if "missed" in verdicts else UNCLEAR if "unclear" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
