"""The audit of what is installed: `make audit` says of nothing that it is sound which it has not
looked at.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.tools import audit

STAND_IN = """\
import json, pathlib, sys
listed = next(word.partition("=")[2] for word in sys.argv if word.startswith("--requirement="))
packages = [line.split("==") for line in pathlib.Path(listed).read_text().split()]
assert "--strict" in sys.argv
state = {state!r}
if state == "unreached" or ("osv" not in " ".join(sys.argv) and state == "osv only"):
    sys.exit("ERROR:pip_audit._cli:pip: Dependency not found on PyPI and could not be audited")
if len(packages) > 1 and state == "stops":
    sys.exit("ERROR: colours: could not be audited")
vulns = [dict(id="PYSEC-1", fix_versions=["2.0"])] if state == "vulnerable" else []
print(json.dumps(dict(dependencies=[dict(name=n, version=v, vulns=vulns) for n, v in packages])))
sys.exit(bool(vulns))
"""
"""In place of pip-audit, with what it answers in each state of its database."""


def asked(folder: Path, state: str) -> audit.Outcome:
    program = folder / "pip_audit.py"
    program.write_text(STAND_IN.format(state=state))
    return audit.vulnerabilities([sys.executable, str(program)], ["colours==1.0", "shapes==2.1"])


@pytest.mark.parametrize(
    ("state", "code", "where_reached", "says"),
    [
        ("unreached", 3, 0, "nothing was audited"),
        ("clean", 0, 0, "0 known to pypi of 2 packages"),
        ("osv only", 0, 0, "0 known to osv of 2 packages"),
        ("vulnerable", 1, 1, "colours 1.0: PYSEC-1, mended in 2.0"),
        ("stops", 1, 1, "colours: could not be audited"),
    ],
)
def test_only_what_a_database_answered_about_is_called_sound(
    state: str,
    code: int,
    where_reached: int,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = asked(tmp_path, state)
    assert audit.verdict([outcome], where_reached=False) == code
    assert says in capsys.readouterr().out
    assert audit.verdict([outcome], where_reached=True) == where_reached


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-2-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("Apache-2.0 AND GPL-3.0-only", False),
        ("BSD License; GNU General Public License v3 (GPLv3)", False),
        ("GNU Affero General Public License v3", False),
        ("LGPL-2.1-or-later", False),
        ("Proprietary", False),
        ("UNKNOWN", False),
        ("", False),
        (
            "Apache-2.0 AND Apache-2.0 WITH LLVM-exception AND BSD-2-Clause AND BSL-1.0 AND MIT",
            True,
        ),
        ("Mozilla Public License 2.0 (MPL 2.0)", True),
    ],
)
def test_licences(licence: str, allowed: bool) -> None:
    assert audit.is_allowed(licence) is allowed


def test_a_package_of_another_licence_is_named(tmp_path: Path) -> None:
    program = tmp_path / "pip_licenses.py"
    program.write_text(
        "import json\n"
        "print(json.dumps([dict(Name='a', Version='1', License='MIT'), "
        "dict(Name='b', Version='2', License='GPLv3')]))"
    )
    outcome = audit.licences([sys.executable, str(program)])
    assert outcome.found
    assert outcome.lines == ("licences: 1 not allowed", "b 2: GPLv3")


def test_the_packages_are_those_of_this_environment() -> None:
    found = dict(one.split("==") for one in audit.installed())
    assert {"numpy", "typer", "pytest"} <= set(found)
    assert "profharness" not in found  # it is installed from this checkout
    assert not any("+" in version for version in found.values())
