"""Old caps set again package by package, and what the process that sets caps refuses."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from profharness.telemetry.caps import store
from profharness.telemetry.caps.records import (
    Cap,
    Left,
    OldCap,
    Restored,
    Saved,
    decode,
    decode_restored,
    encode,
    encode_restored,
)
from profharness.telemetry.caps.restoring import restore
from profharness.telemetry.caps.starting import command
from tests.measure.caps.emulated_caps import KEY, Node

W = 1_000_000


class Devices:
    """Stands for a way: caps by key; devices of `stuck` refuse."""

    name = "hwmon"

    def __init__(self, caps: dict[str, int], stuck: tuple[str, ...] = ()) -> None:
        self.now = caps
        self.stuck = stuck

    def caps(self) -> tuple[Cap, ...]:
        return ()

    def read(self, key: str) -> int:
        return self.now[key]

    def write(self, key: str, cap_uw: int) -> None:
        if key in self.stuck:
            raise PermissionError(f"{key} may not be set")
        self.now[key] = cap_uw


def record(*keys: str, **other: object) -> Saved:
    pid = os.getpid()
    one = Saved(
        host="here",
        boot_id=store.boot_id(),
        pid=pid,
        start=store.start_of(pid),
        namespace=store.namespace(),
        run="/runs/one",
        record="",
        sysfs="/nowhere",
        old=tuple(OldCap("hwmon", key, 500 * W) for key in keys),
        planned_uw=(200 * W, 300 * W),
    )
    return one._replace(**other)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "node.json")


def test_each_package_by_itself(file: str) -> None:
    """One was set, one has its cap already, one refuses, one is gone, one is somebody else's."""
    saved = record("set", "same", "stuck", "gone", "other")
    store.write(file, saved)
    devices = Devices(
        {"set": 200 * W, "same": 500 * W, "stuck": 300 * W, "other": 450 * W}, ("stuck",)
    )
    restored = restore(file, saved, lambda _: devices)
    assert restored == Restored(
        ("set", "same"),
        (Left("stuck", 500 * W, "stuck may not be set"), Left("gone", 500 * W, "'gone'")),
        (Left("other", 500 * W, "somebody else has set 450 W"),),
    )
    assert devices.now == {"set": 500 * W, "same": 500 * W, "stuck": 300 * W, "other": 450 * W}
    left = store.read(file)
    assert left is not None
    assert [one.key for one in left.old] == ["stuck", "gone"]
    devices.stuck = ()
    devices.now["gone"] = 300 * W
    assert restore(file, left, lambda _: devices).failed == ()
    assert store.read(file) is None


def test_a_cap_that_the_driver_rounds_is_the_same(file: str) -> None:
    saved = record("a")
    devices = Devices({"a": 200 * W + 400_000})
    assert restore(file, saved, lambda _: devices).done == ("a",)


def test_records_survive_the_disk() -> None:
    saved = record("a", "b")
    assert decode(encode(saved)) == saved
    restored = Restored(("a",), (Left("b", W, "why"),), (), void=True)
    assert decode_restored(encode_restored(restored)) == restored


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b'{"v": 2}', b'{"v": 1, "pid": 1}', b"\xff", b'{"v": 1, "old": 3}']
)
def test_a_damaged_record_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)


def ask(*words: str, env: dict[str, str]) -> dict[str, object]:
    done = subprocess.run(command(*words), capture_output=True, check=True, env=env)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def written(node: Node, **other: object) -> str:
    node.saved.mkdir(mode=0o755)
    saved = record(sysfs=str(node.tree.root), **other)
    store.write(str(node.file), saved._replace(old=(OldCap("hwmon", KEY, 560 * W),)))
    return str(node.file)


def test_the_process_that_was_named_sets_what_was_planned(tmp_path: Path) -> None:
    node = Node(tmp_path)
    file = written(node)
    assert ask("set", file, str(200 * W), env=node.env) == {}
    assert node.watts == 200
    assert ask("read", file, env=node.env) == {"caps": {KEY: 200 * W}}
    assert "not what was planned" in str(ask("set", file, str(250 * W), env=node.env)["why"])
    assert node.watts == 200


def test_nothing_is_set_after_the_old_caps_are_back(tmp_path: Path) -> None:
    node = Node(tmp_path)
    file = written(node)
    ask("set", file, str(200 * W), env=node.env)
    assert ask("restore", file, env=node.env)["done"] == [KEY]
    assert "set again already" in str(ask("set", file, str(200 * W), env=node.env)["why"])
    assert ask("restore", file, env=node.env)["done"] == []
    assert node.watts == 560


def test_no_other_process_sets_a_cap(tmp_path: Path) -> None:
    node = Node(tmp_path)
    file = written(node, pid=1, start=store.start_of(1))
    assert "another process" in str(ask("set", file, str(200 * W), env=node.env)["why"])
    assert "still there" in str(ask("restore", file, "--left", env=node.env)["why"])
    assert node.watts == 560


def test_many_that_restore_at_once_do_it_once(tmp_path: Path) -> None:
    node = Node(tmp_path)
    file = written(node)
    node.set(200)
    asked = [
        subprocess.Popen(command("restore", file), stdout=subprocess.PIPE, env=node.env)
        for _ in range(4)
    ]
    done = [json.loads(one.communicate()[0])["done"] for one in asked]
    assert sorted(done) == [[], [], [], [KEY]]
    assert node.watts == 560


def test_where_process_ids_are_counted_elsewhere_a_run_counts_as_alive(tmp_path: Path) -> None:
    ended = record("a", pid=2**22, start=1)
    assert store.is_ended(ended)
    assert not store.is_ended(ended._replace(namespace="pid:[1]"))
    assert store.is_ended(ended._replace(namespace="pid:[1]", boot_id="another"))
