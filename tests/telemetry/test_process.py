"""The sampler's timer, in processes of their own: it takes signals for itself."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.telemetry.running import ROOT, Sampler

HEAD = (
    "import json, os, signal, time\nfrom profharness.telemetry import process\n"
    "timer = process.prepare()\n"
)


def run(body: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + body],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    return json.loads(done.stdout)


def test_it_wakes_on_its_grid_and_swallows_what_was_missed() -> None:
    period = 20_000_000
    late = run(f"""
start = time.monotonic_ns() + {period}
timer.start(start, {period})
found = []
for tick in range(12):
    if tick == 6: time.sleep(5 * {period} / 1e9)
    timer.wait()
    found.append(time.monotonic_ns() - start)
print(json.dumps(found))
""")
    assert all(after >= tick * period for tick, after in enumerate(late))  # never early
    assert (
        late[6] >= 10 * period
    )  # the five that passed meanwhile are not made up for, and the grid stays
    assert all((after - late[6]) // period >= number - 1 for number, after in enumerate(late[6:]))


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ((signal.SIGTERM,), signal.SIGTERM),
        ((signal.SIGUSR1,), signal.SIGUSR1),
        ((signal.SIGTERM, signal.SIGUSR1), signal.SIGTERM),
        ((signal.SIGUSR1, signal.SIGHUP), signal.SIGHUP),
    ],
)
def test_a_signal_ends_a_wait_of_an_hour_and_is_taken_once(
    sent: tuple[int, ...], seen: int
) -> None:
    begin = time.monotonic()
    assert run(f"""
timer.start(time.monotonic_ns() + 3600 * 10**9)
for number in {[int(number) for number in sent]}: os.kill(os.getpid(), number)
timer.wait()
print(json.dumps([timer.taken(), timer.taken()]))
""") == [seen, 0]
    assert time.monotonic() - begin < 50


def test_a_signal_that_came_before_the_start_is_not_lost() -> None:
    assert run("""
os.kill(os.getpid(), signal.SIGTERM)
timer.start(time.monotonic_ns() + 3600 * 10**9)
timer.wait()
print(json.dumps([timer.taken()]))
""") == [signal.SIGTERM]


@pytest.mark.slow
def test_a_slow_sampler_flushes_and_ends_in_time(tmp_path: Path) -> None:
    with Sampler(tmp_path, hz=0.1) as sampler:
        sampler.ready()
        time.sleep(1.6)
        written = sampler.file("samples.bin").stat().st_size
        begin = time.monotonic()
        done = sampler.stop()
    assert time.monotonic() - begin < 8  # of the ten until its next sample
    assert (done["reason"], done["rows"], done["missed"]) == (
        "terminated",
        2,
        0,
    )  # the first tick, and the last row at the end
    assert sampler.file("samples.bin").stat().st_size > written
    header = int.from_bytes(sampler.file("samples.bin").read_bytes()[8:12], "little") + 16
    assert written > header  # the first row was there before the end
