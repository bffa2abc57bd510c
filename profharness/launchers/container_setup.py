"""What a container is given besides its image and devices: files of the host, variables, first
lines. From options, or from what is known of a site; `merged` puts both together. Pure, but for
looks at whether files are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

ACTIVATE = """\
if [ -n "${WITH_CONDA:-}" ]; then eval "$WITH_CONDA"
else
    for profharness_activate in /user-software/bin/activate /opt/venv/bin/activate; do
        if [ -r "$profharness_activate" ]; then . "$profharness_activate"; break; fi
    done
fi"""
"""For images that bring an environment of conda or venv, as LUMI's do: those up to ROCm 6.2 have a
variable with the line to evaluate, later ones an active environment, beside which a user's own is
bound as /user-software (LUMI-AI-Guide, "Extending containers").
"""
AUTO = "auto"
"""In place of first lines: those of `ACTIVATE`."""
_CACHES = ("MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR")
_OF_LAUNCHER = ("PALS_APINFO", "PALS_SPOOL_DIR")


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What containers get. `binds` are Apptainer's SOURCE[:INSIDE[:OPTIONS]]; `init` is shell text,
    or `auto`; `caches` a folder of the node for what MIOpen compiles. `verb` run goes through the
    image's own start script.
    """

    binds: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    init: str = ""
    caches: str = ""
    verb: Literal["exec", "run"] = "exec"


def merged(asked: Setup, site: Setup) -> Setup:
    """What was asked for goes before what the site has; binds and variables add up. Binds of the
    site that are not on this node are left out: a login node has not all of them.
    """
    there = (bind for bind in site.binds if source(bind).exists())
    return Setup(
        binds=tuple(dict.fromkeys((*asked.binds, *there))),
        variables={**site.variables, **asked.variables},
        init=asked.init or site.init,
        caches=asked.caches or site.caches,
        verb=asked.verb if asked.verb != "exec" else site.verb,
    )


def source(bind: str) -> Path:
    """The file or folder of the host that is bound."""
    return Path(bind.partition(":")[0])


def of_launcher(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Folders that MPI inside of the container reads and a launcher outside made: Cray's PMI finds
    its ranks in the file that PALS_APINFO names.
    """
    named = (Path(variables[name]) for name in _OF_LAUNCHER if variables.get(name))
    folders = (path if path.is_dir() else path.parent for path in named if path.exists())
    return tuple(dict.fromkeys(map(str, folders)))


def set_inside(setup: Setup, outside: Mapping[str, str]) -> dict[str, str]:
    """The variables to set in the container: those that neither the host's environment has, which
    comes along, nor its part for containers. Caches are those of the node.
    """
    wanted = {**dict.fromkeys(_CACHES if setup.caches else (), setup.caches), **setup.variables}
    prefixes = ("", "APPTAINERENV_", "SINGULARITYENV_")
    return {
        name: value
        for name, value in wanted.items()
        if not any(f"{prefix}{name}" in outside for prefix in prefixes)
    }


def first_lines(setup: Setup) -> str:
    """Shell text that runs in the container before anything else."""
    return ACTIVATE if setup.init == AUTO else setup.init
