from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from profharness.errors import UsageError
from profharness.rundir import harness_process
from profharness.rundir.claims import holder
from profharness.rundir.claims.holder import Claim, Claimant
from profharness.rundir.claims.record import Holder, Unreadable, read
from profharness.secrets import scrub

OWN = harness_process.identify()
DEAD = msgspec.structs.replace(OWN, start_ticks=OWN.start_ticks + 1)
ELSEWHERE = msgspec.structs.replace(OWN, host="node7", boot_id="another")


def claimant(
    harness: harness_process.HarnessRecord = OWN,
    *,
    take_over: bool = False,
    over: bool | None = None,
    job: str = "",
) -> Claimant:
    record = msgspec.structs.replace(holder.identify(job), harness=harness)
    return Claimant(record, lambda _: over, take_over=take_over)


def left_by(harness: harness_process.HarnessRecord, root: Path, job: str = "") -> Holder:
    """The file of a process that was killed while it measured."""
    one = claimant(harness, job=job)
    holder.claim(root, one)
    return one.record


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_one_process_holds_a_run_and_gives_it_back(tmp_path: Path) -> None:
    held = holder.claim(tmp_path, claimant())
    assert names(tmp_path) == ["holder.json"]
    with pytest.raises(UsageError, match=rf"not ended: process {os.getpid()} on .* measures in it"):
        holder.claim(tmp_path, claimant())
    with pytest.raises(UsageError, match="not ended"):  # one that is seen to live
        holder.claim(tmp_path, claimant(take_over=True))
    assert names(tmp_path) == ["holder.json"], "who was refused leaves nothing"
    held.release()
    assert names(tmp_path) == []
    holder.claim(tmp_path, claimant()).release()


def test_nothing_in_a_holders_file_is_taken_for_a_secret(tmp_path: Path) -> None:
    """Else `scrub` of a run that is measured would take its place from it."""
    held = holder.claim(tmp_path, claimant())
    before = (tmp_path / "holder.json").read_bytes()
    assert scrub.scrub(tmp_path / "holder.json") == {}
    assert (tmp_path / "holder.json").read_bytes() == before
    held.release()


def test_the_place_of_a_dead_process_is_taken(tmp_path: Path) -> None:
    left_by(DEAD, tmp_path)
    after = claimant()
    held = holder.claim(tmp_path, after)
    found = read(tmp_path / "holder.json")
    assert isinstance(found, Holder)
    assert found.nonce == after.record.nonce
    assert names(tmp_path) == ["holder.json"]
    held.release()
    assert names(tmp_path) == []


def test_of_a_process_elsewhere_only_the_user_or_the_scheduler_knows(tmp_path: Path) -> None:
    left_by(ELSEWHERE, tmp_path, job="slurm 42")
    with pytest.raises(UsageError, match=r"on node7 \(job slurm 42\) .*cannot be looked at") as no:
        holder.claim(tmp_path, claimant())
    assert "--take-over" in no.value.hint
    with pytest.raises(UsageError, match="measures in it"):
        holder.claim(tmp_path, claimant(over=False, take_over=True))
    holder.claim(tmp_path, claimant(over=True)).release()
    left_by(ELSEWHERE, tmp_path)
    holder.claim(tmp_path, claimant(take_over=True)).release()
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b"[" * 5000,
        b"x" * 100_000,
        msgspec.json.encode({"nonce": "../" * 10, "harness": msgspec.to_builtins(OWN)}),
        msgspec.json.encode(
            {"nonce": "0" * 32, "harness": {**msgspec.to_builtins(OWN), "pid": 2**70}}
        ),
        msgspec.json.encode(
            {"nonce": "0" * 32, "harness": {**msgspec.to_builtins(OWN), "pid": -1}}
        ),
    ],
    ids=[
        "empty",
        "no fields",
        "no text",
        "deep",
        "long",
        "a path",
        "a large pid",
        "a negative pid",
    ],
)
def test_a_file_that_is_no_holders_is_refused_and_only_the_user_passes_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    monkeypatch.setattr(holder, "_SETTLES_S", 0.1)
    (tmp_path / "holder.json").write_bytes(data)
    with pytest.raises(UsageError, match=r"holder\.json cannot be read") as refused:
        holder.claim(tmp_path, claimant())
    assert "--take-over" in refused.value.hint
    assert (tmp_path / "holder.json").read_bytes() == data
    holder.claim(tmp_path, claimant(take_over=True)).release()
    assert names(tmp_path) == []


def test_neither_a_link_is_followed_nor_a_pipe_waited_for(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(msgspec.json.encode(claimant(DEAD).record))
    root = tmp_path / "run"
    root.mkdir()
    (root / "holder.json").symlink_to(outside)
    with pytest.raises(UsageError, match="not a plain file"):
        holder.claim(root, claimant())
    holder.claim(root, claimant(take_over=True)).release()
    assert outside.exists()
    os.mkfifo(root / "holder.json")
    with pytest.raises(UsageError, match="not a plain file"):
        holder.claim(root, claimant())


def test_names_of_foreign_files_are_only_shown(tmp_path: Path) -> None:
    left_by(msgspec.structs.replace(ELSEWHERE, host="a\x1b[2J\u202eb" + "c" * 300), tmp_path)
    with pytest.raises(UsageError) as refused:
        holder.claim(tmp_path, claimant())
    assert refused.value.message.isprintable()
    assert "c" * 70 not in refused.value.message


def test_one_of_many_takes_a_dead_ones_place(tmp_path: Path) -> None:
    left_by(DEAD, tmp_path)

    def try_it(_: int) -> Claim | UsageError:
        try:
            return holder.claim(tmp_path, claimant())
        except UsageError as error:
            return error

    with ThreadPoolExecutor(16) as pool:
        ended = list(pool.map(try_it, range(16)))
    won = [one for one in ended if isinstance(one, Claim)]
    assert len(won) == 1
    assert all("measures in it" in str(one) for one in ended if one is not won[0])
    assert names(tmp_path) == ["holder.json"]


def test_a_killed_taker_is_succeeded(tmp_path: Path) -> None:
    first = left_by(DEAD, tmp_path)
    second, third = claimant(DEAD).record, claimant(DEAD).record
    for before, after in ((first, second), (second, third)):
        (tmp_path / f".holder.after-{before.nonce}").write_bytes(msgspec.json.encode(after))
    (tmp_path / f".holder.{third.nonce}").write_bytes(msgspec.json.encode(third))
    holder.claim(tmp_path, claimant())
    assert names(tmp_path) == ["holder.json"]


def test_files_of_killed_claimants_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    dead, alive = claimant(DEAD).record, claimant().record
    for one in (dead, alive):
        (tmp_path / f".holder.{one.nonce}").write_bytes(msgspec.json.encode(one))
    for name, age_s in (("old", 3600), ("new", 0)):  # of one that was killed as it began to write
        path = tmp_path / f".holder.{name}"
        path.touch()
        os.utime(path, (time.time() - age_s,) * 2)
    holder.claim(tmp_path, claimant())
    assert names(tmp_path) == sorted([f".holder.{alive.nonce}", ".holder.new", "holder.json"])


def test_a_living_taker_is_told_from_the_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holder, "_SETTLES_S", 0.05)
    dead = left_by(DEAD, tmp_path)
    (tmp_path / f".holder.after-{dead.nonce}").write_bytes(msgspec.json.encode(claimant().record))
    with pytest.raises(UsageError, match=rf"process {os.getpid()} .* is about to take over"):
        holder.claim(tmp_path, claimant())


def test_who_looked_long_ago_does_not_take_a_living_ones_place(tmp_path: Path) -> None:
    """It saw the holder dead, and went on only after another had taken the place."""
    dead, late = left_by(DEAD, tmp_path), claimant()
    own = tmp_path / f".holder.{late.record.nonce}"
    own.write_bytes(msgspec.json.encode(late.record))
    winner = claimant()
    holder.claim(tmp_path, winner)
    assert holder._succeed(tmp_path, dead, late, own) == (False, None)
    found = read(tmp_path / "holder.json")
    assert isinstance(found, Holder)
    assert found.nonce == winner.record.nonce
    assert names(tmp_path) == sorted(["holder.json", own.name])


def test_another_ones_file_is_not_given_back(tmp_path: Path) -> None:
    held = holder.claim(tmp_path, claimant(ELSEWHERE))
    holder.claim(tmp_path, claimant(take_over=True))
    held.release()
    assert names(tmp_path) == ["holder.json"]


def test_a_folder_that_vanished_is_given_back_too(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    held = holder.claim(root, claimant())
    (root / "holder.json").unlink()
    root.rmdir()
    held.release()


def test_a_file_system_without_links_serves_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    test_one_of_many_takes_a_dead_ones_place(tmp_path)


def test_an_empty_file_is_waited_for(tmp_path: Path) -> None:
    """As a writer on a file system without links leaves it for a moment."""
    (tmp_path / "holder.json").touch()
    record = msgspec.json.encode(claimant(DEAD).record)
    with ThreadPoolExecutor(1) as pool:
        claimed = pool.submit(holder.claim, tmp_path, claimant())
        (tmp_path / "holder.json").write_bytes(record)
        claimed.result(timeout=30)


def test_another_users_hidden_process_counts_as_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc with hidepid shows only our own processes."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone = msgspec.structs.replace(OWN, pid=ended.pid)
    assert harness_process.is_gone(gone) is True

    def hidden(_pid: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", hidden)
    assert harness_process.is_gone(gone) is None


def test_what_is_read_is_whole_or_named(tmp_path: Path) -> None:
    assert read(tmp_path / "holder.json") is None
    (tmp_path / "holder.json").touch()
    found = read(tmp_path / "holder.json")
    assert isinstance(found, Unreadable)
    assert found.empty
