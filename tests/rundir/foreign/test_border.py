"""Whatever reading raises becomes one sentence with the file's name, and keeps its cause."""

from __future__ import annotations

import re
import struct
import zlib

import pytest

from profharness.errors import InputError, Unavailable, UsageError
from profharness.rundir.foreign.border import reading


@pytest.mark.parametrize(
    "raised",
    [
        MemoryError(),
        RecursionError("maximum recursion depth exceeded"),
        OverflowError("int too big"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        struct.error("unpack requires 4 bytes"),
        zlib.error("Error -3"),
        EOFError(),
        KeyError("name"),
        IndexError("list index out of range"),
        OSError(5, "Input/output error"),
        ValueError("x" * 10_000 + "\nsecond line"),
    ],
    ids=lambda raised: type(raised).__name__,
)
def test_anything_is_told_in_one_line(raised: Exception) -> None:
    with (
        pytest.raises(InputError, match=re.escape("f.bin: cannot be read (")) as caught,
        reading("f.bin"),
    ):
        raise raised
    assert caught.value.__cause__ is raised
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400


def test_sentences_of_ours_pass_and_what_a_file_asks_for_is_the_files_fault() -> None:
    with pytest.raises(Unavailable), reading("f"):
        raise Unavailable("no library")
    with pytest.raises(InputError, match=r"^f: --capture"), reading("f"):
        raise UsageError("--capture: 'x' is not a capture window")


def test_an_interrupt_is_no_damage() -> None:
    with pytest.raises(KeyboardInterrupt), reading("f"):
        raise KeyboardInterrupt
