"""What this device reaches under this torch: matrix products by type, copy bandwidth, launches. One
JSON object on stdout.

    python calibrate_torch.py [--device auto|cpu|cuda|cuda:N] [--seconds S] [--threads N]

Each figure is the best of batches that last some 20 ms or more: a ceiling is what was reached, not
what was usual. The products go round in turn, so that what else the machine does for a moment
cannot lower one figure alone; what each round reached is told, and shows whether it comes again.
Python 3.8 on, torch and the standard library alone.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import argparse
import json
import socket
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

MISSING = 3
BATCH_S = 0.02
ROUNDS = 3  # of each figure; a product's first has half of the time and finds the fastest size
SMALLEST = {"cpu": 256, "cuda": 1024}
LARGEST = {"cpu": 2048, "cuda": 8192}
COPY_BYTES = {"cpu": 256 << 20, "cuda": 1 << 30}
TYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")


def best_seconds(run: Callable[[], Any], synchronise: Callable[[], None], budget_s: float) -> float:
    """Seconds of one call in the fastest batch, after a warm-up, within about the budget: of a
    single call if that takes it all.
    """
    run()
    synchronise()
    start = time.perf_counter()
    end = start + budget_s
    run()
    synchronise()
    best = max(time.perf_counter() - start, 1e-7)
    calls = max(1, int(BATCH_S / best))
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(calls):
            run()
        synchronise()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def operands(torch: Any, name: str, n: int, place: Any) -> Callable[[], Any]:
    """A product of two n x n matrices of this type, ready to run. Raises whatever torch raises
    where it cannot.
    """
    if name in ("fp64", "fp32", "tf32", "bf16", "fp16"):
        kind = {
            "fp64": "float64",
            "fp32": "float32",
            "tf32": "float32",
            "bf16": "bfloat16",
            "fp16": "float16",
        }[name]
        a = torch.randn(n, n, device=place).to(getattr(torch, kind))
        b = torch.randn(n, n, device=place).to(a.dtype)
        out = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=out)
    if name == "int8":
        a = torch.randint(-8, 8, (n, n), device=place, dtype=torch.int8)
        b = torch.randint(-8, 8, (n, n), device=place, dtype=torch.int8)
        return lambda: torch._int_mm(a, b)
    kinds = (
        ("float8_e4m3fnuz", "float8_e4m3fn")
        if getattr(torch.version, "hip", None)
        else ("float8_e4m3fn",)
    )
    problem: Optional[Exception] = None
    for kind in kinds:
        try:
            a = torch.randn(n, n, device=place).to(getattr(torch, kind))
            b = (
                torch.randn(n, n, device=place).to(a.dtype).t()
            )  # the second one column-major, as the kernels want it
            unit = torch.ones((), device=place)

            def product(a: Any = a, b: Any = b, unit: Any = unit) -> Any:
                return torch._scaled_mm(a, b, scale_a=unit, scale_b=unit, out_dtype=torch.bfloat16)

            product()
            return product
        except (
            Exception
        ) as error:  # which of the two 8-bit formats a device takes is found by trying
            problem = error
    raise RuntimeError(str(problem).split("\n")[0])


def gemm(
    torch: Any, name: str, place: Any, synchronise: Callable[[], None], budget_s: float
) -> Tuple[float, int]:
    """FLOP/s (operations for int8) of the fastest product that fits into the budget, half of which
    it takes, and its size.
    """
    kind = place.type
    n, best = SMALLEST[kind], (0.0, SMALLEST[kind])
    while n <= LARGEST[kind]:
        rate = rate_of(torch, name, n, place, synchronise, budget_s / 8)
        best = max(best, (rate, n))
        if 2.0 * n**3 / rate * 8 > budget_s:  # the next size takes eight times as long
            break
        n *= 2
    return best


def rate_of(
    torch: Any, name: str, n: int, place: Any, synchronise: Callable[[], None], budget_s: float
) -> float:
    return 2.0 * n**3 / best_seconds(operands(torch, name, n, place), synchronise, budget_s)


def has_tf32(torch: Any, place: Any) -> bool:
    """NVIDIA from compute capability 8.0 on, and AMD's gfx942."""
    if place.type == "cpu":
        return False
    if getattr(torch.version, "hip", None):
        return bool(torch.cuda.get_device_properties(place).gcnArchName.startswith("gfx942"))
    return bool(torch.cuda.get_device_capability(place)[0] >= 8)


def gemms(
    torch: Any, place: Any, synchronise: Callable[[], None], budget_s: float
) -> Tuple[Dict[str, List[float]], List[str]]:
    """FLOP/s of each round by type, and a note for each type that could not be measured."""
    sizes: Dict[str, int] = {}
    rounds: Dict[str, List[float]] = {}
    notes: List[str] = []

    def measure(name: str, again: bool) -> None:
        before = torch.backends.cuda.matmul.allow_tf32
        try:
            torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
            if again:
                share_s = budget_s / 2 / (ROUNDS - 1)
                rate = rate_of(torch, name, sizes[name], place, synchronise, share_s)
            else:
                rate, sizes[name] = gemm(torch, name, place, synchronise, budget_s)
            rounds.setdefault(name, []).append(rate)
        except Exception as error:  # a type that this device or build does not have
            if not again:
                notes.append("%s: %s" % (name, str(error).strip().split("\n")[0][:160]))
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before
            if place.type != "cpu":
                torch.cuda.empty_cache()

    for name in TYPES:
        if name != "tf32" or has_tf32(torch, place):
            measure(name, again=False)
    quick = [
        name for name, (rate,) in rounds.items() if 2.0 * sizes[name] ** 3 / rate < budget_s
    ]  # an emulated type stays slow
    for _ in range(1, ROUNDS):
        for name in quick:
            measure(name, again=True)
    return rounds, notes


def copy_rates(
    torch: Any, place: Any, synchronise: Callable[[], None], budget_s: float
) -> List[float]:
    """Bytes read and written per second by a copy that fits no cache, of each round."""
    count = COPY_BYTES[place.type] // 4
    source = torch.ones(count, device=place)
    target = torch.empty_like(source)
    size_bytes = int(source.numel() * source.element_size())
    return [
        2.0
        * size_bytes
        / best_seconds(lambda: target.copy_(source), synchronise, budget_s / ROUNDS)
        for _ in range(ROUNDS)
    ]


def launches(torch: Any, place: Any, synchronise: Callable[[], None]) -> Tuple[float, float]:
    """Nanoseconds of host time per launch, back to back, and from one launch to the end of waiting
    for it.
    """
    value = torch.zeros(1, device=place)
    for _ in range(100):
        value.add_(1)
    synchronise()
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter_ns()
        for _ in range(200):
            value.add_(1)
        best = min(best, (time.perf_counter_ns() - start) / 200)
        synchronise()
    trips = []
    for _ in range(200):
        start = time.perf_counter_ns()
        value.add_(1)
        synchronise()
        trips.append(time.perf_counter_ns() - start)
    return best, float(sorted(trips)[len(trips) // 2])


def hold(
    torch: Any, rates: Dict[str, float], place: Any, synchronise: Callable[[], None], seconds: float
) -> Dict[str, Any]:
    """Run the fastest product again and again while something else measures power. Returns its type
    and when it ran (CLOCK_BOOTTIME ns).
    """
    name = max(
        (candidate for candidate in rates if candidate != "int8"),
        key=lambda candidate: rates[candidate],
    )
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    run = operands(torch, name, LARGEST[place.type] // 2, place)
    run()
    synchronise()
    start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        run()
        run()
        synchronise()
    torch.backends.cuda.matmul.allow_tf32 = before
    return {"type": name, "start_ns": start, "end_ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME)}


def identities(properties: Any) -> List[str]:
    """How the drivers name the device: its PCI address (AMD), its UUID (NVIDIA); as far as this
    torch tells them.
    """
    names = []
    if getattr(properties, "pci_bus_id", None) is not None:
        names.append(
            "%04x:%02x:%02x.0"
            % (properties.pci_domain_id, properties.pci_bus_id, properties.pci_device_id)
        )
    if getattr(properties, "uuid", None) is not None:
        names.append("GPU-%s" % properties.uuid)
    return names


def describe(torch: Any, place: Any) -> Dict[str, Any]:
    """The device and the software under which the figures were reached: kind (cpu, cuda, rocm),
    name, compute units, architecture as the compilers name it, and how drivers identify it.
    """
    software = {"torch": torch.__version__}
    for name in ("cuda", "hip"):
        if getattr(torch.version, name, None):
            software[name] = str(getattr(torch.version, name))
    if place.type == "cpu":
        return {
            "kind": "cpu",
            "name": "",
            "compute_units": torch.get_num_threads(),
            "architecture": "",
            "software": software,
        }
    properties = torch.cuda.get_device_properties(place)
    hip = getattr(torch.version, "hip", None)
    architecture = (
        properties.gcnArchName.partition(":")[0]
        if hip
        else "sm_%d%d" % (properties.major, properties.minor)
    )
    return {
        "kind": "rocm" if hip else "cuda",
        "name": properties.name,
        "compute_units": properties.multi_processor_count,
        "architecture": architecture,
        "software": software,
        "identities": identities(properties),
    }


def main() -> int:
    """Measure and print. Returns the exit status: MISSING without torch, or without the device that
    was asked for.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each figure")
    parser.add_argument(
        "--threads", type=int, default=0, help="threads on a CPU (0: as many as torch takes)"
    )
    parser.add_argument(
        "--power-seconds",
        type=float,
        default=0.0,
        help="hold the fastest product for so long, for a measurement of power",
    )
    asked = parser.parse_args()
    try:
        import torch
    except Exception as error:  # a broken installation raises OSError or worse
        print("torch cannot be imported by %s: %s" % (sys.executable, error), file=sys.stderr)
        return MISSING
    name = asked.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name != "cpu" and not torch.cuda.is_available():
        print(
            "--device %s: torch %s sees no GPU" % (asked.device, torch.__version__), file=sys.stderr
        )
        return MISSING
    place = torch.device(name)
    if asked.threads and place.type == "cpu":
        torch.set_num_threads(asked.threads)

    def synchronise() -> None:
        if place.type != "cpu":
            torch.cuda.synchronize(place)

    with torch.no_grad():
        start_ns, cpu_s = time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.process_time()
        rounds, notes = gemms(torch, place, synchronise, asked.seconds)
        rates = {name: max(reached) for name, reached in rounds.items()}
        copied = copy_rates(torch, place, synchronise, asked.seconds)
        facts = describe(torch, place)
        facts.update(gemm_flops=rates, notes=notes, host=socket.gethostname())
        facts.update(copy_bytes_per_s=max(copied), rounds=dict(rounds, copy=copied))
        facts["launch_ns"], facts["round_trip_ns"] = launches(torch, place, synchronise)
        facts["ran"] = {
            "start_ns": start_ns,
            "end_ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            "cpu_s": time.process_time() - cpu_s,
        }
        if asked.power_seconds > 0 and rates:
            facts["held"] = hold(torch, rates, place, synchronise, asked.power_seconds)
    facts["pid"] = os.getpid()
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
