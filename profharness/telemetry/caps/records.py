"""What is known of power caps, and what is written down before one is changed. All in µW, as the
drivers have it; the standard library only, since the sampler's side needs it too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

VERSION = 1
SAME_UW = 1_000_000
"""Drivers keep whole watts: two caps that are nearer than that are one."""


class Sharing(NamedTuple):
    """A device below a cap: its number as programs count it, its identity, and `kind`, rocm or
    cuda.
    """

    number: int
    identity: str
    kind: str


class Cap(NamedTuple):
    """The cap of one package as one way to set it sees it; `why_not` says why this user may not.

    `low_uw` and `high_uw` are what the driver allows, 0 where it does not say. All of `devices`
    share the cap.
    """

    way: str
    key: str
    name: str
    now_uw: int
    low_uw: int
    high_uw: int
    devices: tuple[Sharing, ...]
    why_not: str = ""


class OldCap(NamedTuple):
    """The cap that a package had before the first change."""

    way: str
    key: str
    uw: int


class Saved(NamedTuple):
    """What is written to the disk of the node before a cap is changed, for whoever sets it again.

    `pid`, `start` (clock ticks since boot) and `namespace` (of process ids) name the process that
    changes caps, `run` its run directory and `record` where the result of setting them again is
    told. `planned_uw` are all caps that it will set: another one is somebody else's.
    """

    host: str
    boot_id: str
    pid: int
    start: int
    namespace: str
    run: str
    record: str
    sysfs: str
    old: tuple[OldCap, ...]
    planned_uw: tuple[int, ...]


class Left(NamedTuple):
    """A package whose old cap was not set, and why."""

    key: str
    uw: int
    why: str


class Restored(NamedTuple):
    """What became of the caps that were written down.

    `done` have their old cap, `failed` do not, and stay written down; `foreign` were changed by
    somebody else and were left alone. `void`: the node was restarted since.
    """

    done: tuple[str, ...] = ()
    failed: tuple[Left, ...] = ()
    foreign: tuple[Left, ...] = ()
    void: bool = False


def is_same(one_uw: int, other_uw: int) -> bool:
    """Whether two caps are the same whole watts."""
    return abs(one_uw - other_uw) < SAME_UW


def encode(saved: Saved) -> bytes:
    """As JSON, with a newline."""
    content = {"v": VERSION, **saved._asdict(), "old": [one._asdict() for one in saved.old]}
    return json.dumps(content).encode() + b"\n"


def decode(text: bytes) -> Saved:
    """Raises ValueError for what is no such record of this version."""
    try:
        content = json.loads(text)
        if content["v"] != VERSION:
            raise ValueError(f"version {content['v']}")
        return Saved(
            **{name: str(content[name]) for name in _TEXTS},
            pid=int(content["pid"]),
            start=int(content["start"]),
            old=tuple(
                OldCap(str(one["way"]), str(one["key"]), int(one["uw"])) for one in content["old"]
            ),
            planned_uw=tuple(map(int, content["planned_uw"])),
        )
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"no record of power caps ({error})") from error


_TEXTS = ("host", "boot_id", "namespace", "run", "record", "sysfs")


def encode_caps(caps: Sequence[Cap]) -> list[dict[str, Any]]:
    """For the answer of the child."""
    return [{**cap._asdict(), "devices": [one._asdict() for one in cap.devices]} for cap in caps]


def decode_caps(content: Sequence[Mapping[str, Any]]) -> tuple[Cap, ...]:
    """What `encode_caps` made. Raises KeyError or TypeError for something else."""
    return tuple(
        Cap(**{**cap, "devices": tuple(Sharing(**one) for one in cap["devices"])})
        for cap in content
    )


def encode_restored(restored: Restored) -> dict[str, Any]:
    """For the answer of the child, and the file in the run directory."""
    return {
        "v": VERSION,
        "done": list(restored.done),
        "failed": [one._asdict() for one in restored.failed],
        "foreign": [one._asdict() for one in restored.foreign],
        "void": restored.void,
    }


def decode_restored(content: Mapping[str, Any]) -> Restored:
    """What `encode_restored` made. Raises KeyError or TypeError for something else."""
    return Restored(
        tuple(content["done"]),
        tuple(Left(**one) for one in content["failed"]),
        tuple(Left(**one) for one in content["foreign"]),
        bool(content["void"]),
    )
