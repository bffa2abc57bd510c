"""What a reader must know of hardware counters of whole devices before trusting them
(docs/metrics.md#device-counters).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from profharness.analysis.records import Figure
from profharness.findings import Finding, finding
from profharness.trace.device_counters import (
    EXPORTER,
    FABRIC,
    HIDDEN,
    NAME,
    PARTIAL,
    SHADER,
    SHARED,
    DeviceFacts,
    device_facts,
)
from profharness.trace.model import Source, Trace

_ENDED = "HelperEndedError"
_LIMITED = frozenset({"gfx942"})  # where firmware has a limiter that counting may switch off


def device_counter_findings(trace: Trace) -> Iterator[Finding]:
    """Devices whose compute units stayed invisible or were seen in part, counting that ended early,
    and the side effect of counting. That it did not begin is known to who asked for it.
    """
    present = {trace.strings[code] for code in set(trace.samples.metric.tolist())}
    every = device_facts(trace).values()
    # the library's version is known once it answered: from then on nobody else tells of an end
    began = not present.isdisjoint((*SHADER, *FABRIC)) or any(facts.sdk for facts in every)
    for source in trace.sources:
        yield from _of_source(source, began=began)
        yield from _of_exporter(source)
    limited = [facts for facts in every if facts.arch in _LIMITED]
    if limited and not present.isdisjoint(SHADER):
        kinds = dict.fromkeys(_described(facts) for facts in limited)
        yield finding(
            "device-counters-limiter",
            f"while compute units are counted ({'; '.join(kinds)}), a limiter of power in the "
            "firmware (PTL) may be off: speed and power may differ from those of a run without "
            "counters",
        )


def for_verdict(figures: Mapping[str, Figure], trace: Trace) -> Mapping[str, Figure]:
    """The figures without those of compute units, where these are known to be too low or wrong: no
    verdict may rest on them.
    """
    kinds = {key.partition(".")[0] for source in trace.sources for key, _ in source.details}
    if kinds.isdisjoint((PARTIAL, SHARED)):
        return figures
    return {name: figure for name, figure in figures.items() if not name.startswith(SHADER)}


def _described(facts: DeviceFacts) -> str:
    """`gfx942 as SPX/NPS1, 304 compute units`: the partition decides what the shares are of."""
    partition = f" as {facts.mode}" if facts.mode else ""
    return f"{facts.arch}{partition}, {facts.compute_units} compute units"


def _of_source(source: Source, *, began: bool) -> Iterator[Finding]:
    for key, why in dict(source.details).items():
        kind, _, identity = key.partition(".")
        if kind == HIDDEN:
            said = (
                f"{identity} worked, and no compute unit of it was seen to work: {why}; "
                "only its memory fabric has figures"
            )
        elif kind == PARTIAL:
            said = (
                f"{identity}: compute units of some processes only were counted, so the figures "
                f"are the least that they can be ({why})"
            )
        elif kind == SHARED:
            said = (
                f"{identity}: {why}, and whoever counts beside another programs the same "
                "registers, so that every figure of its hardware counters may be wrong"
            )
        elif kind == "missing" and identity.startswith(f"{NAME}:"):
            said = f"{identity.partition(':')[2]}: {why}"
        elif kind == "failed" and identity == NAME and began:
            lack = "not there to the end" if _ENDED in why else "not there for some intervals"
            said = f"hardware counters of {source.host} are {lack} ({why})"
        else:
            continue
        yield finding("device-counters-hidden", said, source=NAME)


def _of_exporter(source: Source) -> Iterator[Finding]:
    """Whose figures they are, and that they ended or never came."""
    details = dict(source.details)
    whose, failed = details.get(EXPORTER), details.get(f"failed.{EXPORTER}")
    if failed:
        yield finding(
            "device-counters-exporter",
            f"hardware counters of {source.host} from {whose or 'an exporter'} have holes "
            f"({failed})",
            severity="warning",
            source=EXPORTER,
        )
    elif missing := details.get(f"missing.{EXPORTER}"):
        yield finding(
            "device-counters-exporter",
            f"no hardware counter of {source.host} was read from the exporter: {missing}",
            severity="warning",
            source=EXPORTER,
        )
    elif whose:
        yield finding(
            "device-counters-exporter",
            f"hardware counters of {source.host} are those of {whose}, not of profharness",
            source=EXPORTER,
        )
