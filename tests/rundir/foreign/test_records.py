"""Manifests of strangers: too many records, numbers that no run has, names that lead elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from profharness.errors import InputError
from profharness.rundir.foreign.limits import RECORDS
from profharness.rundir.foreign.records import check_numbers
from profharness.rundir.manifest import Manifest, decode

BASE: dict[str, Any] = {
    "id": "r",
    "created": "2026-01-02T03:04:05Z",
    "profharness": "0",
    "kind": "command",
    "argv": ["profharness"],
}


def decoded(**fields: object) -> Manifest:
    return decode(json.dumps({**BASE, **fields}).encode(), "run/manifest.json")


def facts(**leaves: object) -> dict[str, object]:
    return {"leaves": {"place": "hook", "files": [], **leaves}}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"ranks": 2**63}, "ranks is 9223372036854775808"),
        ({"ranks": -1}, "ranks is -1"),
        ({"ranks": 10**40}, "ranks is a number of 133 bits"),
        ({"points": [{"id": "a", "pass_name": "p", "warmup_ns": 2**62}]}, "warmup_ns is"),
        ({"points": [{"id": "a", "pass_name": "p", "rate": 1e300}]}, "rate is 1e"),
        ({"scan": {"name": "s", "settings": {"deep": [[{"x": 2**64}]]}}}, "x is"),
        ({"passes": [{"name": "../../x"}]}, "'../../x' is no name of a pass"),
        ({"passes": [{"name": "p", "layers": ["/etc"]}]}, "no name of a layer"),
        ({"layers": [{"name": ".."}]}, "no name of a layer"),
        ({"layers": [{"name": "x", "facts": facts(beside="../a")}]}, "no name of a file"),
        ({"layers": [{"name": "x", "facts": facts(pid="(a+)+")}]}, "can take for ever"),
        ({"passes": [{"name": "p", "cut": "after=x"}]}, "not a capture window"),
        ({"passes": [{"name": "p", "cut": "steps=0:" + "9" * 5000}]}, "cannot be read"),
        ({"state": "sleeping"}, "Invalid enum value 'sleeping'"),
        ({"argv": 5}, "Expected `array`"),
    ],
)
def test_what_no_run_says_is_refused_in_one_sentence(fields: dict[str, object], why: str) -> None:
    with pytest.raises(InputError) as caught:
        decoded(**fields)
    assert caught.value.message.startswith("run/manifest.json: ")
    assert why in caught.value.message


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff" * 99, b'{"schema":' + b"[" * 200_000, b'{"id": "\xff"}', b"[]", b'{"schema":1}'],
)
def test_damage_is_told_with_the_file(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^run/manifest\.json: "):
        decode(data, "run/manifest.json")


def test_more_records_than_a_run_has_are_counted_and_not_made() -> None:
    point = b'{"id":"a","pass_name":"p"},'
    many = RECORDS["points"] * 2
    data = (
        json.dumps({**BASE, "points": [0]}).encode().replace(b"[0]", b"[" + point * many + b"{}]")
    )
    before = sys.getallocatedblocks()
    with pytest.raises(InputError, match="lists 40\u2009001 points, more than the"):
        decode(data, "run/manifest.json")
    assert sys.getallocatedblocks() - before < many


def test_what_runs_say_passes() -> None:
    manifest = decoded(
        ranks=100_000, passes=[{"name": "p~1", "start_boot_ns": 2**61, "cut": "all"}]
    )
    assert manifest.passes[0].start_boot_ns == 2**61


def test_true_is_no_number() -> None:
    check_numbers(msgspec.defstruct("R", [("rank", bool)])(rank=True), "f")  # type: ignore[call-arg]  # made here


def test_a_manifest_that_leads_out_of_the_run_is_not_read(tmp_path: Path) -> None:
    from profharness.rundir.paths import RunDir

    (tmp_path / "run").mkdir()
    (tmp_path / "m").write_text(json.dumps(BASE))
    (tmp_path / "run" / "manifest.json").symlink_to("../m")
    with pytest.raises(InputError, match="a link that leads out"):
        RunDir.open(tmp_path / "run").read_manifest()
