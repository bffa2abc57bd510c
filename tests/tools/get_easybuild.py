"""Install EasyBuild: `python tests/tools/get_easybuild.py [FOLDER]`.

In an environment of its own, .tools/easybuild in the checkout unless FOLDER is given. It asks for a
modules tool; Debian's package environment-modules is linked to where EasyBuild looks. Without that,
or without a network, this says why and ends with 3; --where-possible says so and ends with 0.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENT = "easybuild==5.4.1"
DEFAULT = Path(__file__).resolve().parents[2] / ".tools" / "easybuild"
_MODULES = ("/usr/lib/x86_64-linux-gnu/modulecmd.tcl", "/usr/share/modules/libexec/modulecmd.tcl")


def variables(folder: Path) -> dict[str, str]:
    """What EasyBuild is started with, so that it touches nothing outside of the folder."""
    return {
        "EB_PYTHON": str(folder / "bin/python"),
        "MODULESHOME": str(folder / "modules"),
        "EASYBUILD_MODULES_TOOL": "EnvironmentModules",
        "EASYBUILD_MODULE_SYNTAX": "Tcl",
        "EASYBUILD_ALLOW_MODULES_TOOL_MISMATCH": "1",
        "EASYBUILD_PREFIX": str(folder / "prefix"),
    }


def fetch(folder: Path) -> str:
    """Why it cannot be had; empty where it is there."""
    tool = next((Path(path) for path in _MODULES if Path(path).exists()), None)
    if tool is None:
        return "there is no Environment Modules here (Debian's environment-modules)"
    venv.create(folder, with_pip=True)
    pip = (folder / "bin/python", "-m", "pip", "install", "--quiet", REQUIREMENT)
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return f"pip cannot install {REQUIREMENT}: {said[-1] if said else 'it says nothing'}"
    (folder / "modules/libexec").mkdir(parents=True, exist_ok=True)
    link = folder / "modules/libexec/modulecmd.tcl"
    link.unlink(missing_ok=True)
    link.symlink_to(tool)
    return ""


def main(words: list[str]) -> int:
    """Returns the exit status."""
    folder = Path(next((word for word in words if not word.startswith("-")), DEFAULT)).absolute()
    why = "" if (folder / "modules/libexec/modulecmd.tcl").exists() else fetch(folder)
    print(f"no EasyBuild: {why}" if why else f"{folder / 'bin/eb'}: {REQUIREMENT}")
    return 3 if why and "--where-possible" not in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
