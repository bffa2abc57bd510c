"""Which packages get a cap, from what the node says of its caps and which devices the run may see.
Pure. A refusal says why, and nothing was changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profharness.errors import Unavailable, UsageError
from profharness.node.masks import MASKS, visible
from profharness.rundir.manifest import DeviceRecord
from profharness.telemetry.caps.records import Cap, is_same

_UW = 1e6
_PERMISSION = (
    "start profharness as root on a node that is yours, or ask whoever runs it to let you write "
    "power1_cap (a udev rule does)"
)


@dataclass(frozen=True)
class Asked:
    """What the ways answered: each its caps, or why it has none, in the order of trying."""

    ways: tuple[tuple[str, tuple[Cap, ...], str], ...]

    @property
    def caps(self) -> tuple[Cap, ...]:
        """Each package by the first way that may set it, else by the first that sees it, with all
        that speaks against it.
        """
        best: dict[str, Cap] = {}
        for _, caps, _ in self.ways:
            for cap in caps:
                known = best.get(cap.key)
                if known is None or (known.why_not and not cap.why_not):
                    best[cap.key] = cap
                elif known.why_not:
                    both = f"{known.why_not}; by {cap.way}: {cap.why_not}"
                    best[cap.key] = known._replace(why_not=both)
        return tuple(best.values())


@dataclass(frozen=True)
class CapPlan:
    """The packages that get each of the caps (µW, ascending), and the devices below them that this
    run may not see.
    """

    caps: tuple[Cap, ...]
    planned_uw: tuple[int, ...]
    beside: tuple[str, ...] = ()

    def __str__(self) -> str:
        now = sorted({cap.now_uw for cap in self.caps})
        many = f"{len(self.caps)} package{'s' * (len(self.caps) != 1)}"
        ways = ", ".join(sorted({cap.way for cap in self.caps}))
        beside = f"; it also holds for {', '.join(self.beside)}" if self.beside else ""
        return (
            f"power cap on {many} of {_named(self.caps)} by {ways}, now "
            f"{' and '.join(watts_text(one) for one in now)}, which comes back{beside}"
        )


def plan_caps(asked: Asked, watts: Sequence[float], masks: Mapping[str, str]) -> CapPlan:
    """The packages of the devices that these variables let a program see. Raises Unavailable where
    no cap can be set, or none of these, UsageError for a cap that no device allows.
    """
    found = asked.caps
    if not found:
        said = "; ".join(f"{way}: {why}" for way, _, why in asked.ways)
        raise Unavailable(
            f"--scan power-cap: no device of this node has a power cap that can be set ({said})",
            "leave the axis out, or run on a node with such a device",
        )
    seen = _seen(found, masks)
    chosen = [cap for cap in found if any(one.identity in seen for one in cap.devices)]
    if not chosen:
        raise Unavailable(
            "--scan power-cap: this run may see no device with a power cap",
            f"look at {', '.join(MASKS)} in the environment",
        )
    refused = next((cap for cap in chosen if cap.why_not), None)
    if refused is not None:
        raise Unavailable(
            f"--scan power-cap: the cap of {refused.key} ({refused.name}) cannot be set: "
            f"{refused.why_not}",
            _PERMISSION,
        )
    planned = tuple(sorted(round(one * _UW) for one in watts))
    for cap in chosen:
        _require_inside(cap, planned)
    beside = [one for cap in chosen for one in cap.devices if one.identity not in seen]
    return CapPlan(
        tuple(chosen), planned, tuple(f"device {one.number} ({one.identity})" for one in beside)
    )


def _seen(found: Sequence[Cap], masks: Mapping[str, str]) -> frozenset[str]:
    """The identities of the devices that a program sees. Raises Unavailable where the variables do
    not tell.
    """
    devices = sorted({one for cap in found for one in cap.devices})
    records = [
        DeviceRecord(index=one.number, kind=one.kind, name="", identity=one.identity)
        for one in devices
    ]
    left = visible(masks, records)
    if left is None:
        named = ", ".join(f"{name}={masks[name]}" for name in MASKS if masks.get(name))
        raise Unavailable(
            f"--scan power-cap: {named} names devices in a way that does not tell whose cap to set",
            "name them by their numbers",
        )
    return frozenset(record.identity for record in left)


def _require_inside(cap: Cap, planned: Sequence[int]) -> None:
    """Raises UsageError for caps outside of what the driver allows."""
    outside = [
        one
        for one in planned
        if not is_same(one, cap.now_uw)
        and (one < cap.low_uw or (cap.high_uw and one > cap.high_uw))
    ]
    if outside:
        raise UsageError(
            f"--scan power-cap: {', '.join(map(watts_text, outside))} is outside of what the "
            f"driver of {cap.key} allows",
            f"take caps from {watts_text(cap.low_uw)} to {watts_text(cap.high_uw)}",
        )


def _named(caps: Sequence[Cap]) -> str:
    return ", ".join(dict.fromkeys(cap.name for cap in caps))


def watts_text(cap_uw: int) -> str:
    """`150 W`."""
    return f"{cap_uw / _UW:g} W"
