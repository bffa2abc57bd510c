"""What a check of a Perfetto trace gives: what the file holds, what is wrong with it, and what to
know.
"""

from __future__ import annotations

from dataclasses import dataclass

# rule -> what goes wrong in a viewer; the rules are those that viewers pass over silently (perfetto
# docs, own tests)
RULES: dict[str, str] = {
    "framing": "the file does not consist of packets to its end; viewers stop there",
    "packet-damaged": "the bytes of a packet do not parse; it is lost",
    "bundle-damaged": "a compressed bundle cannot be inflated; its packets are lost",
    "bundle-too-large": (
        "a compressed bundle holds more than 512 KB of packets, the most that the format allows"
    ),
    "no-sequence": "an event has no packet sequence id; it is dropped",
    "state-not-cleared": (
        "an event uses interned names before its sequence cleared its state; "
        "it is dropped without a word"
    ),
    "unresolved-name": (
        "an event refers to an interned entry that its sequence never gave; "
        "it appears without a name, or not at all"
    ),
    "undeclared-track": "an event is on a track that nothing declares; a viewer makes one up",
    "undeclared-parent": "a track's parent is not declared; the track appears at the top level",
    "wrong-track-kind": (
        "a counter value is on a track that is no counter track, or a slice on one that is"
    ),
    "end-without-begin": "an end has no open begin on its track; it is ignored",
    "begin-without-end": "a begin has no end; its slice has no length that can be used",
    "crossing-slices": (
        "an end that names one slice closes another, "
        "because slices of one track overlap; both durations are wrong"
    ),
    "tie-order": (
        "an end at the time of a later slice's begin stands after it in the file; "
        "both slices get wrong durations"
    ),
    "negative-time": "a time or duration does not fit into 63 bits",
    "duplicate-event-id": "two GPU events share an id; arrows go to the wrong one",
    "unresolved-event": (
        "a submission or wait names a GPU event that is not there; its arrow is missing"
    ),
    "incomplete-gpu-event": "a GPU event has no id or no queue; it is dropped or has no track",
    "no-clock-snapshot": "nothing says which clock the times are on",
    "unrelated-clock": (
        "a clock is used that no snapshot relates to the trace's clock; its events are dropped"
    ),
}


@dataclass(frozen=True)
class Fault:
    """One broken rule: how often, and the first packet (its number from 0 and its byte offset in
    the unpacked data).
    """

    rule: str
    count: int
    packet: int
    offset: int

    @property
    def message(self) -> str:
        """What goes wrong in a viewer."""
        return RULES[self.rule]


@dataclass(frozen=True)
class Holdings:
    """What a file holds. Times are in ns of the trace's clock; None where there is no event."""

    bytes: int
    packets: int
    sequences: int
    machines: int
    tracks: int
    slices: int
    instants: int
    counter_values: int
    gpu_events: int
    arrows: int
    first_ns: int | None
    last_ns: int | None


@dataclass(frozen=True)
class Check:
    """The result of a check. `notes` are no faults: what a viewer needs, or what cannot be decided
    from the file.
    """

    holdings: Holdings
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
