"""The border between files that anyone may have written and the program: whatever reading one of
them raises becomes the one error of an unreadable file.

It lies around reading and nowhere else, so that a fault in computing or writing is never told as
a fault of a file (docs/formats.md#border). The original exception stays as the cause.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from profharness.errors import InputError, ProfharnessError

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UNPACK = "unpack it, and name the trace that is in it"
_WRAPPED = (  # where the bytes stand, they, what the file is, and what to do
    (0, b"PK\x03\x04", "a zip archive", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (257, b"ustar", "a tar archive", _UNPACK),
    (0, b"BZh", "compressed by bzip2", _UNPACK),
    (0, b"\xfd7zXZ\x00", "compressed by xz", _UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "compressed by zstd", _UNPACK),
    (0, b"\x1f\x8b", "compressed by gzip twice", _UNPACK),
    (0, b"version https://git-lfs", "Git LFS's pointer to a file", "fetch the file: git lfs pull"),
    (0, b"<!DOCTYPE html", "a web page", "download the file itself"),
)
_LONGEST = 200  # characters of a library's own words, which may quote the file
_HINT = (
    "the writer was interrupted, or the file was damaged on its way: copy or record it again; "
    "PROFHARNESS_TRACEBACK=1 shows where reading stopped"
)
# of the place for temporary files, not of the file that is read
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE})


@contextmanager
def reading(path: Path, kind: str = "") -> Iterator[None]:
    """Raises InputError, naming `path`, for whatever the block raises, and for what code called by
    a library raised where nobody could catch it (`sys.unraisablehook`).

    `kind` is the format that the file was taken for. Errors of ours pass as they are, and so do
    those of the installation and of a full disk, which no file is to blame for.
    """
    lost: list[BaseException] = []
    before = sys.unraisablehook

    def keep(one: Any) -> None:
        if isinstance(one.exc_value, Exception):
            lost.append(one.exc_value)
        else:  # an interrupt is not the file's fault
            before(one)

    sys.unraisablehook = keep
    try:
        yield
    except (ProfharnessError, ImportError):
        raise
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        raise unreadable(path, kind, error) from error
    except Exception as error:
        # whatever a foreign file makes a reader or a library raise is told as the file's
        raise unreadable(path, kind, error) from error
    finally:
        sys.unraisablehook = before
    if lost:
        raise unreadable(path, kind, lost[0]) from lost[0]


@contextmanager
def without_reports() -> Iterator[None]:
    """Passes over what code called by a library raises where nobody can catch it: for a block that
    sees from the library's own error that something is wrong, and tries another way.
    """
    before = sys.unraisablehook
    sys.unraisablehook = lambda one: None if isinstance(one.exc_value, Exception) else before(one)
    try:
        yield
    finally:
        sys.unraisablehook = before


def refuse_utf_16(path: Path, content: bytes) -> None:
    """Raises InputError where the content, or its beginning, is text in UTF-16."""
    if content.startswith(_UTF_16):
        raise InputError(
            f"{path} is text in UTF-16, as a Windows shell saves what a program prints",
            "let the program write the file itself, or convert it: "
            "iconv -f UTF-16 -t UTF-8 FILE > NEW",
        )


def refuse_wrapped(path: Path, head: bytes) -> None:
    """Raises InputError where a file of no format that is read is packed, or stands for another."""
    for at, magic, what, hint in _WRAPPED:
        if head[at:].startswith(magic):
            raise InputError(f"{path} is {what}, which is not read", hint)


def unreadable(path: Path, kind: str, error: BaseException) -> InputError:
    """The error of a file that cannot be read, in one sentence."""
    taken = f" as {kind}" if kind else ""
    return InputError(f"{path} cannot be read{taken}: {what_is_wrong(error)}", _HINT)


def what_is_wrong(error: BaseException) -> str:
    """What an exception says about the file that raised it, in one line."""
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, RecursionError):
        return "its values are nested too deeply"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    words = " ".join(str(error).split())
    words = words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
    if isinstance(error, OverflowError):
        return f"a number in it is too large ({words})"
    if isinstance(error, UnicodeError):
        return f"it holds bytes that are no text ({words})"
    return f"what it holds is not as expected ({type(error).__name__}: {words})"
