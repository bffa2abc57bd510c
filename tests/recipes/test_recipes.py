"""Each requirement of the package is met by what EasyBuild itself resolves, and named to Spack."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from profharness import __version__
from tests.tools import get_easybuild

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [Requirement(text) for text in PROJECT["dependencies"]]
(EASYCONFIG,) = (CHECKOUT / "packaging/easybuild").glob("*.eb")
SPACK = CHECKOUT / "packaging/spack/package.py"
OF_MODULES = {"arrow": "pyarrow", "protobuf-python": "protobuf"}
"""Modules of EasyBuild that have another name than what they bring."""


def _offered(path: Path) -> Iterator[tuple[str, str]]:
    """Packages and versions of an easyconfig: its own, and those that it installs beside."""
    text = path.read_text()
    own = (
        re.search(r"^name = '([^']+)'$", text, re.MULTILINE),
        re.search(r"^version = '([^']+)'", text, re.MULTILINE),
    )
    if own[0] and own[1]:
        name = canonicalize_name(own[0].group(1))
        yield OF_MODULES.get(name, name), own[1].group(1)
    extensions = text.partition("exts_list = [")[2]
    for name, version in re.findall(r"^    \('([\w.-]+)', '([\w.]+)'", extensions, re.MULTILINE):
        yield canonicalize_name(name), version


@pytest.mark.slow
def test_easybuild_resolves_all_requirements() -> None:
    """By a dry run with its robot, which finds each easyconfig and its toolchain."""
    eb = get_easybuild.DEFAULT / "bin/eb"
    if not (get_easybuild.DEFAULT / "modules/libexec/modulecmd.tcl").exists():
        pytest.skip("no EasyBuild here: make easybuild installs it")
    root = ("--allow-use-as-root-and-accept-consequences",) if os.geteuid() == 0 else ()
    done = subprocess.run(
        (eb, *root, "--dry-run", "--robot", EASYCONFIG),
        env={**os.environ, **get_easybuild.variables(get_easybuild.DEFAULT)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    resolved = [
        Path(path) for path in re.findall(r"^ \* \[.\] (\S+\.eb) ", done.stdout, re.MULTILINE)
    ]
    assert EASYCONFIG in resolved
    offered = {name: version for path in resolved for name, version in _offered(path)}
    assert offered["profharness"] == __version__
    python = SpecifierSet(PROJECT["requires-python"])
    for requirement in REQUIREMENTS:
        version = offered.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement} is in none of the resolved easyconfigs"
        assert version in requirement.specifier, f"{requirement}, but {version} is resolved"
    assert offered["python"] in python


def test_the_easyconfig_is_of_this_version() -> None:
    text = EASYCONFIG.read_text()
    assert EASYCONFIG.name == f"profharness-{__version__}-gfbf-2025b.eb"
    assert f"version = '{__version__}'" in text


def test_spack_is_told_the_same_requirements() -> None:
    """By name and least version; the recipe says itself that no Spack has seen it."""
    text = SPACK.read_text()
    assert text.startswith("# UNCHECKED")
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named: dict[str, list[str]] = {}
    for call in calls:
        if isinstance(call.func, ast.Name) and call.args:
            argument = call.args[0]
            assert isinstance(argument, ast.Constant)
            named.setdefault(call.func.id, []).append(argument.value)
    assert named["version"] == [__version__]
    told = dict(word.split("@") for word in named["depends_on"])
    assert told.pop("python") == f"{PROJECT['requires-python'].removeprefix('>=')}:"
    assert told.pop("py-hatchling").startswith("1.25:")
    assert told.keys() == {f"py-{requirement.name}" for requirement in REQUIREMENTS}
    for requirement in REQUIREMENTS:
        least = next(one.version for one in requirement.specifier if one.operator == ">=")
        assert told[f"py-{requirement.name}"].split(":")[0] == least
