"""Only ordinary files of a bounded size are read, and nothing waits for a pipe."""

from __future__ import annotations

import os
import socket
import tracemalloc
from pathlib import Path

import pytest

from profharness.errors import InputError
from profharness.rundir.foreign.small_files import open_regular, read_file


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    assert read_file(path, 5) == b"12345"
    with pytest.raises(InputError, match="f has 5 B, more than the 4 B"):
        read_file(path, 4)


def test_a_small_file_takes_no_memory_of_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    tracemalloc.start()
    try:
        assert read_file(path, 64 << 30) == b"12345"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_sparse_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(InputError, match=r"f has 1\.0 TiB"):
        read_file(path, 1 << 20)


def test_pipes_sockets_devices_and_folders_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(tmp_path)  # the path of a socket may have 107 bytes
        listening.bind("socket")
        with pytest.raises(OSError, match="No such device"):
            open_regular(tmp_path / "socket")
    for path, kind in (
        (tmp_path / "pipe", "a pipe"),
        (tmp_path, "a folder"),
        (Path("/dev/zero"), "a device"),
    ):
        with pytest.raises(InputError, match=f"is {kind}, not an ordinary file"):
            open_regular(path)


def test_a_missing_file_is_told_as_open_tells_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none", 1)


def test_of_a_text_holes_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_bytes(b'{"n": 1}\n')
    os.truncate(path, 64 << 20)
    with path.open("ab") as file:
        file.write(b'{"n": 2}\n')
    kept = read_file(path, 256 << 20, text=True)
    assert len(kept) < 5 << 20
    assert kept.strip(b"\0").startswith(b'{"n": 1}')
    assert kept.endswith(b'{"n": 2}\n')
    assert len(read_file(path, 256 << 20)) == (64 << 20) + 9
