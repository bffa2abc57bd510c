"""Folders in which the process itself writes, as its own user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from profharness.launchers.command import Command
from profharness.layers.contract import Attachment
from profharness.measure.attached import recording
from profharness.measure.attached.plan import AttachPlan
from profharness.measure.attached.session import Order
from profharness.measure.attached.target import Target
from tests.measure.attached.test_plan import plan_for


@pytest.mark.parametrize(
    ("us", "owner", "given"),
    [(0, 1000, True), (0, 0, False), (1000, 1000, False)],
    ids=["root to a user", "root to root", "a user"],
)
def test_root_gives_the_folder_to_the_user_who_writes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, us: int, owner: int, *, given: bool
) -> None:
    calls: list[tuple[Path, int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: us)
    monkeypatch.setattr(os, "chown", lambda path, user, group: calls.append((path, user, group)))
    target = Target(42, ("python",), owner=owner, group=7)
    attachment = Attachment(Command(("tool",)), timed=True)
    plan = AttachPlan(plan_for().run_plan, target, 10**9, attachment)
    folder = tmp_path / "artifacts" / "rocprofv3"
    recording._make_folders(plan, Order(target, 10**9, attachment, folder, tmp_path / "log"))
    assert folder.is_dir()
    assert calls == ([(folder, owner, 7)] if given else [])


@pytest.mark.parametrize(
    ("us", "owner", "mode"),
    [(0, 1000, 0o711), (0, 0, 0o700), (1000, 1000, 0o700)],
    ids=["root to a user", "root to root", "a user"],
)
def test_the_user_who_writes_there_may_pass_through_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, us: int, owner: int, mode: int
) -> None:
    root = tmp_path / "run"
    root.mkdir(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: us)
    run_plan = plan_for().run_plan.at(root)
    attachment = Attachment(Command(("tool",)), timed=True)
    target = Target(42, ("python",), owner=owner, group=7)
    recording._let_in(AttachPlan(run_plan, target, 10**9, attachment))
    assert stat.S_IMODE(root.stat().st_mode) == mode
