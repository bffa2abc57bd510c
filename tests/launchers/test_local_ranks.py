from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from profharness.launchers import local_ranks
from profharness.measure.ranks import detect
from tests.processes import gone


def code(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", textwrap.dedent(text))


def test_every_rank_gets_the_variables_of_a_launcher(tmp_path: Path) -> None:
    status = local_ranks.start(
        code(f"""
        import json, os
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
        open({str(tmp_path)!r} + "/" + os.environ["RANK"], "w").write(json.dumps({{name: os.environ[name] for name in names}}))
    """),
        3,
    )
    assert status == 0
    found = [json.loads((tmp_path / str(rank)).read_text()) for rank in range(3)]
    assert (
        [facts["RANK"] for facts in found]
        == [facts["LOCAL_RANK"] for facts in found]
        == ["0", "1", "2"]
    )
    jobs = {detect(facts, parent=1).job for facts in found}
    assert len(jobs) == 1
    assert {detect(facts).world for facts in found} == {3}


def test_the_first_failure_is_the_status_and_the_others_do_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_ranks, "GRACE_S", 0.2)
    began = time.monotonic()
    status = local_ranks.start(
        code("import os, sys, time; sys.exit(5) if os.environ['RANK'] == '1' else time.sleep(60)"),
        2,
    )
    assert status == 5
    assert time.monotonic() - began < 30


def test_no_rank_outlives_a_kill_of_what_started_them(tmp_path: Path) -> None:
    rank = (
        "import os, pathlib, sys, time\n"
        "part = pathlib.Path(sys.argv[1], 'part' + os.environ['RANK'])\n"
        "part.write_text(str(os.getpid()))\n"
        "part.rename(part.with_name('pid' + os.environ['RANK']))\ntime.sleep(600)\n"
    )
    start = (
        "import sys\nfrom profharness.launchers import local_ranks\n"
        "local_ranks.start((sys.executable, '-c', *sys.argv[1:]), 2)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", start, rank, str(tmp_path)])
    try:
        until(lambda: len(list(tmp_path.glob("pid*"))) == 2)
        pids = [path.read_text() for path in tmp_path.glob("pid*")]
        starter.kill()
        starter.wait()
        until(lambda: all(gone(pid) for pid in pids))
    finally:
        starter.kill()
        starter.wait()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_all_ranks_share_one_run_directory(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "profharness",
        "run",
        "--ranks",
        "2",
        "--telemetry",
        "off",
        "--quiet",
        "--output",
        str(tmp_path / "run"),
        "--",
        *code("import os; os.write(1, ('rank %s\\n' % os.environ['RANK']).encode())"),
    ]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        check=False,
        env={
            name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")
        },
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0", "rank 1"]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["ranks"] == 2
    assert sorted(outcome["rank"] for outcome in manifest["rank_outcomes"]) == [0, 1]
