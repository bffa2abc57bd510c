"""py-spy's speedscope profile (`--format speedscope`): of each thread the stacks that were sampled,
each with the time that it stands for.

Samples of a thread that waited are left out of the file, and the others follow one another in it
without a gap. So the shares of lines are those of py-spy's other formats, while the times only
order the samples of one thread.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.py_spy.beside import VERSION, Beside
from profharness.readers.py_spy.reader import SPEEDSCOPE, trace_of
from profharness.readers.py_spy.stacks import Frame, Stacks
from profharness.rundir.blocks import Blocks
from profharness.trace.columns.table import NULL
from profharness.trace.model import Problem, Trace
from profharness.trace.wanted import Wanted

name = "speedscope"

_MOST_BYTES = 256 << 20  # decoded at once; an hour of 100 samples a second takes some 30 MiB
_PROFILE = re.compile(
    r"(?:Process (\d{1,9}) )?Thread (0x[0-9A-Fa-f]{1,16}|\d{1,15})(?: \"(.*)\")?\Z"
)
_SHORTEST_S, _LONGEST_S = 1e-9, 1e6  # of one sample
_LONGEST_THREAD_S = 9e9  # in ns it fits into 64 bits
_TID_BITS = (1 << 63) - 1


class _Frame(msgspec.Struct, gc=False):
    name: str = ""
    file: str | None = ""
    line: int | None = 0


class _Shared(msgspec.Struct, gc=False):
    frames: list[_Frame] = []


class _Profile(msgspec.Struct, gc=False):
    """The samples of a thread: frames by number, the outermost first, and seconds."""

    type: str = ""
    name: str = ""
    unit: str = ""
    samples: list[list[int]] = []
    weights: list[float] = []


class _File(msgspec.Struct, gc=False):
    exporter: str | None = ""
    shared: _Shared = msgspec.field(default_factory=_Shared)
    profiles: list[_Profile] = []


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """An object that names the schema of speedscope."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and SPEEDSCOPE in head


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:
    """The trace of one file: marks alone, one for each stretch of samples with a frame in it.
    Raises InputError for the profile of another program, and where nothing is usable.
    """
    file = _decoded(path)
    if not (file.exporter or "").startswith("py-spy"):
        by = f"of {file.exporter}" if file.exporter else "that does not say which program wrote it"
        raise InputError(
            f"{path} is a speedscope profile {by}, and only py-spy's are read",
            "name the file that the profiler itself wrote: a profile for speedscope holds stacks "
            "without the work of devices",
        )
    frames = [Frame(one.file or "", max(one.line or 0, 0), one.name) for one in file.shared.frames]
    stacks = Stacks()
    skipped = 0
    for number, profile in enumerate(file.profiles):
        if profile.type != "sampled" or profile.unit != "seconds":
            skipped += 1
        else:
            skipped += _play(stacks, frames, number, profile)
    stacks.close({}, is_whole=False)  # each thread ends with its own last sample
    weights = Counter(
        weight
        for profile in file.profiles
        for weight in profile.weights
        if _SHORTEST_S <= weight < _LONGEST_S
    ).most_common(1)
    beside = Beside(
        VERSION,
        rate=round(1 / weights[0][0]) if weights else None,
        samples=sum(len(profile.samples) for profile in file.profiles),
    )
    return trace_of(path, stacks, beside, list(_problems(path, skipped)), wanted)


def _decoded(path: Path) -> _File:
    blocks, text = Blocks(path, text=True), bytearray()
    for block in blocks:
        text += block
        if len(text) > _MOST_BYTES:
            raise InputError(
                f"{path} is a speedscope profile of more than {_MOST_BYTES >> 20} MiB",
                "record with `--format chrometrace`, which is read in parts",
            )
    try:
        return msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"), type=_File)
    except NOT_JSON as error:
        raise InputError(
            f"{path} is a speedscope profile that is cut or damaged: {blocks.damage or error}",
            "copy or record it again",
        ) from error


def _play(stacks: Stacks, frames: Sequence[Frame], number: int, profile: _Profile) -> int:
    """Play the samples of one thread; how many of them cannot be read."""
    match = _PROFILE.match(profile.name)
    pid = int(match[1]) if match and match[1] else NULL
    base = 16 if match and match[2].startswith("0x") else 10
    tid = int(match[2], base) & _TID_BITS if match else number
    thread = Frame("", 0, f"thread ({tid}): {match[3] or '' if match else profile.name}")
    before: list[Frame] = []
    at, skipped = 0.0, 0
    for sample, weight in zip(profile.samples, profile.weights, strict=False):
        lasts = _SHORTEST_S <= weight < _LONGEST_S and at < _LONGEST_THREAD_S
        if not lasts or not all(0 <= frame < len(frames) for frame in sample):
            skipped += 1
            continue
        stack = [thread, *(frames[frame] for frame in sample)]
        before = _change(stacks, (round(at * 1e9), pid, number), before, stack)
        at += weight
    _change(stacks, (round(at * 1e9), pid, number), before, [thread])
    return skipped + abs(len(profile.samples) - len(profile.weights))


def _change(
    stacks: Stacks, where: tuple[int, int, int], before: list[Frame], after: list[Frame]
) -> list[Frame]:
    """The events between two samples of a thread: frames that are gone, then new ones."""
    at_ns, pid, tid = where
    common = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        common += 1
    for frame in reversed(before[common:]):
        stacks.add(begins=False, at_ns=at_ns, pid=pid, tid=tid, frame=frame)
    for frame in after[common:]:
        stacks.add(begins=True, at_ns=at_ns, pid=pid, tid=tid, frame=frame)
    return after


def _problems(path: Path, skipped: int) -> Iterator[Problem]:
    if skipped:
        yield Problem("warning", str(path), skipped, "samples cannot be read and were left out")
    yield Problem(
        "info",
        str(path),
        1,
        "a speedscope profile of py-spy says how long stacks lasted, and not when: times only "
        "order the samples of each thread",
    )
