"""Build a Slurm 24 of its own: `python -m tests.tools.get_slurm24 [FOLDER]`, as root.

Debian 13 has it, for another libc than that of the systems that we test on. So debootstrap puts a
small Debian 13 into FOLDER/root (.tools/slurm24 in the checkout unless given), and nothing of the
system changes. The programs of FOLDER/bin, such as `srun`, are Slurm's: each starts in that root,
where it sees this machine's folders as well, so that the tasks of its jobs are this machine's
Python and its files. What it mounts for that is seen by itself and its children alone.

Ends with 3 and says why where it cannot be had.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from tests.tools.get_apptainer import KEYS, AbsentError, mirror, run

DEFAULT = Path(__file__).resolve().parents[2] / ".tools" / "slurm24"
RELEASE = "trixie"
# with Python for containers, to which it lends its /usr
PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-plugins", "python3")
LIBRARIES = ("libexpat1", "libffi8", "libsqlite3-0", "libssl3t64")  # of this machine's Python
PROGRAMS = (
    *("munged", "slurmctld", "slurmd", "sbatch", "srun", "salloc"),
    *("squeue", "scancel", "scontrol", "sinfo"),
)
_LIMIT_S = 1200
_MARK = "etc/slurm-of-tests"
_CACHES = ("var/cache/apt", "var/lib/apt/lists")
_ENTER = f"""\
#!/bin/sh
# Starts the program whose name this has in the root beside it, with this machine's folders mounted.
# Jobs inherit PATH: within the root it is found again, and starts the program at once.
name=$(basename "$0")
if [ -e /{_MARK} ]; then
    for place in /usr/bin /usr/sbin; do
        if [ -x "$place/$name" ]; then exec "$place/$name" "$@"; fi
    done
fi
root=$(dirname "$(dirname "$(readlink -f "$0")")")/root
here=$PWD
export root name here
exec unshare --mount sh -c '
mount --bind "$root" "$root" || exit 125  # only a mount becomes a root, which containers want
# first the one that holds the root: later it would hold the other mounts, and double them
first=${{root#/}} first=/${{first%%/*}}
for folder in "$first" /*; do
    case $folder in /bin|/boot|/etc|/lib*|/lost+found|/sbin|/usr|/var) continue;; esac
    if [ -L "$folder" ] || [ ! -d "$folder" ]; then continue; fi
    if [ "$folder" = "$first" ] && [ -n "$begun" ]; then continue; fi
    mkdir -p "$root$folder" && mount --rbind "$folder" "$root$folder" || exit 125
    begun=yes
done
for path in /etc/hosts /usr/local; do mount --bind "$path" "$root$path" || exit 125; done
mkdir -p "$root/.old" && cd "$root" && pivot_root . .old || exit 125
exec sh -c "umount -l /.old && cd \\"\\$0\\" && exec \\"\\$name\\" \\"\\$@\\"" "$here" "$@"
' enter "$@"
"""


def programs(folder: Path) -> Path:
    """The folder for PATH."""
    return folder / "bin"


def lacks(folder: Path) -> str:
    """Why it cannot be used; empty where it can. `fetch` writes the programs last."""
    if not programs(folder).is_dir():
        return "no Slurm 24 here: make slurm24 builds it"
    if os.geteuid() != 0:
        return "Slurm 24 needs root: it starts in a root of its own"
    if Path(sys.base_prefix) == Path("/usr"):
        return "Slurm 24 has a /usr of its own, where jobs do not find the Python of this machine's"
    return ""


def fetch(folder: Path) -> None:
    """Raises AbsentError."""
    if os.geteuid() != 0:
        raise AbsentError("only root can build it")
    for name in ("debootstrap", "unshare", "apt-get"):
        if shutil.which(name) is None:
            raise AbsentError(f"there is no {name} here, and it is built with that")
    if not Path(KEYS).exists():
        raise AbsentError(f"there is no {KEYS} to check Debian's packages with")
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "root"
    root.mkdir(parents=True)
    wanted = f"--include={','.join((*PACKAGES, *LIBRARIES))}"
    # in a namespace of its own, so that what it mounts goes with it, however it ends
    words = ("unshare", "--mount", "debootstrap", "--variant=minbase", f"--keyring={KEYS}", wanted)
    run((*words, RELEASE, str(root), mirror(folder)), folder, _LIMIT_S)
    for name in _CACHES:
        shutil.rmtree(root / name, ignore_errors=True)
    for name in (_MARK, "etc/hosts"):
        (root / name).touch()
    _write_programs(folder)


def _write_programs(folder: Path) -> None:
    """Last of all, and at once, as a build that was interrupted must not be taken for a whole."""
    made = folder / "bin.new"
    made.mkdir()
    (made / "enter").write_text(_ENTER)
    (made / "enter").chmod(0o755)
    for name in (*PROGRAMS, "ldconfig"):
        (made / name).symlink_to("enter")
    run((str(made / "ldconfig"),), folder)  # this machine's /usr/local/lib
    (made / "ldconfig").unlink()
    made.rename(programs(folder))


def main(words: list[str]) -> int:
    """Returns the exit status."""
    folder = Path(next((word for word in words if not word.startswith("-")), DEFAULT)).absolute()
    begin = time.monotonic()
    try:
        if not programs(folder).is_dir():
            fetch(folder)
            print(f"built in {time.monotonic() - begin:.0f} s")
        version = run((str(programs(folder) / "slurmd"), "-V"), folder).strip()
    except AbsentError as why:
        print(f"no Slurm 24: {why}")
        return 3
    print(f"{folder}: {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
