"""Texts in a run's records that name a file or a folder of the run."""

from __future__ import annotations

from profharness.rundir.foreign.limits import NAME_LENGTH, PATH_LENGTH


def wrong_path(text: str) -> str:
    """Why a text is no path of a file in a run, in words; empty where it is one."""
    if not text or "\0" in text:
        return "it names no file"
    if text.startswith("/") or ".." in text.split("/"):
        return "it names a file outside of the run directory, which was not read"
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) > PATH_LENGTH or max(map(len, encoded.split(b"/"))) > NAME_LENGTH:
        return "its name is longer than any file's"
    return ""


def is_plain_name(text: str) -> bool:
    """Whether a text can be the name of one file or folder."""
    return "/" not in text and text not in (".", "..") and not wrong_path(text)
