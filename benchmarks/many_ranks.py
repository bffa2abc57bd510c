"""Time and memory of `merge`, `metrics` and `report` over one file for each of many ranks: `python
benchmarks/many_ranks.py [--ranks 64,128] [--kernels N] [--rounds N]`.

The ranks are simulated: training steps of two phases (forward, backward) with N kernels each, of
which each tenth is an all-reduce that all ranks meet in. Each file has a clock of its own, seconds
from those of the others. One rank computes longer, which the others wait for, and the ranks of one
node compute less. Every command is a process of its own, imports included; memory is the
largest resident set of any process. Of several rounds the least CPU time counts. With twice the
ranks nothing may take more than twice as much: the script ends with 1 where it does.

Results go to benchmarks/results/many-ranks-DATE.json with a description of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import description
from scale import ROOT, Cost, run

US = 1_000
STEPS, COLLECTIVE_EVERY = 10, 10
SLOW_RANK, FAST_NODE = 77, 3
RANKS_OF_NODE = 8
TORCH_NAMES = 30
"""Of a group's ranks torch writes so many (kTruncatLength, torch/csrc/profiler/util.cpp)."""
COMPUTE = ("ampere_bf16_gemm_128x64", "layer_norm_kernel", "flash_fwd_kernel", "gelu_kernel")
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
PID = 4711
GREATEST = 2.0
"""With twice the ranks, times as much as with half of them."""

COMMANDS = ("merge", "metrics", "report")

Costs = dict[str, Cost]
"""By command."""

_plans: list[Plan] = []


class Plan:
    """When all ranks meet: of each collective of the job the common end, on the true clock (ns).

    Ranks differ by chance; the job goes on when the last one has come.
    """

    def __init__(self, ranks: int, kernels: int, seed: int) -> None:
        self.ranks, self.kernels = ranks, kernels
        dice = random.Random(seed)
        self.offset = [dice.randrange(-5_000_000, 5_000_000) * US for _ in range(ranks)]
        self.seeds = [dice.randrange(1 << 30) for _ in range(ranks)]
        self.lengths = [4 + dice.randrange(20) for _ in range(kernels)]
        self.ends: list[int] = []
        arrive = [0] * ranks
        slow = SLOW_RANK % ranks
        for number in range(1, kernels + 1):
            if number % COLLECTIVE_EVERY:
                us = self.lengths[number - 1]
                for rank in range(ranks):
                    extra = us // 2 if rank == slow else 0
                    arrive[rank] += (us + extra + 2) * US
            else:
                over = max(arrive) + 25 * US
                self.ends.append(over)
                arrive = [over + (rank * 37 % 400) for rank in range(ranks)]


def write_rank(out: TextIO, plan: Plan, rank: int) -> None:
    """One rank's Kineto file."""
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
        "host_name": f"node{rank // RANKS_OF_NODE:02d}",
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": plan.ranks},
        "baseTimeNanoseconds": 1_760_000_000_000_000_000,
    }
    out.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
    out.write(",\n".join(events(plan, rank)))
    out.write("\n]}\n")


def events(plan: Plan, rank: int) -> list[str]:
    """Host and device events of one rank, on its own clock."""
    ranks = ", ".join(map(str, range(plan.ranks)[:TORCH_NAMES]))
    group = f"[{ranks}{', ...' if plan.ranks > TORCH_NAMES else ''}]"
    zero = 10_000_000 * US + plan.offset[rank]
    slow_rank, fast_node = rank == SLOW_RANK % plan.ranks, rank // RANKS_OF_NODE == FAST_NODE
    made: list[str] = []
    now, call, step_from, phase_from = 0, 0, 0, 0
    half, whole = plan.kernels // STEPS // 2, plan.kernels // STEPS

    def add(name: str, cat: str, start: int, length: int, tid: int, **args: object) -> None:
        pid = 0 if cat == "kernel" else PID
        made.append(
            json.dumps(
                {
                    "ph": "X",
                    "cat": cat,
                    "name": name,
                    "pid": pid,
                    "tid": tid,
                    "ts": (zero + start) / US,
                    "dur": length / US,
                    "args": args,
                }
            )
        )

    for number in range(1, plan.kernels + 1):
        meets = number % COLLECTIVE_EVERY == 0
        us = plan.lengths[number - 1]
        length = us * US
        if slow_rank or fast_node:
            length = length * (3 if slow_rank else 1) // 2
        if meets:
            end = plan.ends[call]
            length = max(end - now, US)
            call += 1
        add("cudaLaunchKernel", "cuda_runtime", now - 4 * US, 2 * US, PID, correlation=number)
        op = "nccl:all_reduce" if meets else "aten::linear"
        more = {
            "Collective name": "allreduce",
            "In msg nelems": 1 << 20,
            "Out msg nelems": 1 << 20,
            "dtype": "BFloat16",
            "Group size": plan.ranks,
            "Process Group Ranks": group,
        }
        add(op, "cpu_op", now - 5 * US, 4 * US, PID, **{"External id": number})
        add(
            REDUCE if meets else COMPUTE[number % len(COMPUTE)],
            "kernel",
            now,
            length,
            20 if meets else 7,
            device=0,
            stream=20 if meets else 7,
            correlation=number,
            grid=[128, 1, 1],
            block=[256, 1, 1],
            **{"External id": number},
            **(more if meets else {}),
        )
        now += length + (rank * 37 % 400 if meets else 2 * US)
        if number % half == 0:
            phase = "forward" if number // half % 2 else "backward"
            add(phase, "user_annotation", phase_from - 6 * US, now - phase_from, PID)
            phase_from = now
        if number % whole == 0:
            name = f"ProfilerStep#{number // whole}"
            add(name, "user_annotation", step_from - 7 * US, now - step_from, PID)
            step_from = now
    return made


def files(folder: Path, ranks: int, kernels: int) -> list[Path]:
    """The files of all ranks."""
    plan = Plan(ranks, kernels, seed=ranks)
    paths = [folder / f"rank{rank:03d}.json" for rank in range(ranks)]
    with ProcessPoolExecutor(initializer=_take, initargs=(plan,)) as pool:
        list(pool.map(write_file, range(ranks), paths))
    return paths


def _take(plan: Plan) -> None:
    """Once for each process that writes: the plan is as long as the files."""
    _plans.append(plan)


def write_file(rank: int, path: Path) -> None:
    """One rank's file, in a process that has the plan."""
    with path.open("w", buffering=1 << 20) as out:
        write_rank(out, _plans[0], rank)


def cost_of(command: str, paths: list[str], folder: Path, keep: Path | None) -> Cost:
    """What a command takes; its page and what it printed stay where that is asked for."""
    ours = [sys.executable, "-m", "profharness", command, *paths]
    name = f"ranks-{len(paths)}"
    line = {
        "merge": [*ours, "-o", str(folder / "m.pftrace"), "--force"],
        "metrics": ours,
        "report": [*ours, "-o", str((keep or folder) / f"{name}.html"), "--force"],
    }[command]
    with tempfile.TemporaryFile() as out:
        cost = run(line, out=out)
        assert cost is not None, f"{command} failed"
        out.seek(0)
        lines = out.read().decode().splitlines()
    if keep is not None:
        (keep / f"{name}-{command}.txt").write_text("\n".join(lines) + "\n")
    print(
        f"{len(paths):5} ranks  {command:8}{cost.cpu_s:8.1f} CPU s{cost.wall_s:8.1f} s"
        f"{cost.peak_mib:8.0f} MiB  {len(lines):5} lines"
    )
    return cost


def measure(counts: list[int], kernels: int, rounds: int, keep: Path | None) -> dict[str, Costs]:
    """The least that each command took, of rounds in which few and many ranks follow one another:
    a shared machine is slower in some minutes than in others, by more than what is looked for.
    """
    with tempfile.TemporaryDirectory() as name:
        folders = {count: Path(name) / str(count) for count in counts}
        paths: dict[int, list[str]] = {}
        for count, folder in folders.items():
            folder.mkdir()
            paths[count] = [str(path) for path in files(folder, count, kernels)]
        found: dict[str, Costs] = {str(count): {} for count in counts}
        for _ in range(rounds):
            for command in COMMANDS:
                for count in counts:
                    cost = cost_of(command, paths[count], folders[count], keep)
                    least = found[str(count)].get(command)
                    if least is None or cost.cpu_s < least.cpu_s:
                        found[str(count)][command] = cost
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", default="64,128", help="how many, the fewest first")
    parser.add_argument("--kernels", type=int, default=2_000, help="of each rank")
    parser.add_argument("--rounds", type=int, default=2, help="of which the least time counts")
    parser.add_argument("--keep", type=Path, help="leave pages and what was printed here")
    options = parser.parse_args()
    counts = [int(one) for one in options.ranks.split(",")]
    told = measure(counts, options.kernels, options.rounds, options.keep)
    over = 0
    for few, many in pairwise(counts):
        for command in told[str(few)]:
            less, more = told[str(few)][command], told[str(many)][command]
            allowed = GREATEST * many / few / 2
            times, memory = more.cpu_s / less.cpu_s, more.peak_mib / less.peak_mib
            over += times > allowed or memory > allowed
            print(f"{command:8} {many} ranks / {few}: time x {times:.2f}, memory x {memory:.2f}")
    date = description.today()
    target = ROOT / "benchmarks" / "results" / f"many-ranks-{date}.json"
    target.write_text(
        json.dumps(
            {
                "date": date,
                "machine": description.machine(("profharness", "numpy", "msgspec", "pyarrow")),
                "load_average": [round(one, 2) for one in os.getloadavg()],
                "kernels": options.kernels,
                "rounds": options.rounds,
                "ranks": {
                    count: {command: asdict(cost) for command, cost in found.items()}
                    for count, found in told.items()
                },
            },
            indent=1,
        )
        + "\n"
    )
    print(target.relative_to(ROOT))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
