"""Packets that say what a file is: identity, clocks, machines, and where its records came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.trace.model import ClockDomain, Source, Trace
from profharness.writers.options import HostFacts, WriteOptions
from profharness.writers.protobuf import wire
from profharness.writers.protobuf.schema import (
    BOOTTIME,
    REALTIME,
    STATE_CLEARED,
    Attributes,
    Clocks,
    Packet,
    System,
)
from profharness.writers.selection import span
from profharness.writers.tracks import Machine

PREFIX = "profharness."


@dataclass(frozen=True)
class Outline:
    """What the head of a file says of all records: something that depends on them alone, and the
    earliest start (None without any).
    """

    content: bytes
    first_ns: int | None


def header(
    sources: Sequence[Source],
    sequence: int,
    machines: tuple[Machine, ...],
    attributes: Mapping[str, str | int],
    options: WriteOptions,
    outlines: Sequence[Outline],
) -> Iterator[bytes]:
    """The first packets of a file, in the order that a viewer wants them. `outlines` are of its
    parts.
    """
    firsts = [outline.first_ns for outline in outlines if outline.first_ns is not None]
    stamp = wire.integer(Packet.SEQUENCE, sequence)
    told = {
        **dict(_source_attributes(sources)),
        **{_named(key): value for key, value in attributes.items()},
    }
    yield wire.packet(
        stamp, wire.integer(Packet.SEQUENCE_FLAGS, STATE_CLEARED), _uuid(outlines, told)
    )
    for machine in machines:
        for snapshot in _snapshots(sources, options, min(firsts, default=0)):
            yield wire.packet(stamp, machine.stamp(), wire.blob(Packet.CLOCK_SNAPSHOT, snapshot))
    facts = {host.host: host for host in options.hosts}
    for machine in machines:
        known = facts.get(machine.host, HostFacts(machine.host))
        if fields := _system(known):
            yield wire.packet(stamp, machine.stamp(), wire.blob(Packet.SYSTEM_INFO, fields))
    yield wire.packet(
        stamp,
        wire.blob(
            Packet.TRACE_ATTRIBUTES, b"".join(_attribute(*item) for item in sorted(told.items()))
        ),
    )


def outline(trace: Trace) -> Outline:
    """The outline of one part."""
    content, firsts = [], []
    for name, table in trace.tables():
        if name == "host_samples" and not len(table):
            continue  # the identity of a trace without them is that of earlier versions
        if name == "allocations":  # they are not written: what they add up to are samples
            continue
        content.append(f"{name} {len(table)}".encode())
        if name != "counters" and len(table):
            start, dur = span(table)
            content += [
                np.ascontiguousarray(start[:1000]).tobytes(),
                f"{int(start[-1])} {int(dur.sum())}".encode(),
            ]
            firsts.append(int(start.min()))
    return Outline(b"".join(content), min(firsts, default=None))


def _uuid(outlines: Sequence[Outline], attributes: Mapping[str, str | int]) -> bytes:
    """A TraceUuid that depends on the content alone, so that equal traces give equal files."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr(sorted(attributes.items())).encode("utf-8", "replace"))
    for part in outlines:
        digest.update(part.content)
    msb, lsb = (
        int.from_bytes(digest.digest()[part], "big", signed=True)
        for part in (slice(0, 8), slice(8, 16))
    )
    return wire.blob(Packet.TRACE_UUID, wire.integer(1, msb) + wire.integer(2, lsb))


def _snapshots(sources: Sequence[Source], options: WriteOptions, first: int) -> Iterator[bytes]:
    """ClockSnapshots. All times are on one clock, called BOOTTIME; other machines get the same
    numbers as the reference host, because viewers do not convert between machines of one file.
    """
    primary = wire.integer(Clocks.PRIMARY_TRACE_CLOCK, BOOTTIME)
    if options.clocks:
        for reading in options.clocks:
            yield (
                _clock(BOOTTIME, reading.boottime_ns)
                + _clock(REALTIME, reading.realtime_ns)
                + primary
            )
        return
    wall = bool(sources) and all(source.clock is ClockDomain.REALTIME for source in sources)
    yield _clock(BOOTTIME, first) + (_clock(REALTIME, first) if wall else b"") + primary


def _clock(clock: int, at_ns: int) -> bytes:
    return wire.blob(
        Clocks.CLOCKS, wire.integer(Clocks.CLOCK_ID, clock) + wire.integer(Clocks.TIMESTAMP, at_ns)
    )


def _system(facts: HostFacts) -> bytes:
    named = (
        (System.SYSNAME, facts.sysname),
        (System.VERSION, facts.version),
        (System.RELEASE, facts.release),
        (System.MACHINE, facts.machine),
    )
    utsname = b"".join(wire.text(number, value) for number, value in named if value)
    fields = wire.blob(System.UTSNAME, utsname) if utsname else b""
    if facts.cpus is not None:
        fields += wire.integer(System.NUM_CPUS, facts.cpus)
    return fields + wire.text(System.MACHINE_NAME, facts.host) if facts.host else fields


def _source_attributes(sources: Sequence[Source]) -> Iterator[tuple[str, str | int]]:
    for position, source in enumerate(sources):
        told: dict[str, str | int | None] = {
            "path": source.path,
            "format": source.format,
            "clock": source.clock.value,
            "host": source.host,
            "rank": source.rank,
            "pid": source.pid,
            "tool_version": source.tool_version,
            "pass": source.pass_name,
            "layer": source.layer,
            "alignment": source.alignment,
            "residual_ns": source.residual_ns,
            "bound_ns": source.bound_ns,
        }
        for key, value in told.items():
            if value is not None and value != "":
                yield f"{PREFIX}source.{position}.{key}", value


def _named(key: str) -> str:
    return key if key.startswith(PREFIX) else PREFIX + key


def _attribute(key: str, value: str | int) -> bytes:
    shown = (
        wire.integer(Attributes.LONG_VALUE, value)
        if isinstance(value, int)
        else wire.text(Attributes.STRING_VALUE, value)
    )
    return wire.blob(Attributes.ATTRIBUTE, wire.text(Attributes.KEY, key) + shown)
