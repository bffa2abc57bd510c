"""One file read by several processes: the rows, texts, problems and errors of one process."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.errors import InputError
from profharness.node import cores
from profharness.node.cores import processes_for, reading_by
from profharness.readers.kineto import reader, sharing
from profharness.readers.kineto.packed import PackedRows
from profharness.readers.kineto.sharing import Task, read_stretch
from profharness.trace.wanted import Wanted
from tests.generated import generate
from tests.readers.kineto.kineto_files import document, event, write
from tests.readers.kineto.test_fixtures import KINETO, facts
from tests.readers.kineto.test_reader import ODD, decoded, many

BASE = {"baseTimeNanoseconds": 1_700_000_000_000_000_000, "roctracer_version": 4.1}


class Near:
    """A helper in this process."""

    def __init__(self, task: Task, every: int) -> None:
        self.task = task
        self.asked: deque[tuple[int, int]] = deque()
        self.every = every  # it answers at once, or only at every so many questions
        self.questions = 0

    def ask(self, start: int, stop: int) -> None:
        self.asked.append((start, stop))

    def answer(self, *, waits: bool) -> PackedRows | None:
        self.questions += 1
        if not waits and self.questions % self.every:
            raise BlockingIOError
        return read_stretch(self.task, *self.asked.popleft())

    def close(self) -> None:
        self.asked.clear()


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[PackedRows]:
    """The stretches that were taken from helpers."""
    found: list[PackedRows] = []
    whole = sharing.add_packed
    monkeypatch.setattr(
        sharing, "add_packed", lambda rows, packed: (found.append(packed), whole(rows, packed))
    )
    return found


def said(path: Path, block: int, wanted: Wanted) -> Any:
    """All that a reading gives: its records and texts in their order, or its error."""
    try:
        trace = reader.read_blocks(path, block_bytes=block, wanted=wanted)
    except InputError as error:
        return error.message, error.hint
    return decoded(trace), trace.strings.texts


def said_by_several(
    path: Path, block: int, wanted: Wanted, *, helpers: int, stretches: int = 64, every: int = 1
) -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sharing, "processes_for", lambda _: helpers + 1)
        patched.setattr(sharing, "_process_for", lambda task: Near(task, every))
        patched.setattr(sharing, "_STRETCHES", stretches)
        return said(path, block, wanted)


shapes = st.tuples(st.integers(300, 9000), st.integers(1, 3), st.integers(1, 80), st.integers(1, 9))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 240), st.sampled_from(ODD)), max_size=4),
    shapes,
    st.sampled_from(Wanted),
    st.sampled_from([None, 1]),
)
def test_cut_anywhere_a_file_says_the_same(tmp_path_factory, odd, shape, wanted, indent) -> None:
    events = many(40)
    for place, one in odd:
        events.insert(place, one)
    path = tmp_path_factory.mktemp("cut") / "t.json"
    write(path, document(events, **BASE), indent=indent)
    block, helpers, stretches, every = shape
    found = said_by_several(path, block, wanted, helpers=helpers, stretches=stretches, every=every)
    assert found == said(path, block, wanted)


HURT: list[Callable[[bytes, int], bytes]] = [
    lambda text, at: text[:at],
    lambda text, at: text[:at] + b'"' + text[at:],
    lambda text, at: text[:at] + b"{" + text[at:],
    lambda text, at: text[:at] + b"]}" + text[at:],
    lambda text, at: text[:at] + b"\xff" + text[at + 1 :],
    lambda text, at: text[:at] + bytes(700) + text[at + 700 :],
    lambda text, at: text[:at] + text[at:].replace(b'"dur": ', b'"dur": NaN, "was": ', 3),
    lambda text, at: text[:at] + b"\x1f\x8b" + text[at:],
    lambda text, at: text[:at] + text[at:].replace(b"}, {", b"} {", 1),
]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.sampled_from(HURT), st.floats(0, 1), shapes, st.sampled_from(Wanted))
def test_damage_is_told_as_by_one_process(tmp_path_factory, hurt, place, shape, wanted) -> None:
    path = write(tmp_path_factory.mktemp("hurt") / "t.json", document(many(40), **BASE))
    text = path.read_bytes()
    path.write_bytes(hurt(text, int(place * len(text))))
    block, helpers, stretches, every = shape
    found = said_by_several(path, block, wanted, helpers=helpers, stretches=stretches, every=every)
    assert found == said(path, block, wanted)


def test_helpers_read_all_but_the_ends_of_a_sound_file(tmp_path: Path, joined: Any) -> None:
    path = write(tmp_path / "t.json", document(many(200), **BASE), indent=1)
    path.write_text(path.read_text().replace("}, {", "a name that looks like no border"))
    alone = said(path, 4096, Wanted.ALL)
    edges = sharing._edges(path, 4096)
    assert said_by_several(path, 4096, Wanted.ALL, helpers=2) == alone
    starts = [one.stretch.start for one in joined]
    assert starts == edges[edges.index(starts[0]) : -1]  # all from where the two have met
    assert len(starts) > 40


def test_ranges_with_counters_are_read_by_the_reader_alone(tmp_path: Path, joined: Any) -> None:
    ranges = [
        event("cuda_profiler_range", f"k{n}", n, 1, pid=0, tid=0, smsp__cycles=n) for n in range(90)
    ]
    path = write(tmp_path / "t.json", document([*many(20), *ranges], cupti_version=18))
    assert said_by_several(path, 1024, Wanted.ALL, helpers=1) == said(path, 1024, Wanted.ALL)
    assert all(not one.tables[0].columns or one.stretch.events for one in joined)


@pytest.mark.parametrize("fact", facts())
def test_recorded_files_say_the_same(tmp_path: Path, fact: dict[str, Any], joined: Any) -> None:
    source = KINETO / fact["file"]
    data = source.read_bytes()
    path = tmp_path / "t.json"
    path.write_bytes(gzip.decompress(data) if source.suffix == ".gz" else data)
    block = max(path.stat().st_size // 40, 4096)
    for wanted in (Wanted.SHOWN, Wanted.TIMES):
        found = said_by_several(path, block, wanted, helpers=2)
        assert found == said(path, block, wanted)
    assert joined or path.stat().st_size < 3 * block


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some megabytes."""
    return generate(tmp_path_factory.mktemp("large"), "t.json", 6_000).path


@pytest.fixture
def shared_by_two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cores, "LEAST_BYTES", 1 << 16)
    with reading_by(2):
        yield


@pytest.mark.parametrize("wanted", [Wanted.TIMES, Wanted.ALL])
def test_real_processes(large: Path, joined: Any, monkeypatch, wanted: Wanted) -> None:
    alone = said(large, 1 << 16, wanted)
    monkeypatch.setattr(cores, "LEAST_BYTES", 1 << 16)
    with reading_by(3), sharing.shared(large, wanted, 1 << 16) as open_sharing:
        pids = [helper._process.pid for helper in open_sharing._asked]
        assert len(pids) == 2
        assert all(map(lives, pids))
    assert not any(map(lives, pids))
    with reading_by(2):
        waiting_for_first(monkeypatch)
        assert said(large, 1 << 16, wanted) == alone
    assert joined


def waiting_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the reader begin when its helper has answered once, so that the two do share."""
    start = sharing.HelperProcess

    def started(task: Task) -> sharing.HelperProcess:
        helper = start(task)
        ask = helper.ask

        def first(begin: int, end: int) -> None:
            helper.ask = ask
            ask(begin, end)
            assert sharing.wait([helper._process.answers], 60)

        helper.ask = first
        return helper

    monkeypatch.setattr(sharing, "_process_for", started)


def test_a_helper_that_is_killed_changes_no_answer(
    large: Path, shared_by_two: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = sharing.HelperProcess

    def killed(task: Task) -> sharing.HelperProcess:
        helper = start(task)
        os.kill(helper._process.pid, signal.SIGKILL)
        helper._process._process.wait()
        return helper

    with reading_by(1):
        alone = said(large, 1 << 16, Wanted.ALL)
    monkeypatch.setattr(sharing, "_process_for", killed)
    assert said(large, 1 << 16, Wanted.ALL) == alone


def test_a_machine_without_room_for_a_process_reads_alone(
    large: Path, shared_by_two: None, joined: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(sharing, "HelperProcess", none)
    assert said(large, 1 << 16, Wanted.TIMES)[0]["tables"]["kernels"]
    assert not joined


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


READS_SLOWLY = """
import sys, time
from pathlib import Path
from profharness.node import cores
from profharness.readers.kineto import reader, sharing
from profharness.readers.kineto.events import KinetoRows
cores.LEAST_BYTES = 1
def add(rows, batch):
    time.sleep(600)
KinetoRows.add = add
start = sharing.HelperProcess
def started(task):
    helper = start(task)
    print(helper._process.pid, flush=True)
    return helper
sharing._process_for = started
with cores.reading_by(3):
    reader.read_blocks(Path(sys.argv[1]), block_bytes=1 << 16)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_helper_outlives_its_reader(large: Path, number: signal.Signals) -> None:
    """As a terminal does it: the signal goes to the whole process group."""
    with subprocess.Popen(
        [sys.executable, "-c", READS_SLOWLY, str(large)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        helpers = [int(process.stdout.readline()) for _ in range(2)]
        assert all(map(lives, helpers))
        os.killpg(process.pid, number)
        _, words = process.communicate(timeout=60)
    assert words.decode().count("Traceback") <= 1  # none of a helper
    deadline = time.monotonic() + 60
    while any(map(lives, helpers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_how_many_processes_read_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    path = tmp_path / "t.json"
    found = {}
    for mebibytes in (1, 100, 200, 10_000):
        with path.open("wb") as file:
            file.truncate(mebibytes << 20)  # takes no room
        for asked in (None, 1, 3, 100):
            with reading_by(asked):
                found[mebibytes, asked] = processes_for(path)
    assert [found[size, None] for size in (1, 100, 200, 10_000)] == [1, 1, 3, 8]
    assert [found[size, 1] for size in (1, 100, 200, 10_000)] == [1, 1, 1, 1]
    assert [found[size, 3] for size in (1, 100, 200, 10_000)] == [1, 3, 3, 3]
    assert [found[size, 100] for size in (1, 100, 200, 10_000)] == [1, 12, 25, 100]
    assert processes_for(path) == 1  # nobody has asked for more


def test_a_gzipped_file_is_read_by_one(tmp_path: Path, shared_by_two: None, monkeypatch) -> None:
    path = write(tmp_path / "t.json.gz", document(many(900), **BASE))
    monkeypatch.setattr(cores, "LEAST_BYTES", 1)
    assert processes_for(path) == 2
    with sharing.shared(path, Wanted.ALL, 4096) as open_sharing:
        assert not open_sharing._asked
