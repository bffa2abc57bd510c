"""What the host did, in words: for a device's idle time why it was not fed, for a CPU run where the
step went.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from profharness.analysis.host.kinds import LABELS, Kind
from profharness.analysis.host.records import AfterWait, HostPart, HostTime
from profharness.analysis.records import Hotspots
from profharness.analysis.run.checks import NOBODY
from profharness.findings import Finding
from profharness.report.text.figures import brief_text
from profharness.report.text.folding import cut_middle, fold_kernel_name
from profharness.rundir.shown.screen import one_line
from profharness.units import format_ns, format_number, format_share

_SEEN = 0.0005  # smaller shares would print as 0.0 %
_WORTH_A_WORD = 0.05
_MOST = 0.5
_SHORT_CALL_NS = 5_000  # an operator of torch costs its caller some microseconds
_KINDS = {kind.key: kind for kind in Kind}
OPERATIONS = (
    Kind.OPERATOR,
    Kind.LAUNCH_CALL,
    Kind.COPY_CALL,
    Kind.SYNCHRONISATION,
    Kind.ALLOCATOR,
    Kind.RUNTIME_CALL,
)
"""What an operator does, on a CPU run: its own time, and the calls inside of it."""

_GROUPS: dict[str, tuple[Kind, ...]] = {
    "garbage": (Kind.GARBAGE_COLLECTION,),
    "loader": (Kind.DATA_LOADER,),
    "writing": (Kind.WRITING,),
    "operations": OPERATIONS,
    "collectives": (Kind.COLLECTIVE,),
    "outside": (Kind.OPTIMIZER, Kind.RANGE, Kind.PYTHON, Kind.NOTHING),
}

_CROWDED = 0.3  # of the time that its threads wanted a core, they waited for one
FEWER_THREADS = (
    "fewer threads (OMP_NUM_THREADS, torch.set_num_threads): no more than the cores that it may use"
)
FEWER_CALLS = (
    "fewer and larger operations: foreach=True or fused=True in the optimizer, one tensor for "
    "many, torch.compile; more threads gain nothing"
)
RECORD_LINES = (
    "--profile py-spy, which names the Python lines that the time outside of operations goes to"
)
READ_FUNCTIONS = (
    "the flame graph of Python's functions in the report: making the widest of them faster, or "
    "moving it out of the loop"
)
ADVICE = {
    "garbage": "collecting less often: no gc.collect() inside of the loop, gc.freeze() once the "
    "data and the model are there, a higher gc.set_threshold()",
    "loader": "more workers (DataLoader(num_workers=...)), with persistent_workers and "
    "prefetch_factor, or preparing the data once",
    "writing": "writing less often, to a local disk, or from another thread (QueueHandler of "
    "logging.handlers; checkpoints of a copy)",
    "collectives": "overlapping collectives with compute: larger buckets, an earlier launch, or "
    "fewer ranks per model",
    "outside": RECORD_LINES,
}

_BUSY_WITH: dict[Kind, str] = {
    Kind.GARBAGE_COLLECTION: "the host collects garbage",
    Kind.DATA_LOADER: "the host waits for the DataLoader",
    Kind.WRITING: "the host writes logs or files",
    Kind.SYNCHRONISATION: "the host is in a synchronisation",
    Kind.COPY_CALL: "the host is in a copy call",
    Kind.ALLOCATOR: "the host allocates device memory",
    Kind.LAUNCH_CALL: "the host launches",
    Kind.RUNTIME_CALL: "the host is in other calls of the runtime",
    Kind.OPERATOR: "the host works through operators",
    Kind.OPTIMIZER: "the host runs the optimizer's Python",
    Kind.RANGE: "the host runs Python inside of a range",
    Kind.PYTHON: "the host runs Python",
    Kind.COLLECTIVE: "the host waits for other ranks",
}


WAIT_LESS = "removing .item(), .cpu() and explicit synchronisation from the loop"
_DEVICE_ADVICE: dict[Kind, str] = {
    Kind.GARBAGE_COLLECTION: ADVICE["garbage"],
    Kind.DATA_LOADER: ADVICE["loader"],
    Kind.WRITING: ADVICE["writing"],
    Kind.ALLOCATOR: "keeping device memory: no torch.cuda.empty_cache() in the loop, the same "
    "shapes in each step, PYTORCH_ALLOC_CONF=expandable_segments:True",
    Kind.SYNCHRONISATION: WAIT_LESS,
}


_NO_THREADS_HELP = (Kind.GARBAGE_COLLECTION, Kind.DATA_LOADER, Kind.WRITING)


@dataclass(frozen=True)
class Group:
    """What took most of a step: its key in `ADVICE`, its time, and its largest named part."""

    key: str
    ns: int
    largest: HostPart | None


def groups(host: HostTime) -> list[Group]:
    """The window's time as garbage collection, DataLoader, writing, operations, collectives with
    nothing beside them and what is outside of all these, the largest first.
    """
    found = []
    for key, kinds in _GROUPS.items():
        parts = [part for part in host.parts if part.kind in {kind.key for kind in kinds}]
        named = [part for part in parts if part.name]
        found.append(
            Group(key, sum(part.ns for part in parts), max(named, key=lambda p: p.ns, default=None))
        )
    return sorted(found, key=lambda group: -group.ns)


def idle_advice(host: HostTime | None, findings: Sequence[Finding] = ()) -> str:
    """What to change where the host does one kind of thing in at least half of the idle time, or
    its threads take the cores from one another.
    """
    kind = _main_kind(host)
    if crowded(findings) and not (kind is not None and kind[0] in _NO_THREADS_HELP):
        return FEWER_THREADS
    if host is not None and main_wait(host) is not None:
        return _DEVICE_ADVICE[Kind.SYNCHRONISATION]
    return "" if kind is None else _DEVICE_ADVICE.get(kind[0], "")


def without_waits(host: HostTime) -> HostTime:
    """The same without how much of its parts the thread ran: where other work held the cores, it
    may have stood in line for one, and waited for nothing of its own.
    """
    parts = tuple(msgspec.structs.replace(part, running=None) for part in host.parts)
    return msgspec.structs.replace(host, parts=parts)


def crowded(findings: Sequence[Finding]) -> str:
    """`Its threads wait for a core 84 % of the time ...`, where nothing else ran there; else
    empty.
    """
    for item in findings:
        waited = item.figures.get("waiting_share")
        if item.id == "cpu-pressure" and item.advice == NOBODY and float(waited or 0) > _CROWDED:
            share = format_share(float(waited or 0), 0)
            return (
                f"Its threads wait for a core {share} of the time although nothing else ran here, "
                "as more threads than cores do."
            )
    return ""


def short_calls(table: Hotspots | None) -> str:
    """`3.1 µs a call`: the mean own time of operators, where it is so short that the time goes to
    calling them; else empty.
    """
    if table is None or table.by != "op" or not table.total_ns:
        return ""
    calls = sum(row.calls for row in table.rows)
    mean = table.total_ns / calls if calls else 0.0
    return f"{format_ns(mean, 2)} a call" if 0 < mean < _SHORT_CALL_NS else ""


def step_sentence(host: HostTime, short: str = "", waits: str = "", beside: str = "") -> str:
    """`Garbage collection takes 98.2 % of each step (243.6 ms); operations take 1.8 %.` `short` is
    what `short_calls` says. `waits` says what ranks wait for where that comes first, `beside` what
    part of the time in collectives that is.
    """
    ordered = groups(host)
    first = ordered[0]
    rest = [
        f"{_NOUN[group.key]} {_verb(group)} {format_share(group.ns / host.window_ns)}"
        f"{beside if group.key == 'collectives' else ''}"
        for group in (ordered if waits else ordered[1:])
        if group.ns >= _WORTH_A_WORD * host.window_ns or group.key == "operations"
    ]
    if waits:
        return f"{waits}. Over all ranks {', '.join(rest)}."
    text = _first(first, host) + (beside if first.key == "collectives" else "")
    if short and first.key == "operations":
        text += f": at {short} that is what calling them costs"
    return f"{'; '.join([text, *rest])}."


_NOUN = {
    "garbage": "garbage collection",
    "loader": "the DataLoader",
    "writing": "writing of logs and files",
    "operations": "operations",
    "collectives": "collectives with nothing to compute",
    "outside": "what is outside of them",
}


_WHOLE = {
    "garbage": "Garbage collection takes {share} of {of}",
    "loader": "{share} of {of} goes to waiting for the DataLoader",
    "collectives": "Collectives with nothing to compute take {share} of {of}",
}
"""What is said of a group that needs no name of a part."""


def _verb(group: Group) -> str:
    return "take" if group.key in ("operations", "collectives") else "takes"


def _first(group: Group, host: HostTime) -> str:
    share = format_share(group.ns / host.window_ns)
    of = _window(host)
    most = group.largest
    if group.key in _WHOLE:
        return _WHOLE[group.key].format(share=share, of=of)
    if group.key == "operations":
        return f"Operations take {share} of {of}{_alone(most, host)}"
    if group.key == "writing":
        where = "" if most is None else f" ({_name(most)}{_waiting(most)})"
        return f"{share} of {of} goes to writing logs or files{where}"
    text = f"{share} of {of} is outside of any operation"
    if most is not None and _surely(most, host) >= _MOST * group.ns:
        return f"{text}: {_share_of(most, host)} in {_name(most)}{_waiting(most)}"
    return f"{text}{_alone(most, host)}" if most is None or most.low is None else text


def _alone(part: HostPart | None, host: HostTime) -> str:
    if part is None or part.ns < _WORTH_A_WORD * host.window_ns:
        return ""
    return f", {_name(part)} alone {_share_of(part, host)}"


def _surely(part: HostPart, host: HostTime) -> float:
    """The time of a part in ns; of a sampled one the lower end of its interval."""
    return part.ns if part.low is None else part.low * host.window_ns


def _waiting(part: HostPart) -> str:
    """`, which waits 93 % of that time`, where samples say that the thread did not run."""
    if part.running is None or part.running > _MOST:
        return ""
    return f", which waits {format_share(1 - part.running, 0)} of that time"


def _share_of(part: HostPart, host: HostTime) -> str:
    return format_share(part.ns / host.window_ns)


def _name(part: HostPart) -> str:
    return name_of(part, 48)


def name_of(part: HostPart, room: int) -> str:
    """The name of a part in `room` characters. Names of operators, calls and kernels are folded;
    places in the program are no such names, and only cut.
    """
    if part.kind in (Kind.PYTHON.key, Kind.WRITING.key):
        return cut_middle(one_line(part.name), room)
    return fold_kernel_name(part.name, room)


def _window(host: HostTime) -> str:
    """`each step (83.4 ms)`, `the recorded 1.66 s`."""
    if host.steps:
        each = format_ns(host.window_ns / host.steps)
        return f"each step ({each})" if host.steps > 1 else f"the step ({each})"
    return f"the recorded {format_ns(host.window_ns / host.processes)}"


def advice_for(group: Group) -> str:
    """What to try against what takes most of a step; its place in the program where it is known."""
    place = group.largest
    if group.key == "outside" and place is not None and place.kind == Kind.PYTHON.key:
        if place.samples is None:  # torch's profiler recorded Python's functions
            return READ_FUNCTIONS
    elif group.key != "outside" or place is None or place.samples is None:
        return ADVICE[group.key]
    waits = place.running is not None and place.running <= _MOST
    return (
        f"doing what {_name(place)} waits for beside the steps: in another thread or process"
        if waits
        else f"making {_name(place)} faster, or moving it out of the loop or to another process"
    )


def step_advice(host: HostTime, short: str, findings: Sequence[Finding]) -> str:
    """What to change where what operations compute is not what most of the step goes to; else
    empty. `short` is what `short_calls` says.
    """
    largest = groups(host)[0]
    if largest.key == "operations":
        fewer = FEWER_THREADS if crowded(findings) else FEWER_CALLS if short else ""
        return f"Try {fewer}." if fewer else ""
    most = bound(host, largest)
    gain = f"; it gains at most {brief_text(most, 3)}x" if most is not None and most > 1 else ""
    return f"Try {advice_for(largest)}{gain}."


def bound(host: HostTime, group: Group) -> float | None:
    """At most how many times as fast the step would run without the group; None where it is all."""
    rest = host.window_ns - group.ns
    return host.window_ns / rest if rest > 0 else None


def idle_reason(host: HostTime | None) -> str:
    """`33.6 % while the host waits for the DataLoader`, where one kind of thing explains at least
    half of the idle time; `61.0 % in gaps that follow aten::item` where these explain more.
    """
    if host is None or host.of != "idle" or not host.total_ns:
        return ""
    main, after = _main_kind(host), main_wait(host)
    if after is not None:
        waited = fold_kernel_name(after.name, 48)
        return f"{format_share(after.share)} in gaps that follow {waited}"
    if main is None:
        return ""
    kind, ns = main
    named = [part for part in host.parts if part.kind == kind.key and part.name]
    top = max(named, key=lambda part: part.ns, default=None)
    told = kind in (Kind.GARBAGE_COLLECTION, Kind.DATA_LOADER)
    of_lines = kind in (Kind.PYTHON, Kind.WRITING)
    name = ""
    if top is not None and not told and 2 * top.ns >= ns:
        name = f" ({_name(top)})"
    elif top is not None and of_lines and top.ns >= _WORTH_A_WORD * host.window_ns:
        name = f" (most in {_name(top)}: {_share_of(top, host)})"
    return f"{format_share(ns / host.window_ns)} while {_BUSY_WITH[kind]}{name}"


def main_wait(host: HostTime) -> AfterWait | None:
    """The waiting call that at least half of the idle time follows, and more of it than the host
    spends in one kind of thing.
    """
    main = _main_kind(host)
    after = max(host.after_waits, key=lambda wait: wait.ns, default=None)
    least = max(_MOST * host.total_ns, main[1] if main else 0)
    return after if host.total_ns and after is not None and after.ns >= least else None


def _main_kind(host: HostTime | None) -> tuple[Kind, int] | None:
    """The kind of thing that the host does in at least half of the idle time, and for how long."""
    if host is None or host.of != "idle" or not host.total_ns:
        return None
    kinds = Counter[str]()
    for part in host.parts:
        kinds[part.kind] += part.ns
    del kinds[""], kinds[Kind.NOTHING.key]
    key, ns = max(kinds.items(), key=lambda item: item[1], default=("", 0))
    return (_KINDS[key], ns) if ns >= _MOST * host.total_ns else None


def kind_items(host: HostTime) -> list[str]:
    """`DataLoader 33.6 %`, `operators 9.8 %`: kinds with their share of the window, the largest
    first. Time that the host did not cause is left out.
    """
    kinds = Counter[str]()
    for part in host.parts:
        kinds[part.kind] += part.ns
    del kinds[""]
    return [
        f"{LABELS[_KINDS[key]]} {format_share(ns / host.window_ns)}"
        for key, ns in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
        if ns >= _SEEN * host.window_ns
    ]


def host_time_lines(host: HostTime | None, top: int = 8) -> Iterator[str]:
    """The host's time by kind, then its largest parts: cause of idle time, kind, name, time."""
    if host is None or not host.total_ns:
        return
    items = kind_items(host)
    if items:
        yield f"host      {'   '.join(items)}"
    parts = [part for part in host.parts if part.kind and part.name][:top]
    for part in parts:
        cause = f"{part.cause.replace('_', ' ')}: " if part.cause else ""
        label = LABELS[_KINDS[part.kind]]
        yield (
            f"          {format_share(part.share):>7}  {format_ns(part.ns):>10}  "
            f"{cause}{label}, {_name(part)}"
        )
    for wait in host.after_waits[:3]:
        if wait.ns >= _SEEN * host.window_ns:
            gaps = "gap" if wait.gaps == 1 else "gaps"
            yield (
                f"          {format_share(wait.share):>7}  {format_ns(wait.ns):>10}  in "
                f"{format_number(wait.gaps)} {gaps} after {fold_kernel_name(wait.name, 48)}"
            )
