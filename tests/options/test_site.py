"""Sites: defaults under what was asked, found by name, by folder and by entry point."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from profharness import families
from profharness.errors import InputError, UsageError
from profharness.node.sites import Site, SiteDevices, cores_of, masks, names, read_site
from profharness.options.request import Request
from profharness.options.site import at_site

SELECT = Path(__file__).resolve().parents[2] / "wrappers/select_gpu"
# as LUMI's documentation has them, and the cores of --cpu-bind=map_cpu
LUMI_MASKS = "fe000000000000,fe00000000000000,fe0000,fe000000,fe,fe00,fe00000000,fe0000000000"
LUMI_FIRST = (49, 57, 17, 25, 1, 9, 33, 41)


def asked(**options: object) -> Request:
    fields: Any = {"command": ("true",), "launcher": "slurm", **options}
    return Request(**fields)


def site(text: str, folder: Path) -> Site:
    (folder / "x.toml").write_text(text)
    return read_site(str(folder / "x.toml"), {})


def test_the_map_of_lumi_is_the_documented_one() -> None:
    devices = read_site("lumi", {}).devices
    assert masks(devices) == tuple(f"0x{mask}" for mask in LUMI_MASKS.split(","))
    cores = [cores_of(text) for text in devices.cores]
    assert tuple(each[0] for each in cores) == LUMI_FIRST
    every = [core for each in cores for core in each]
    assert len(every) == len(set(every)) == 56
    assert not set(every) & set(range(0, 64, 8))


def test_what_was_asked_wins_and_lists_are_joined() -> None:
    lumi = read_site("lumi", {})
    found = at_site(asked(partition="dev-g", sbatch_arg=("--qos=debug",)), lumi)
    assert (found.partition, found.time_limit) == ("dev-g", "30")
    assert found.sbatch_arg == ("--gpus-per-node=8", "--qos=debug")
    assert found.launcher_arg == ("--mpi=none",)
    assert found.container == ""


def test_ranks_of_whole_nodes_are_bound_unless_the_user_binds() -> None:
    lumi = read_site("lumi", {})
    bound = f"--cpu-bind=mask_cpu:{','.join(masks(lumi.devices))}"
    assert at_site(asked(ranks=16, nodes=2), lumi).launcher_arg == (bound, "--mpi=none")
    assert bound not in at_site(asked(ranks=4), lumi).launcher_arg
    own = at_site(asked(ranks=8, launcher_arg=("--cpu-bind=none",)), lumi).launcher_arg
    assert own == ("--mpi=none", "--cpu-bind=none")


def test_an_image_has_a_name() -> None:
    lumi = read_site("lumi", {})
    found = at_site(asked(container="multitorch", container_arg=("--cleanenv",)), lumi)
    assert found.container.endswith("lumi-multitorch-latest.sif")
    assert found.container_gpu == "none"
    assert found.container_arg[0].startswith("--bind=/pfs,/scratch,")
    assert found.container_arg[1:] == ("--cleanenv",)
    assert at_site(asked(container="mine.sif"), lumi).container == "mine.sif"


def test_without_a_job_only_images_count() -> None:
    found = at_site(asked(launcher="local", container="multitorch"), read_site("lumi", {}))
    assert (found.partition, found.sbatch_arg) == ("", ())
    assert found.container_gpu == "none"


def test_they_are_found_in_folders_and_by_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the user's wins."""

    class Theirs:
        path = tmp_path / "theirs.toml"

    Theirs.path.write_text('name = "theirs"')
    for folder in ("config/profharness/sites", "mine"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "lumi.toml").write_text(f'name = "{folder}"')
    monkeypatch.setattr(families, "foreign", lambda *_: (("theirs", Theirs),))
    where = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert read_site("theirs", where).name == "theirs"
    assert read_site("lumi", where).name == "config/profharness/sites"
    both = {**where, "PROFHARNESS_SITES": f"/nowhere:{tmp_path / 'mine'}"}
    assert read_site("lumi", both).name == "mine"
    assert names(both) == ("lumi", "theirs")
    with pytest.raises(UsageError, match="no site 'moon' is known"):
        read_site("moon", both)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("account", r'"a\n#SBATCH --nodes=9"'),
        ("partition", r'"a b"'),
        ("time_limit", r'"10\r"'),
        ("module", r'["a; rm -r x"]'),
        ("sbatch_arg", r'["--qos=a\n--nodes=9"]'),
        ("sbatch_arg", r'["--signal=9"]'),
        ("job_line", r'["a\nb"]'),
    ],
)
def test_no_value_of_a_site_adds_a_line(tmp_path: Path, key: str, value: str) -> None:
    found = site(f'name = "x"\n[settings]\n{key} = {value}\n', tmp_path)
    with pytest.raises(UsageError, match=f"--{key.replace('_', '-')}"):
        at_site(asked(), found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name = 1",
        'name = "x"\nmore = 1',
        'name = "x"\n[settings]\noutput = "x"',
        'name = "x"\n[devices]\ncores = ["1; rm x"]',
        'name = "x"\n[devices]\ncores = ["1\\n2"]',
        'name = "x"\n[devices]\nmask = "A=1; rm x"',
        "\xff",
    ],
)
def test_a_file_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"x\.toml: not a site file"):
        site(text, tmp_path)


def selected(*, given: str | None = None, cores: str = "", local: int = 1, times: int = 1) -> str:
    """The mask that a command sees, and the CPUs that it may use."""
    clean = {name: value for name, value in os.environ.items() if "VISIBLE" not in name}
    masked = {} if given is None else {"ROCR_VISIBLE_DEVICES": given}
    done = subprocess.run(
        (
            *([str(SELECT)] * times),
            *("sh", "-c", 'echo "$ROCR_VISIBLE_DEVICES"; grep s_allowed_list /proc/self/status'),
        ),
        env={**clean, **masked, "SLURM_LOCALID": str(local), "PROFHARNESS_CORES": cores},
        capture_output=True,
        text=True,
        check=True,
    )
    return " ".join(done.stdout.split()).replace("Cpus_allowed_list: ", "")


@pytest.mark.parametrize(
    ("given", "local", "device"), [(None, 1, "1"), ("4,6", 1, "6"), ("4,6", 2, "4"), ("3", 1, "3")]
)
@pytest.mark.parametrize("times", [1, 2])
def test_each_rank_gets_its_device_once(
    given: str | None, local: int, device: str, times: int
) -> None:
    assert selected(given=given, local=local, times=times).split()[0] == device


def test_each_rank_gets_the_cores_next_to_its_device_unless_it_is_bound_or_counts_otherwise() -> (
    None
):
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("needs two CPUs")
    first, last = allowed[0], allowed[-1]
    cores = f"{first} {last}"
    assert selected(cores=cores, local=0).split()[1] == str(first)
    assert selected(cores=cores, local=1, times=2).split()[1] == str(last)
    assert selected(cores=cores, given="0,1", local=1).split()[1] == str(last)
    free = selected(local=1).split()[1]
    # the one device of a job that counts its own from 0, and two of a node with more
    assert selected(cores=cores, given="0", local=1).split()[1] == free
    assert selected(cores=f"{cores} {first}", given="0,1", local=1).split()[1] == free
    os.sched_setaffinity(0, {last})
    try:
        assert selected(cores=f"{first} {first}-{last}").split()[1] == str(last)
    finally:
        os.sched_setaffinity(0, set(allowed))


def test_masks_of_lists() -> None:
    assert cores_of("1-3,8") == (1, 2, 3, 8)
    assert masks(SiteDevices(cores=("1-3,8",))) == ("0x10e",)
