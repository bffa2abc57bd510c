"""Secrets of every kind in the environment and on the command line of a run: none stands in the
folder that it leaves.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests import started
from tests.secrets.planted.kinds import KINDS

SEED = 20261125


@pytest.mark.slow
def test_a_run_puts_no_planted_secret_into_its_folder(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    env, words, secrets = dict(os.environ), [], {}
    for number, kind in enumerate(KINDS):
        shown, hidden = kind.make(draw), kind.make(draw)
        env[f"P{number}_{kind.variable.replace('-', '_')}"] = hidden
        words += [f"--{kind.variable.lower().replace('_', '-')}", shown]
        secrets[f"{kind.name} on the command line"] = kind.secret(shown)
        secrets[f"{kind.name} in the environment"] = kind.secret(hidden)
    done = started.run("run", "-o", "run", "--", "true", *words, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert (tmp_path / "run" / "manifest.json") in files
    contents = b"\n".join(path.read_bytes() for path in files)
    assert [name for name, secret in secrets.items() if secret.encode() in contents] == []
    assert b"[removed by profharness]" in contents
