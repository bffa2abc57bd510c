"""Golden command line and environment of every AMD tool on every ROCm release: one table, with no
combination left out.
"""

from __future__ import annotations

from itertools import product

import pytest

from profharness.launchers.command import Command
from profharness.layers import around, descriptions, named
from profharness.layers.hooks import with_hooks
from profharness.layers.options import TracerOptions
from tests.layers.places import RUN, TRAIN, node, planned, where, words

# in the order in which they came; 7.2.4 is newer than 7.12
RELEASES = (
    *("5.7", "6.1", "6.2", "6.3", "6.4", "7.0", "7.1", "7.2"),
    *("7.11", "7.12", "7.2.4", "7.13", "7.14", "10.0", "10.1", "10.2"),
)
APP = "python train.py --epochs 1"
V3_OUT = "-d /run/artifacts/rocprofv3 -o %hostname%/%nid%/rocprofv3_%pid% --"
V3_EARLY = (
    "rocprofv3 --kernel-trace --memory-copy-trace --hip-trace --marker-trace "
    f"--output-format csv json {V3_OUT} {APP}"
)
V3_ROCPD = (
    "rocprofv3 --kernel-trace --memory-copy-trace --hip-trace --marker-trace "
    f"--output-format rocpd {V3_OUT} {APP}"
)
V1 = (
    "rocprof --stats --timestamp on --hip-trace -o "
    "/run/artifacts/rocprof/node1/0/rocprof/results.csv "
    f"python /wrappers/status.py /run/control/rocprof/status -- {APP}"
)
SYS = f"--trace --host --device --profile -- {APP}"
COMPUTE_OUT = "/run/artifacts/rocprof-compute/node1/0/rocprof-compute"
COMPUTE = (
    "profile -n profharness {} --no-roof -- "
    f"python /wrappers/status.py /run/control/rocprof-compute/status -- {APP}"
)
COMPUTE_PATH = COMPUTE.format(f"-p {COMPUTE_OUT}")
COMPUTE_DIRECTORY = f"rocprof-compute {COMPUTE.format(f'--output-directory {COMPUTE_OUT}')}"
COMPUTE_OVERWRITE = (
    f"rocprof-compute {COMPUTE.format(f'--output-directory {COMPUTE_OUT} --overwrite')}"
)
LOG = f"python /wrappers/stamp.py /run/artifacts/amd-log/node1/0/amd-log -- {APP}"
DOMAINS = "hip_runtime_api,marker_api,kernel_dispatch,memory_copy,scratch_memory,hip_compiler_api"
MISSING = ""


def sys_env(prefix: str, **more: str) -> dict[str, str]:
    values = {
        "TRACE": "ON",
        "PROFILE": "ON",
        "USE_PID": "ON",
        "TIME_OUTPUT": "OFF",
        "OUTPUT_PATH": "/run/artifacts/rocprof-sys/node1/0/rocprof-sys",
        **more,
    }
    return {f"{prefix}_{name}": value for name, value in values.items()}


def log_env(level: str) -> dict[str, str]:
    return {
        "AMD_LOG_LEVEL": level,
        "AMD_LOG_MASK": "0x10089",
        "AMD_LOG_LEVEL_FILE": "/run/artifacts/amd-log/node1/0/amd-log/amdlog",
        "MIOPEN_ENABLE_LOGGING": "1",
        "MIOPEN_ENABLE_LOGGING_CMD": "1",
        "MIOPEN_LOG_LEVEL": "6",
    }


Row = tuple[str, dict[str, str]]
"""A command line and its environment; MISSING where the release does not have the tool."""

# with --hip-trace where the tool knows that
V3_ROWS: dict[str, Row] = {
    **dict.fromkeys(("5.7", "6.1"), (MISSING, {})),
    **dict.fromkeys(("6.2", "6.3", "6.4"), (V3_EARLY, {})),
    **dict.fromkeys(RELEASES[RELEASES.index("7.0") :], (V3_ROCPD, {})),
}
V1_ROWS: dict[str, Row] = {
    **dict.fromkeys(RELEASES[RELEASES.index("7.11") :], (MISSING, {})),
    **dict.fromkeys((*RELEASES[: RELEASES.index("7.11")], "7.2.4"), (V1, {})),
}
SYS_ROWS: dict[str, Row] = {
    **dict.fromkeys(("5.7", "6.1", "6.2"), (f"omnitrace-sample {SYS}", sys_env("OMNITRACE"))),
    "6.3": (f"rocprof-sys-sample {SYS}", sys_env("ROCPROFSYS")),
    **dict.fromkeys(
        ("6.4", "7.0"),
        (f"rocprof-sys-sample {SYS}", sys_env("ROCPROFSYS", ROCM_DOMAINS=DOMAINS)),
    ),
    **dict.fromkeys(
        RELEASES[RELEASES.index("7.1") : RELEASES.index("10.0")],
        (f"rocprof-sys-sample {SYS}", sys_env("ROCPROFSYS", ROCM_DOMAINS=DOMAINS, USE_ROCPD="OFF")),
    ),
    **dict.fromkeys(
        RELEASES[RELEASES.index("10.0") :],
        (
            f"rocprof-sys-sample {SYS}",
            sys_env(
                "ROCPROFSYS",
                ROCM_DOMAINS=DOMAINS,
                USE_ROCPD="OFF",
                PERFETTO_FILE="perfetto-trace.proto",
            ),
        ),
    ),
}
COMPUTE_ROWS: dict[str, Row] = {
    **dict.fromkeys(("5.7", "6.1", "6.2"), (f"omniperf {COMPUTE_PATH}", {})),
    **dict.fromkeys(
        ("6.3", "6.4", "7.0", "7.1", "7.2", "7.11", "7.2.4"),
        (f"rocprof-compute {COMPUTE_PATH}", {}),
    ),
    **dict.fromkeys(("7.12", "7.13", "7.14"), (COMPUTE_DIRECTORY, {})),
    **dict.fromkeys(("10.0", "10.1", "10.2"), (COMPUTE_OVERWRITE, {})),
}
LOG_ROWS: dict[str, Row] = {
    **dict.fromkeys(RELEASES[: RELEASES.index("7.0")], (LOG, log_env("4"))),
    **dict.fromkeys(RELEASES[RELEASES.index("7.0") :], (LOG, log_env("5"))),
}
GOLDEN: dict[tuple[str, str], Row] = {
    (tool, release): row
    for tool, rows in {
        "rocprofv3": V3_ROWS,
        "rocprof": V1_ROWS,
        "rocprof-sys": SYS_ROWS,
        "rocprof-compute": COMPUTE_ROWS,
        "amd-log": LOG_ROWS,
    }.items()
    for release, row in rows.items()
}


def test_no_combination_is_left_out() -> None:
    tools = [about.name for about in descriptions() if about.is_tool and about.name != "py-spy"]
    assert set(GOLDEN) == set(product(tools, RELEASES))


@pytest.mark.parametrize(("tool", "release"), list(GOLDEN))
def test_the_command_line_and_environment(tool: str, release: str) -> None:
    expected, env = GOLDEN[tool, release]
    (layer,) = named((tool,))
    here = node(release, tools=_tools_of(release))
    assert layer.probe(here).available == bool(expected)
    if not expected:
        assert "use --profile" in layer.probe(here).why
        return
    options = TracerOptions(hip_trace=tool in ("rocprofv3", "rocprof", "rocprof-sys"))
    command = planned(release, tool, options, environment=here)
    assert (words(command), command.env) == (expected, env)


def _tools_of(release: str) -> tuple[str, ...]:
    """As the releases have them: rocprof was left out with the second line of ROCm 7."""
    newer = RELEASES.index(release) >= RELEASES.index("6.3")
    return (
        *(("rocprof",) if V1_ROWS[release][0] else ()),
        *(("rocprofv3",) if RELEASES.index(release) >= RELEASES.index("6.2") else ()),
        *(
            ("rocprof-sys-sample", "rocprof-sys-run", "rocprof-sys-python", "rocprof-compute")
            if newer
            else ("omnitrace-sample", "omnitrace-run", "omnitrace-python", "omniperf")
        ),
    )


V3_COUNTERS: dict[str, str] = {
    "6.2": "-i /run/control/rocprofv3-pmc1/rocprofv3-pmc1.counters.txt --output-format csv json",
    "6.3": "--pmc SQ_WAVES GRBM_COUNT --output-format csv json",
    "6.4": "--pmc SQ_WAVES GRBM_COUNT --output-format csv json",
    **dict.fromkeys(
        RELEASES[RELEASES.index("7.0") :], "--pmc SQ_WAVES GRBM_COUNT --output-format rocpd"
    ),
}


@pytest.mark.parametrize(("release", "expected"), list(V3_COUNTERS.items()))
def test_rocprofv3_counters(release: str, expected: str) -> None:
    command = planned(
        release, "rocprofv3", counters=("SQ_WAVES", "GRBM_COUNT"), pass_name="rocprofv3-pmc1"
    )
    assert words(command) == (
        f"rocprofv3 --kernel-trace --memory-copy-trace {expected} -d /run/artifacts/rocprofv3 "
        f"-o %hostname%/%nid%/rocprofv3-pmc1_%pid% -- {APP}"
    )


LATE = RELEASES[RELEASES.index("7.0") :]
# what bounds the recording, whether steps are told to the tool from inside, and whether the window
# is cut off afterwards
WINDOWS: dict[tuple[str, str], tuple[str, bool]] = {
    **{(release, "steps=3:6"): ("", True) for release in ("6.2", "6.3", "6.4")},
    **{(release, "steps=3:6"): ("--selected-regions", False) for release in LATE},
    **{(release, "after=1.5s,for=10s"): ("", True) for release in ("6.2", "6.3")},
    **{
        (release, "after=1.5s,for=10s"): (
            "--collection-period 1500000000:10000000000:1 --collection-period-unit nsec",
            False,
        )
        for release in ("6.4", *LATE)
    },
    **{
        (release, "for=10s"): (
            "--collection-period 0:10000000000:1 --collection-period-unit nsec",
            False,
        )
        for release in ("6.4", *LATE)
    },
    **{(release, "after=1.5s"): ("", True) for release in ("6.2", "6.3", "6.4", *LATE)},
    **{(release, "all"): ("", False) for release in ("6.2", "6.3", "6.4", *LATE)},
}


@pytest.mark.parametrize(("release", "capture"), list(WINDOWS))
@pytest.mark.parametrize("counters", [(), ("SQ_WAVES",)])
def test_rocprofv3_windows(release: str, capture: str, counters: tuple[str, ...]) -> None:
    expected, is_cut = WINDOWS[release, capture]
    command = planned(release, "rocprofv3", capture=capture, counters=counters)
    before, _, after = words(planned(release, "rocprofv3", counters=counters)).partition(
        " --output-format"
    )
    if (
        counters and expected == "--selected-regions"
    ):  # the tool listens to pauses where it traces markers
        before = before.replace("--pmc", "--marker-trace --pmc")
    assert words(command) == f"{before}{' ' * bool(expected)}{expected} --output-format{after}"
    assert command.env == (
        {"PROFHARNESS_REGIONS": "3:6"} if expected == "--selected-regions" else {}
    )
    (layer,) = named(("rocprofv3",))
    extras = layer.extras(TRAIN, where(release, "rocprofv3", capture=capture, counters=counters))
    assert extras.cut == (capture if is_cut else "")
    assert [note for note in extras.notes if capture in note] == (
        [
            (
                f"rocprofv3 of ROCm {'.'.join(release.split('.')[:2])} records the whole execution; "
                f"--capture {capture} is cut from it"
            )
        ]
        if is_cut
        else []
    )


@pytest.mark.parametrize("release", RELEASES[2:])
def test_temporary_files_go_into_the_run_where_the_working_directory_will_not_do(
    release: str,
) -> None:
    place = where(release, "rocprofv3", spill=RUN / "control" / "spill", rank=3)
    (layer,) = named(("rocprofv3",))
    assert layer.prepare(TRAIN, place).env == {"ROCPROF_TMPDIR": "/run/control/spill/node1/3"}
    assert RUN / "control" / "spill" / "node1" / "3" in layer.extras(TRAIN, place).folders


@pytest.mark.parametrize(
    ("tool", "notes"),
    [
        ("rocprofv3", True),
        ("rocprof", True),
        ("rocprof-sys", True),
        ("rocprof-compute", True),
        ("amd-log", False),
    ],
)
def test_under_a_tracer_the_hooks_note_the_exit_status(tool: str, notes: bool) -> None:
    place = where("6.4", tool)
    hooked = with_hooks(Command(TRAIN.argv), place)
    assert (
        around.wrap(named((tool,)), hooked, place).env.get("PROFHARNESS_EXIT_STATUS") == "1"
    ) == notes
