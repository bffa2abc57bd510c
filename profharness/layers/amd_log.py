"""The `amd-log` layer: what the HIP runtime and MIOpen say of every call, by their own log
variables.

The runtime writes a file per process; MIOpen writes lines without times on stderr, which
wrappers/stamp.py stamps as they arrive. Launch-bound work runs ten times slower or worse: no time
of its pass is ever used.
"""

from __future__ import annotations

import re

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import releases, rocm_versions
from profharness.layers.around import own_folder
from profharness.layers.contract import Availability, Description, Extras, Layer, Where
from profharness.node.probe import Environment
from profharness.rundir.capture import period
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles

# calls (1), packets (8), kernels (0x80), and where in the runtime a line comes from (0x10000)
MASK = 0x10089


class AmdLogLayer(Layer):
    """Every HIP call and launch in order, with geometry but without device times; MIOpen's calls
    and searches.
    """

    about = Description(
        name="amd-log",
        gives="`AMD_LOG_LEVEL` and MIOpen logs, stamped",
        needs="ROCm",
        scope="prefix",
        claims=frozenset({"hip-log", "stderr"}),
        perturbing=True,
        expects_kernels=False,  # its files hold launches; the readers judge them
        bytes_per_command=200_000_000,  # from public recordings
        facts=LayerFacts(
            LeftFiles(
                "execution",
                (LeftFile(r"amdlog_.*", "amd-log"), LeftFile(r"miopen-.*", "miopen-log")),
                pid=r"[_-](\d+)(?:\.log)?$",
                filled=True,
            )
        ),
    )

    def probe(self, environment: Environment) -> Availability:
        """Whether anything of ROCm is on the node; which programs use HIP is not asked."""
        has_rocm = (
            bool(environment.rocm_version)
            or any(device.kind == "rocm" for device in environment.devices)
            or "rocm" in environment.packages.get("torch", "")
        )
        if has_rocm:
            return Availability(
                available=True, version=environment.rocm_version, why=rocm_versions.but(environment)
            )
        return Availability(
            available=False,
            why="it needs a program that uses ROCm's HIP runtime, and no ROCm was found here\n"
            "set ROCM_PATH where ROCm is elsewhere; on other devices use --profile torch",
        )

    def prepare(self, command: Command, where: Where) -> Command:
        """Variables that make the runtimes log, and a stamper in front that dates MIOpen's lines.

        Raises UsageError for a capture window in time, which the runtime cannot keep to.
        """
        if period(where.capture) is not None:
            raise UsageError(
                f"--capture {where.capture}: the runtime logs the whole execution",
                "leave --capture out, or use --profile torch",
            )
        folder = own_folder(self.name, command, where)
        release = releases.parse(where.environment.rocm_version) or releases.NEWEST.rocm
        stamper = (where.python, str(where.wrappers / "stamp.py"), str(folder), "--")
        return command.with_prefix(stamper).with_env(
            {
                # the geometry of a dispatch moved from level 4 to 5 with ROCm 7
                "AMD_LOG_LEVEL": "5" if release >= (7, 0) else "4",
                "AMD_LOG_MASK": f"0x{MASK:X}",
                "AMD_LOG_LEVEL_FILE": str(folder / "amdlog"),
                "MIOPEN_ENABLE_LOGGING": "1",
                "MIOPEN_ENABLE_LOGGING_CMD": "1",
                "MIOPEN_LOG_LEVEL": "6",
                # a scan's worker sends stderr to each point's own log, where nothing would stamp it
                **({"PROFHARNESS_KEEP_STDERR": "1"} if where.is_worker else {}),
                **dict(_variable(text) for text in where.options.args_for(self.name)),
            }
        )

    def extras(self, command: Command, where: Where) -> Extras:
        """The folder of this execution's logs, and for which ROCm they were planned."""
        note = (
            ""
            if where.environment.rocm_version
            else (
                "no ROCm was found here: planned for ROCm "
                f"{releases.text(releases.NEWEST.rocm)}, the newest known"
            )
        )
        return Extras(
            folders=(own_folder(self.name, command, where),), notes=(note,) if note else ()
        )


def _variable(text: str) -> tuple[str, str]:
    """What is passed through to this layer, which has no program, are variables. Raises UsageError
    for another form.
    """
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
        raise UsageError(
            f"--tool-arg amd-log:{text} is not NAME=VALUE",
            "write for example --tool-arg amd-log:AMD_LOG_LEVEL=3",
        )
    return name, value
