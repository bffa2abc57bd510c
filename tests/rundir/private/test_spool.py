from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from profharness import readers
from profharness.errors import InputError, UsageError
from profharness.rundir.private import folders, spool
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import program

KINETO = (
    '{"schemaVersion": 1, "baseTimeNanoseconds": 0, "deviceProperties": [], "traceEvents": ['
    '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0, '
    '"args": {"device": 0, "stream": 7}}]}'
)


def profharness(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "profharness", *words], input=stdin, capture_output=True, check=False
    )


def piped(content: bytes, ask: Callable[[str], None]) -> None:
    """Ask with the name of a pipe through which this comes, as `<(command)` has it."""
    reading, writing = os.pipe()

    def feed() -> None:
        with os.fdopen(writing, "wb") as out:
            out.write(content)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        ask(f"/dev/fd/{reading}")
    finally:
        thread.join(30)
        os.close(reading)


def test_what_comes_through_a_pipe_is_read_again_and_again(tmp_path: Path) -> None:
    def ask(name: str) -> None:
        with ExitStack() as stack:
            one = spool.Spool(stack)
            path = one.file(Path(name))
            assert one.file(Path(name)) is path
            assert [path.read_bytes() for _ in "ab"] == [b"x" * 100_000] * 2
            assert (str(path), path.is_file()) == (name, True)
            again = pickle.loads(pickle.dumps(path))
            assert (str(again), again.read_bytes()) == (name, path.read_bytes())
            assert os.fspath(path.with_name("beside")) == str(Path(name).with_name("beside"))
            kept = path.kept
        assert not Path(kept).exists()

    piped(b"x" * 100_000, ask)


def test_a_fifo_in_a_folder_keeps_its_name(tmp_path: Path) -> None:
    fifo = tmp_path / "trace.json"
    os.mkfifo(fifo)
    thread = threading.Thread(target=fifo.write_text, args=(KINETO,))
    thread.start()
    with ExitStack() as stack:
        path = spool.Spool(stack).file(fifo)
        assert (path.read_text(), str(path)) == (KINETO, str(fifo))
    thread.join(30)


@pytest.mark.parametrize("kind", ["kineto", "rocpd"])
def test_metrics_of_a_pipe_are_those_of_its_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "trace"
    if kind == "kineto":
        path.write_text(KINETO)
    else:
        write_rocpd(path, program(1))
    of_file = profharness("metrics", str(path)).stdout.replace(os.fsencode(path), b"-")
    through = profharness("metrics", "-", stdin=path.read_bytes())
    assert (through.returncode, through.stderr) == (0, b"")
    assert through.stdout == of_file


def test_standard_input_without_a_name_is_read_as_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "here-document"
    path.write_text(KINETO)
    with path.open("rb") as file:
        path.unlink()  # as a shell does with a here-document that is longer than a pipe holds
        done = subprocess.run(
            [sys.executable, "-m", "profharness", "hotspots", "-"],
            stdin=file,
            capture_output=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"1 call" in done.stdout


def test_what_a_tool_wrote_beside_a_piped_file_is_named(shared: Path) -> None:
    path = shared / "fixtures/rocm/rocprofv3/csv/gfx950_bank_test_counter_collection.csv"

    def ask(name: str) -> None:
        with ExitStack() as stack:
            trace = readers.read(spool.Spool(stack).file(Path(name)))
        assert "agent_info.csv" in trace.problems[-1].message

    piped(path.read_bytes(), ask)
    assert not any("pipe" in one.message for one in readers.read(path).problems)


def test_devices_and_sockets_are_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, ExitStack() as stack:
        one.bind(str(tmp_path / "s"))
        asked = spool.Spool(stack)
        for path, what in ((tmp_path / "s", "a socket"), (Path("/dev/null"), "a character device")):
            with pytest.raises(InputError, match=f"is {what}, not a file"):
                asked.file(path)
        assert asked.file(tmp_path) == tmp_path
        assert asked.file(tmp_path / "absent") == tmp_path / "absent"


def test_what_is_too_much_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(name: str) -> None:
        with ExitStack() as stack, pytest.raises(InputError, match="come through /dev/fd"):
            spool.Spool(stack).file(Path(name))

    monkeypatch.setattr(spool, "LARGEST_BYTES", 10)
    piped(b"x" * 100, ask)
    monkeypatch.setattr(spool, "LARGEST_BYTES", 1000)
    monkeypatch.setattr(folders, "free_bytes", lambda _: 1000)

    def full(name: str) -> None:
        with ExitStack() as stack, pytest.raises(InputError, match="could not be kept: No space"):
            spool.Spool(stack).file(Path(name))

    piped(b"x" * 100, full)


def test_a_pipe_cannot_be_changed_in_place() -> None:
    with pytest.raises(UsageError, match="in place"):
        spool.refuse_pipes([spool.SpooledPath("-")])


def test_what_another_containers_process_keeps_is_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may share the folder and the host's name, and no process here has its number."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with folders.private_folder() as own:
        _, _, pid, start, place, *rest = own.name.split("-")
        counted = str(Path("/proc/self/ns/pid").stat().st_ino)
        assert place.endswith(f"n{counted}")
        dead = "-".join(("profharness-private", pid, str(int(start) + 1), place, *rest))
        elsewhere = f"{place.removesuffix(counted)}1"
        theirs = "-".join(("profharness-private", pid, str(int(start) + 1), elsewhere, *rest))
        for name in (dead, theirs):
            (tmp_path / name).mkdir()
        assert folders.sweep(tmp_path, "profharness-private") == (tmp_path / dead,)
        assert own.is_dir()
    assert [folder.name for folder in tmp_path.iterdir()] == [theirs]


def test_a_signal_removes_what_was_kept(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-m", "profharness", "metrics", "-"],
        stdin=subprocess.PIPE,
        env=environment,
    ) as reader:
        assert reader.stdin is not None
        reader.stdin.write(b"x" * 200_000)  # more than a pipe holds: it is being read
        reader.stdin.flush()
        assert list(tmp_path.glob("profharness-private-*/*"))
        reader.send_signal(signal.SIGTERM)
        assert reader.wait(30) == -signal.SIGTERM
        reader.stdin.close()
    assert not list(tmp_path.iterdir())
