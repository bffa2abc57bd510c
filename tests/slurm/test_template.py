"""Job scripts to copy: written by an installed wheel, and at work where python3 is 3.6."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from profharness.rundir.manifest import decode
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import exit_status, submitted

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = {path.name for path in (ROOT / "wrappers/slurm").iterdir()} | {"select_gpu"}
OLD = sorted(Path.home().glob(".pyenv/versions/3.6.*/bin/python3"))
APPTAINER = """\
#!/bin/sh
# a container that is this machine: apptainer exec [--bind FOLDERS] IMAGE COMMAND ...
[ "$1" = exec ] || exit 9
shift
[ "$1" != --bind ] || shift 2
[ "$1" = image.sif ] || exit 9
shift
exec "$@"
"""


PYTHON = """\
#!/bin/sh
[ "$1" != -c ] || exit 0
echo "$0 $*" >>{calls}
[ "$2" != venv ] || {{ mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; }}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel, whose other packages are those of the tests."""
    wheels = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    (built,) = wheels.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    subprocess.run(
        (sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")), check=True
    )
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    with zipfile.ZipFile(built) as wheel:
        wheel.extractall(site)
    others = [sysconfig.get_paths()["purelib"], *filter(_is_site, sys.path)]
    (site / "others.pth").write_text("\n".join(others))
    return folder / "venv/bin/python"


def _is_site(entry: str) -> bool:
    return Path(entry).name == "site-packages"


@pytest.fixture
def jobs(installed: Path, tmp_path: Path) -> Path:
    """The scripts as the wheel writes them."""
    assert template(installed, tmp_path).returncode == 0
    return tmp_path / "jobs"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Path]:
    """Programs of a host whose python3 is 3.6: a real one where there is one."""
    folder = tmp_path / "host"
    folder.mkdir()
    for name in ("sh", "env", "module", *(("python3",) if OLD else ())):
        found = OLD[-1] if name == "python3" else shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    if not OLD:
        (folder / "python3").write_text('#!/bin/sh\n[ "$1" = -c ] && exit 1\necho Python 3.6.15\n')
        (folder / "python3").chmod(0o755)
    return folder


def template(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (str(python), "-m", "profharness", "slurm-template", "-o", "jobs", *words),
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_wheel_writes_them_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    done = template(installed, tmp_path)
    assert done.returncode == 0, done.stderr
    assert {Path(line).name for line in done.stdout.split()} == TEMPLATES
    for name in TEMPLATES:
        path = tmp_path / "jobs" / name
        assert path.stat().st_mode & 0o111
        shell = "bash" if path.suffix == ".sbatch" else "sh"
        assert subprocess.run((shell, "-n", str(path)), check=False).returncode == 0
        assert str(ROOT) not in path.read_text()
    text = (tmp_path / "jobs/wrap.sh").read_text()
    assert f'"${{PROFHARNESS:={installed} -m profharness}}"' in text
    assert template(installed, tmp_path, "--site", "lumi", "--force").returncode == 0
    assert "PROFHARNESS_CORES=49-55 57-63 " in (tmp_path / "jobs/select_gpu").read_text()
    again = template(installed, tmp_path)
    assert (again.returncode, "exists" in again.stderr) == (2, True)
    assert template(installed, tmp_path, "--force").returncode == 0


def test_setting_up_refuses_a_python_that_is_too_old(jobs: Path, host: Path) -> None:
    done = subprocess.run(
        ("sh", str(jobs / "setup.sh"), str(host / "venv"), "profharness"),
        env={"PATH": str(host)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done
    assert "no Python 3.11 or newer here (Python 3.6." in done.stderr


def test_setting_up_takes_the_python_that_a_module_brings(jobs: Path, host: Path) -> None:
    """Stand-ins for that Python and for the environment's note what they are asked."""
    new, calls = host.parent / "new", host.parent / "calls"
    new.mkdir()
    (new / "python3.11").write_text(PYTHON.format(calls=calls))
    (new / "python3.11").chmod(0o755)
    module = f'module() {{ [ "$2" = cray-python ] && PATH={new}:/usr/bin:/bin; }}\n'
    place = host / "venv"
    done = subprocess.run(
        ("sh", "-c", module + (jobs / "setup.sh").read_text(), "sh", str(place), "a.whl"),
        env={"PATH": str(host)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{place}/bin/profharness\n"), done.stderr
    asked = calls.read_text().splitlines()
    assert asked == [
        f"{new}/python3.11 -m venv {place}",
        f"{place}/bin/python -m pip install --quiet a.whl",
    ]


@pytest.mark.slow
@pytest.mark.xdist_group("slurm")
def test_they_run_on_nodes_whose_python_is_3_6(
    cluster: Cluster, jobs: Path, host: Path, installed: Path
) -> None:
    """One task traced and one not; and the harness in a container, of which all tasks join."""
    folder = host.parent
    (host / "apptainer").write_text(APPTAINER)
    (host / "apptainer").chmod(0o755)
    places = f"{host}:{installed.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    (folder / "work.py").write_text(
        "import sys, time\nprint('ran', *sys.version_info[:2])\ntime.sleep(1)\n"
    )
    asks = ("-N2", "-n2", "--ntasks-per-node=1", "--gpus-per-node=0", "--time=5")
    outside = (*asks, "--export=ALL,PROFHARNESS_TOOL=wrap.sh,PROFHARNESS_WRAP_RANKS=1")
    work = ("py-spy", "--", "python3" if OLD else sys.executable, str(folder / "work.py"))
    sets = f"export PATH={places} IMAGE=image.sif INSIDE={installed.parent.parent}\n"
    for name in ("profile.sbatch", "container.sbatch"):
        text = (jobs / name).read_text()
        (jobs / name).write_text(text.replace("set -euo pipefail\n", "set -euo pipefail\n" + sets))
    first = submitted(cluster, folder, *outside, str(jobs / "profile.sbatch"), *work)
    inside = (*asks, "--export=ALL,OPTIONS=--telemetry off --quiet -o run")
    second = submitted(cluster, folder, *inside, str(jobs / "container.sbatch"), *work[2:])
    for job in (first, second):
        said = folder / f"slurm-{job}.out"
        assert exit_status(cluster, job) == 0, said.read_text()
        assert said.read_text().count("ran 3 6" if OLD else "ran 3") == 2
    traced = list((folder / f"traces/wrap-{first}/artifacts/py-spy").glob("*/*/*/py-spy-*.json"))
    assert {path.parts[-4:-2] for path in traced} == {("n2", "1")}
    run = decode((folder / "run/manifest.json").read_bytes(), "manifest")
    assert {one.host for one in run.rank_outcomes} == {"n1", "n2"}
