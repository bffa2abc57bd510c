"""The pictures of several files, each read by itself on its own clock, as those of one job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from profharness.analysis.pictures.flame_layout import SAMPLED, TREES, joined
from profharness.analysis.pictures.records import Flame, Pictures, Strip, Strips
from profharness.analysis.time.strips import ALL_PIECES, MOST_DEVICES

MOST_FRAMES = 750
"""Of one file's flame graph among several: what is shorter stands together, and the sums stay."""


@dataclass(frozen=True)
class FilePictures:
    """The pictures of one file, or of files that were read together: `label` is the rank that
    worked in it, else the file's name.
    """

    label: str
    pictures: Pictures


def pieces_of_one(files: int) -> int:
    """How many pieces the strips of one of several files may have, so that all fit on a page."""
    return ALL_PIECES // min(max(files, 1), MOST_DEVICES)


def of_files(files: Sequence[FilePictures], first: Sequence[str] = ()) -> Pictures:
    """The strips of devices below each other, each from the start of its own window, and the flame
    graphs with the times of all files summed. Where the devices are too many to be drawn, those of
    the files that are labelled as in `first` come first.
    """
    count = sum(len(file.pictures.strips.strips) for file in files)
    place = {label: at for at, label in enumerate(first)} if count > MOST_DEVICES else {}
    strips = [
        _beginning_at_zero(strip, file.label)
        for file in sorted(files, key=lambda file: place.get(file.label, len(place)))
        for strip in file.pictures.strips.strips
    ]
    left_out = sum(file.pictures.strips.left_out for file in files)
    return Pictures(
        strips=Strips(
            strips=tuple(strips[:MOST_DEVICES]),
            left_out=left_out + len(strips[MOST_DEVICES:]),
            own_clocks=True,
        ),
        flames=tuple(_flames([flame for file in files for flame in file.pictures.flames])),
    )


def _beginning_at_zero(strip: Strip, label: str) -> Strip:
    """The strip on the clock of its window, called by its device and file."""
    return msgspec.structs.replace(
        strip,
        device=f"{strip.device} of {label}",
        start_ns=0,
        end_ns=strip.end_ns - strip.start_ns,
    )


def _flames(flames: Sequence[Flame]) -> list[Flame]:
    made = (joined([flame for flame in flames if flame.by == kind]) for kind in (*TREES, SAMPLED))
    return [flame for flame in made if flame is not None]
