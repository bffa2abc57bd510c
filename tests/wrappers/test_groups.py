"""The note of process groups that a recording takes: groups that were destroyed, several, and
none.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from .running import WRAPPERS


@pytest.fixture
def groups() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "groups_under_test", WRAPPERS / "hooks" / "profharness_hooks" / "process_groups.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def distributed(
    monkeypatch: pytest.MonkeyPatch, ranks: dict[str, dict[int, int]]
) -> SimpleNamespace:
    """What torch.distributed keeps of its groups: global rank to rank in the group."""
    world = SimpleNamespace(pg_group_ranks=ranks)

    def destroy_process_group(group: Any = None) -> str:
        world.pg_group_ranks = (
            {}
            if group is None
            else {name: own for name, own in world.pg_group_ranks.items() if name != group}
        )
        return "destroyed"

    inner = SimpleNamespace(_world=world, destroy_process_group=destroy_process_group)
    outer = SimpleNamespace(destroy_process_group=destroy_process_group)
    monkeypatch.setitem(sys.modules, "torch.distributed.distributed_c10d", inner)
    monkeypatch.setitem(sys.modules, "torch.distributed", outer)
    return outer


def test_groups_are_known_after_the_script_destroyed_them(
    groups: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = distributed(
        monkeypatch,
        {"world": {0: 0, 1: 1, 2: 2, 3: 3}, "pair": {3: 1, 1: 0}, "again": {1: 0, 3: 1}},
    )
    groups.watch()
    groups.watch()  # the next window of the same process
    assert outer.destroy_process_group("pair") == "destroyed"
    assert outer.destroy_process_group() == "destroyed"
    assert groups.known() == [[0, 1, 2, 3], [1, 3]]


def test_a_process_without_groups_has_none(
    groups: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed(monkeypatch, {})
    groups.watch()
    assert groups.known() == []


def test_a_torch_that_keeps_its_groups_otherwise_gives_none(
    groups: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.distributed.distributed_c10d", SimpleNamespace())
    groups.watch()
    assert groups.known() == []
    monkeypatch.delitem(sys.modules, "torch.distributed.distributed_c10d")
    groups.watch()
    assert groups.known() == []
