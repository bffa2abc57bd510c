"""What the tables of a Perfetto trace are made from, and the tables once they are made."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from profharness.readers.bytes.proto_scan import I64
from profharness.readers.perfetto.notes import Events
from profharness.readers.perfetto.sensed import Sensed
from profharness.readers.perfetto.slices import Slices, per_track
from profharness.readers.perfetto.tracks import Tracks
from profharness.trace.columns.build import per_text
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    Api,
    Copies,
    Counters,
    Device,
    Kernels,
    Marks,
    Named,
    Ops,
    Samples,
    Stream,
    Strings,
)


@dataclass(frozen=True, eq=False)
class Context:
    """What all tables are built from; `times` and `track` are per event."""

    events: Events
    slices: Slices
    tracks: Tracks
    strings: Strings
    times: I64
    track: I64

    def integers(self, rows: I64, *labels: str) -> I64:
        """The first of these annotations at these events."""
        codes = [code for label in labels if (code := self.strings.find(label)) != NULL]
        return self.events.notes.integers(codes, len(self.events))[rows]

    def texts(self, rows: I64, *labels: str) -> I64:
        """Codes of the text annotations of these rows: the first of `labels` that a row has, NULL
        for none.
        """
        codes = [code for label in labels if (code := self.strings.find(label)) != NULL]
        return self.events.notes.texts(codes, len(self.events))[rows]

    def number(self, rows: I64, pattern: re.Pattern[str] | None, *labels: str) -> I64:
        """A number from an annotation, as itself or in its text, else from the track's name where
        there is a pattern for it.
        """
        numbers = self.integers(rows, *labels)
        text = per_text(
            self.strings, self.texts(rows, *labels), lambda text: first_number(NUMBER, text)
        )
        numbers = np.where(numbers != NULL, numbers, text)
        if pattern is None:
            return numbers
        named = per_track(self.track[rows], partial(number_in_name, self.tracks, pattern))
        return np.where(numbers != NULL, numbers, named)

    def owner(self, rows: I64) -> dict[str, Any]:
        """Process and thread, of the annotation, else of the track."""
        pid = per_track(self.track[rows], self.tracks.pid)
        tid = self.integers(rows, "tid")
        return {
            "pid": pid,
            "tid": np.where(tid != NULL, tid, per_track(self.track[rows], self.tracks.tid)),
        }


@dataclass(frozen=True, eq=False)
class Tables:
    """What the slices and counters of one file give."""

    kernels: Kernels
    copies: Copies
    api: Api
    ops: Ops
    marks: Marks
    samples: Samples
    sensed: Sensed
    counters: Counters
    devices: tuple[Device, ...]
    streams: tuple[Stream, ...]
    names: tuple[Named, ...] = ()
    units: tuple[tuple[str, str], ...] = ()


NUMBER = re.compile(r"\d+")


def number_in_name(tracks: Tracks, pattern: re.Pattern[str], uuid: int) -> int:
    """The number that the pattern finds in a track's name, as `first_number` gives it."""
    return first_number(pattern, tracks[uuid].name)


def first_number(pattern: re.Pattern[str], text: str) -> int:
    """The first number that the pattern finds; NULL where it finds none, or one beyond any id."""
    match = pattern.search(text)
    number = int(match[match.lastindex or 0]) if match else NULL
    return number if number < 2**63 else NULL
