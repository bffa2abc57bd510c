"""Secrets in the sampler's files: text is in their header only, behind which rows of numbers follow
(`profharness.rundir.telemetry_rows`).
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.telemetry_rows import FIXED_BYTES, MAGIC
from profharness.secrets.patterns import clean_blocks
from profharness.secrets.replacing import replacing

START = MAGIC
_LENGTH = slice(8, 12)
_LARGEST = 1 << 26
"""Bytes of a header: what is longer is no header of ours."""


def find(path: Path) -> Counter[str]:
    """How many secret values of each variable the header holds. Raises InputError where the file
    ends in its header.
    """
    return _cleaned(path)[1]


def clean(path: Path) -> None:
    """Replace them; the rows stay as they are. Raises InputError as `find` does."""
    header, _, rows = _cleaned(path)
    with path.open("rb") as old, replacing(path) as new:
        fixed = bytearray(old.read(FIXED_BYTES))
        fixed[_LENGTH] = len(header).to_bytes(4, "little")
        new.write(bytes(fixed) + header)
        old.seek(rows)
        shutil.copyfileobj(old, new)


def _cleaned(path: Path) -> tuple[bytes, Counter[str], int]:
    """The header without secrets, how many it held, and where the rows begin."""
    counts: Counter[str] = Counter()
    with path.open("rb") as file:
        fixed = file.read(FIXED_BYTES)
        length = int.from_bytes(fixed[_LENGTH], "little")
        header = file.read(min(length, _LARGEST + 1))
    if len(fixed) < FIXED_BYTES or len(header) < length or length > _LARGEST:
        raise InputError(
            f"{path} is damaged: it ends in its header",
            "copy or record it again; nothing was changed",
        )
    return b"".join(clean_blocks([header], counts)), counts, FIXED_BYTES + length
