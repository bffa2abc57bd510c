"""Secrets in reports: what a page carries compressed is looked at unpacked, as what a reader sees;
compressed it might look like a key, and hide one.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import count
from pathlib import Path

from profharness.rundir.shown.packed import packed, unpacked
from profharness.secrets.patterns import clean_blocks
from profharness.secrets.replacing import replacing

START = b"<!DOCTYPE html>"
LARGEST = 1 << 24
"""Bytes of a page; a larger file is none of ours, and is looked at as text."""
_ELEMENT = re.compile(
    rb'<script type="(?:text/plain|application/json)" id="(?:plot-engine|plot-data|later-rows)">'
    rb"([^<]*)</script>"
)
_PACKED = re.compile(rb"eN[A-Za-z0-9+/]{6,}={0,2}")  # zlib at its best compression, in base64


def clean(path: Path, found: Counter[str]) -> bytes:
    """The page with the secret values replaced, also in what it carries compressed. `found` counts
    them by variable or kind.
    """
    whole = path.read_bytes()
    place = next(one for one in map(b"packed-%d-text-".__mod__, count()) if one not in whole)
    carried: list[bytes] = []

    def leave_out(element: re.Match[bytes]) -> bytes:
        return _PACKED.sub(keep, element.group())

    def keep(text: re.Match[bytes]) -> bytes:
        inner: Counter[str] = Counter()
        try:
            read = unpacked(text.group().decode()).encode()
        except ValueError:
            return text.group()  # looked at as it stands
        new = b"".join(clean_blocks((read,), inner))
        found.update(inner)
        carried.append(packed(new.decode()).encode() if inner else text.group())
        return place + b"%d." % (len(carried) - 1)

    page = b"".join(clean_blocks((_ELEMENT.sub(leave_out, whole),), found))
    for at, text in enumerate(carried):
        page = page.replace(place + b"%d." % at, text, 1)
    return page


def scrub(path: Path) -> None:
    """Replace the secret values in the page. Raises OSError where it cannot be written."""
    page = clean(path, Counter())
    with replacing(path) as out:
        out.write(page)
