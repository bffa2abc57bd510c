"""Sites: what a cluster's jobs and images are called there, as data.

A site is a TOML file: one of ours in this folder, one in `$PROFHARNESS_SITES` (folders with `:`
between) or `~/.config/profharness/sites`, the `path` of an entry point `profharness.sites`, or any
file that is named.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Protocol, cast

import msgspec

from profharness import families
from profharness.errors import InputError, UsageError

_MOST_BYTES = 1 << 20
_CORES = r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


class _OfPackage(Protocol):
    """What an entry point of a site is: it says where the file lies."""

    path: str


class SiteSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults of a job there, by the names of the options; those of the user win."""

    account: str = ""
    partition: str = ""
    time_limit: str = ""
    gpus_per_task: int | None = None
    cpus_per_task: int | None = None
    module: tuple[str, ...] = ()
    sbatch_arg: tuple[str, ...] = ()
    launcher_arg: tuple[str, ...] = ()
    job_line: tuple[str, ...] = ()


class SiteImage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An image that `--container NAME` means there."""

    path: str
    init: str = ""
    binds: tuple[str, ...] = ()
    gpu: Literal["auto", "rocm", "nv", "none"] = "auto"


class SiteDevices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The devices of a whole node: the variable that hides devices, and the cores next to each
    (`49-55`), in order.
    """

    mask: str = "ROCR_VISIBLE_DEVICES"
    cores: tuple[Annotated[str, msgspec.Meta(pattern=_CORES)], ...] = ()


class Site(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is known of a site."""

    name: str
    settings: SiteSettings = SiteSettings()
    images: dict[str, SiteImage] = {}
    devices: SiteDevices = SiteDevices()


def read_site(named: str, environment: Mapping[str, str]) -> Site:
    """The site of that name, or in that file. Raises UsageError where there is none, InputError for
    a file that is none.
    """
    places = dict(_places(environment))
    path = Path(named) if named.endswith(".toml") else places.get(named)
    if path is None:
        raise UsageError(
            f"--site: no site {named!r} is known here",
            f"known are {', '.join(sorted(places))}; or name a .toml file",
        )
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError("it is too large")
        site = msgspec.convert(tomllib.loads(data.decode()), Site)
        if not _VARIABLE.fullmatch(site.devices.mask):
            raise ValueError(f"devices.mask: {site.devices.mask!r} is no variable")
    except OSError as error:
        raise UsageError(
            f"--site: {path} cannot be read ({error.strerror})", "name an existing site file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not a site file ({error})", "docs/how-to/slurm.md says what one holds"
        ) from error
    return site


def names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the sites that are known here."""
    return tuple(sorted(dict(_places(environment))))


def _places(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Sites by name; of the same name the last one counts."""
    yield from _in(Path(__file__).parent)
    for name, member in families.foreign("profharness.sites", ("path",)):
        yield name, Path(cast("_OfPackage", member).path)
    config = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    yield from _in(Path(config) / "profharness/sites")
    for folder in environment.get("PROFHARNESS_SITES", "").split(os.pathsep):
        if folder:
            yield from _in(Path(folder))


def _in(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.glob("*.toml")):
        yield path.stem, path


def cores_of(text: str) -> tuple[int, ...]:
    """The numbers of `1-3,8`."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def masks(devices: SiteDevices) -> tuple[str, ...]:
    """The cores next to each device as the masks of `srun --cpu-bind=mask_cpu`."""
    return tuple(f"0x{sum(1 << core for core in cores_of(text)):x}" for text in devices.cores)
