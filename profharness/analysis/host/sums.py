"""What the hosts of several files did, as one record: part by part, over all windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from profharness.analysis.host.records import AfterWait, HostPart, HostTime


def add_host_times(times: Iterable[HostTime | None]) -> HostTime | None:
    """The sum; None where a file has none, or where devices work in some files only."""
    known = list(times)
    present = [time for time in known if time is not None]
    if not present or len(present) < len(known) or len({time.of for time in present}) > 1:
        return None
    if len(present) == 1:
        return present[0]
    window_ns = sum(time.window_ns for time in present)
    return HostTime(
        of=present[0].of,
        window_ns=window_ns,
        total_ns=sum(time.total_ns for time in present),
        steps=sum(time.steps for time in present),
        processes=sum(time.processes for time in present),
        parts=_parts([part for time in present for part in time.parts], window_ns),
        after_waits=_waits([wait for time in present for wait in time.after_waits], window_ns),
    )


def _parts(every: list[HostPart], window_ns: int) -> tuple[HostPart, ...]:
    ns, others = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    computed = Counter[tuple[str, str, str]]()
    for part in every:
        key = part.cause, part.kind, part.name
        ns[key] += part.ns
        others[key] += part.others
        if part.computed is not None:
            computed[key] += part.computed
    return tuple(
        HostPart(
            cause=key[0],
            kind=key[1],
            name=key[2],
            ns=total,
            share=total / window_ns,
            others=others[key],
            computed=computed.get(key),
        )
        for key, total in sorted(ns.items(), key=lambda item: (-item[1], item[0]))
    )


def _waits(every: list[AfterWait], window_ns: int) -> tuple[AfterWait, ...]:
    ns, gaps = Counter[str](), Counter[str]()
    for wait in every:
        ns[wait.name] += wait.ns
        gaps[wait.name] += wait.gaps
    return tuple(
        AfterWait(name=name, gaps=gaps[name], ns=total, share=total / window_ns)
        for name, total in sorted(ns.items(), key=lambda item: (-item[1], item[0]))
    )
