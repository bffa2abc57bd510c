"""Figures of how well a device's compute units work, from totals of hardware counters of the whole
device (docs/metrics.md#device-counters).

The samples hold the growth per second of each counter (`counter_rate:NAME`, of one compute die
`counter_rate:NAME:DIE`); all counters of one device are read together, so that the ratio of two
rates over the same interval is the ratio of their growths. With T the cycles that passed, CU and
SIMD the device's compute units and SIMDs, and W the waves that a compute unit holds at most:

    T             = max over the dies of GRBM_COUNT
    cu_active     = sum SQ_BUSY_CU_CYCLES / (T CU)
    cu_occupancy  = 4 sum SQ_WAVE_CYCLES / (T CU W)
    matrix_busy   = sum SQ_VALU_MFMA_BUSY_CYCLES / (T SIMD)
    valu_busy     = sum SQ_ACTIVE_INST_VALU / (T CU)
    vmem_busy     = sum (SQ_ACTIVE_INST_VMEM + SQ_ACTIVE_INST_FLAT) / (T CU)
    lds_busy      = sum SQ_ACTIVE_INST_LDS / (T CU)

SQ_WAVE_CYCLES and SQ_ACTIVE_INST_* count in steps of four cycles; for the latter the four SIMDs of
a compute unit make up for it. AMD's own percentages divide by the busy cycles (GRBM_GUI_ACTIVE);
these are shares of wall time, as NVIDIA's are. Bytes between the L2 cache and the memory fabric
follow from the numbers of requests of each size (counter_defs.yaml of rocprofiler-sdk).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from profharness.trace.columns.table import concat
from profharness.trace.model import F64, I64, Problem, Samples, Trace

RAW = "counter_rate"
NAME = "device-counters"
EXPORTER = "counters-exporter"
"""The source, and a detail of it, that says whose counters an exporter published."""
HIDDEN, PARTIAL = "device-counters-hidden", "device-counters-partial"
"""Details of a source, each with the device's identity behind a point: why no shader counter is
shown, and why those that are shown are too low.
"""
SHARED = "device-counters-shared"
"""Such a detail too: why none of the figures can be relied on."""
SHADER = ("cu_active", "cu_occupancy", "matrix_busy", "valu_busy", "vmem_busy", "lds_busy")
FABRIC = ("fabric_read", "fabric_write")
LONGEST = 3.0  # periods; an interval beyond that has lost samples
CAPACITY = 1.02  # a share above this is no share: the counters do not belong together
MOVED = 0.01  # of the cycles, from which the device worked for more than the counting itself
_CYCLES, _BUSY, _SHADERS = "GRBM_COUNT", "GRBM_GUI_ACTIVE", "SQ_"


class DeviceFacts(msgspec.Struct, frozen=True):
    """What the sampler wrote of one device: KFD's numbers, and what it expected to see (`level`).

    `waves` is how many waves one compute unit holds, `hz` the samples per second that were asked
    for, `why` what speaks against seeing everything, `shared` whether another profiler held the
    device.
    """

    arch: str
    compute_units: int
    simds: int
    waves: int
    dies: int
    mode: str = ""
    level: str = "full"
    why: str = ""
    sdk: str = ""
    hz: float = 2.0
    shared: bool = False


@dataclass(frozen=True, eq=False)
class Growths:
    """The counters of one device over the intervals in which its cycles were read: rates per second
    by name (by name and die for those of the graphics block), NaN where one is missing.
    """

    at_ns: I64
    until_ns: I64
    rates: Mapping[str, F64]

    def largest(self, name: str, dies: int) -> F64:
        """The largest of the compute dies; NaN where one is missing. Their clocks run alike, so a
        sum would count the same time several times.
        """
        rates: F64 = np.max([self.of(f"{name}:{die}") for die in range(dies)], axis=0)
        return rates

    def of(self, name: str) -> F64:
        """NaN in every interval for a counter that was not read at all."""
        found = self.rates.get(name)
        return np.full(len(self.at_ns), np.nan) if found is None else found


def device_facts(trace: Trace) -> dict[str, DeviceFacts]:
    """By the device's identity, of the sources of the trace; texts of another form are left out."""
    found: dict[str, DeviceFacts] = {}
    for source in trace.sources:
        for key, text in source.details:
            name, _, identity = key.partition(".")
            if name == NAME:
                try:
                    found[identity] = msgspec.json.decode(text, type=DeviceFacts)
                except msgspec.DecodeError:
                    continue
    return found


def with_figures(trace: Trace) -> Trace:
    """The trace of one telemetry file with the figures in the place of the raw counters; as it is
    where it has none.
    """
    raw_codes = {
        code: name.removeprefix(f"{RAW}:")
        for code, name in enumerate(trace.strings.texts)
        if name.startswith(f"{RAW}:")
    }
    if not raw_codes:
        return trace
    samples = trace.samples
    is_raw = np.isin(samples.metric, list(raw_codes))
    raw = samples.take(np.flatnonzero(is_raw))
    facts = device_facts(trace)
    added: list[Samples] = []
    details: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for place, device in enumerate(trace.devices):
        known = facts.get(device.identity)
        own = raw.take(np.flatnonzero(raw.device == place))
        if known is None or not len(own):
            continue
        growths = _growths(own, raw_codes)
        figures, left_out = figures_of(growths, known)
        details += _seen(growths, known, device.identity)
        if left_out:
            problems.append(
                Problem(
                    "info",
                    trace.sources[0].path,
                    left_out,
                    f"intervals of device counters without a figure on {device.identity}: "
                    "samples were lost, or the counters do not belong together",
                )
            )
        for metric, values in figures.items():
            usable = np.flatnonzero(np.isfinite(values))
            added.append(
                Samples.build(
                    len(usable),
                    at_ns=growths.at_ns[usable],
                    until_ns=growths.until_ns[usable],
                    value=values[usable],
                    device=place,
                    metric=trace.strings.code(metric),
                    source=0,
                )
            )
    kept = samples.take(np.flatnonzero(~is_raw))
    source = trace.sources[0]
    return replace(
        trace,
        samples=concat((kept, *added)) if added else kept,
        sources=(replace(source, details=(*source.details, *details)), *trace.sources[1:]),
        problems=(*trace.problems, *problems),
    )


def _growths(samples: Samples, names: Mapping[int, str]) -> Growths:
    """One device's raw samples side by side: intervals are those of the first die's cycles."""
    series: dict[str, Samples] = {}
    for code in np.unique(samples.metric):
        one = samples.take(np.flatnonzero(samples.metric == code))
        series[names[int(code)]] = one.take(np.argsort(one.at_ns, kind="stable"))
    first = series.get(f"{_CYCLES}:0")
    if first is None:
        empty = np.zeros(0, np.int64)
        return Growths(empty, empty, {})
    rates: dict[str, F64] = {}
    for name, one in series.items():
        place = np.minimum(np.searchsorted(one.at_ns, first.at_ns), len(one) - 1)
        same = (one.at_ns[place] == first.at_ns) & (one.until_ns[place] == first.until_ns)
        rates[name] = np.where(same, one.value[place], np.nan)
    return Growths(first.at_ns, first.until_ns, rates)


def figures_of(growths: Growths, facts: DeviceFacts) -> tuple[dict[str, F64], int]:
    """Each figure over the intervals, NaN where there is none, and how many intervals have none at
    all.

    Where every shader counter stayed 0 though the device worked, they are not visible to this
    process: such figures are left out, not 0.
    """
    cycles = growths.largest(_CYCLES, facts.dies)
    length = growths.until_ns - growths.at_ns
    whole = (cycles > 0) & (length > 0) & (length <= LONGEST * 1e9 / facts.hz)
    busy = growths.largest(_BUSY, facts.dies) / np.where(whole, cycles, np.nan)
    if f"{_BUSY}:0" in growths.rates:
        whole &= busy <= CAPACITY  # not where it went back either
    figures: dict[str, F64] = {}
    if not shaders_hidden(growths, facts):
        for name, capacity, counted in _shares(growths, facts):
            share = counted / np.where(whole, cycles * capacity, np.nan)
            figures[name] = np.where(share <= CAPACITY, np.minimum(share, 1.0), np.nan)
    for name, bytes_per_s in zip(FABRIC, _traffic(growths, facts.arch), strict=True):
        figures[name] = np.where(whole & (bytes_per_s >= 0), bytes_per_s, np.nan)
    return figures, int((~whole).sum())


def _shares(growths: Growths, facts: DeviceFacts) -> Iterator[tuple[str, float, F64]]:
    """Name, what one cycle has room for, and what was counted."""
    units = float(facts.compute_units)
    of = growths.of
    counted = (
        (units, of("SQ_BUSY_CU_CYCLES")),
        (units * facts.waves, 4 * of("SQ_WAVE_CYCLES")),
        (float(facts.simds), of("SQ_VALU_MFMA_BUSY_CYCLES")),
        (units, of("SQ_ACTIVE_INST_VALU")),
        (units, of("SQ_ACTIVE_INST_VMEM") + of("SQ_ACTIVE_INST_FLAT")),
        (units, of("SQ_ACTIVE_INST_LDS")),
    )
    for name, (capacity, total) in zip(SHADER, counted, strict=True):
        yield name, capacity, total


def _traffic(growths: Growths, arch: str) -> tuple[F64, F64]:
    """Bytes per second read and written between the L2 cache and the memory fabric.

    gfx90a knows the size of every request. The others count reads of 32, 64 and 128 bytes; their
    writes are taken as 64 bytes each, so the figure is what was written at most (half of it at
    least): a count of the short ones would need a fifth counter, and there is room for four.
    """
    of = growths.of
    if arch == "gfx90a":
        reads, short = of("TCC_EA_RDREQ"), of("TCC_EA_RDREQ_32B")
        writes, full = of("TCC_EA_WRREQ"), of("TCC_EA_WRREQ_64B")
        return 64 * (reads - short) + 32 * short, 64 * full + 32 * (writes - full)
    long = of("TCC_EA0_RDREQ_128B" if "TCC_EA0_RDREQ_128B" in growths.rates else "TCC_BUBBLE")
    reads, short = of("TCC_EA0_RDREQ"), of("TCC_EA0_RDREQ_32B")
    return 128 * long + 64 * (reads - long - short) + 32 * short, 64 * of("TCC_EA0_WRREQ")


def shaders_hidden(growths: Growths, facts: DeviceFacts) -> bool:
    """Whether the device worked while every shader counter that was read stayed exactly 0. Where
    the device's own work was not counted, what was expected decides.
    """
    shaders = [rates for name, rates in growths.rates.items() if name.startswith(_SHADERS)]
    if not shaders or any(np.any(rates > 0) for rates in shaders):
        return False
    busy = growths.largest(_BUSY, facts.dies)
    if not np.isfinite(busy).any():
        return facts.level != "full" or bool(facts.why)
    return bool(np.any(busy > MOVED * growths.largest(_CYCLES, facts.dies)))


def _seen(growths: Growths, facts: DeviceFacts, identity: str) -> Iterator[tuple[str, str]]:
    """What the counters themselves say of their visibility."""
    if shaders_hidden(growths, facts):
        yield (
            f"{HIDDEN}.{identity}",
            facts.why or "the driver counts no shader of other processes for this one",
        )
    elif facts.shared:
        yield f"{SHARED}.{identity}", facts.why
    elif (facts.level != "full" or facts.why) and any(
        np.any(rates > 0) for name, rates in growths.rates.items() if name.startswith(_SHADERS)
    ):
        yield f"{PARTIAL}.{identity}", facts.why


def is_raw(metric: str) -> bool:
    """Whether a metric is a raw counter's rate."""
    return metric.partition(":")[0] == RAW
