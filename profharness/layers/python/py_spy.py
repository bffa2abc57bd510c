"""The `py-spy` layer: the Python stacks of every process of a command, sampled from outside.

wrappers/py_spy.py stands around the command: py-spy attaches to what it did not start itself, so
that the command keeps its output, its signals and its exit status, also where py-spy fails. Its
trace counts microseconds from py-spy's own start, which the wrapper brackets.
"""

from __future__ import annotations

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers.around import own_folder
from profharness.layers.contract import (
    Availability,
    Description,
    Extras,
    Layer,
    Program,
    Sign,
    Where,
)
from profharness.node.probe import Environment
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles

NAME = "py-spy"
RATE_HZ = 100
"""How often py-spy looks where nobody says: its own default, 10 ms between two samples."""
_PROGRAM = Program(NAME, (0,))
_OURS = ("-o", "--output", "-f", "--format", "-p", "--pid", "-h", "--help")
_HOW_TO_INSTALL = "install it with pip install 'profharness[py-spy]' (or pip install py-spy)"
_FORBIDDEN = (
    "let it read other processes of yours: sysctl kernel.yama.ptrace_scope=1 (or 0), in a "
    "container --cap-add=SYS_PTRACE (docker) or a seccomp profile that allows ptrace and "
    "process_vm_readv, else run it as root; or record Python's functions with "
    "--profile torch --stacks"
)
_NO_PYTHON = (
    "py-spy samples CPython: name the python program itself after `--`, or leave the layer out"
)


class PySpyLayer(Layer):
    """Python functions and lines over time, of all threads and child processes, torch or not."""

    about = Description(
        name=NAME,
        gives="Python lines and functions of all threads and processes, sampled from outside",
        needs="any program in CPython on Linux; `pip install py-spy`",
        scope="prefix",
        # it samples what other layers do in the process, too: its pass is its own
        claims=frozenset(
            {"cpu-sampler", "traced-process", "torch-profiler", "onnxruntime-profiler"}
        ),
        programs=(_PROGRAM,),
        expects_kernels=False,
        refusals=(r"^profharness: py-spy: it recorded nothing: error: (?:unexpected|invalid).*$",),
        signs=(
            Sign(
                r"^profharness: py-spy: .*(?:Failed to suspend process|Permission denied|"
                r"Operation not permitted|EPERM).*$",
                "profiler-failed",
                "this kernel or container does not let it look into other processes",
                _FORBIDDEN,
            ),
            Sign(
                r"^profharness: py-spy: it had ended when .*$",
                "known-fault",
                "py-spy ends with the last Python process that it knows",
                "record that program in a run of its own",
            ),
            Sign(
                r"^profharness: py-spy: .*[Nn]o [Pp]ython process.*$",
                "profiler-failed",
                "it met no Python process",
                _NO_PYTHON,
            ),
        ),
        bytes_per_trial=50_000,
        bytes_per_command=8_000_000,  # a minute of training, measured
        facts=LayerFacts(
            LeftFiles(
                "execution",
                (LeftFile(r"py-spy-\d+\.json", NAME),),
                pid=r"-(\d+)\.json$",
                filled=True,
            )
        ),
    )

    def probe(self, environment: Environment) -> Availability:
        """Whether py-spy is on the PATH or beside the workload's or profharness's own Python.
        Whether the kernel lets it look into other processes shows when it does.
        """
        tool = environment.tools.get(NAME)
        if tool is None:
            return Availability(
                available=False,
                why=f"py-spy is not installed\n{_HOW_TO_INSTALL}; "
                "for torch programs --profile torch --stacks records Python's functions too",
            )
        return Availability(available=True, version=tool.version)

    def prepare(self, command: Command, where: Where) -> Command:
        """Our wrapper in front, with py-spy's own words. All threads at all times, also those that
        wait: without that, a line would seem to last until its thread is busy again.

        Raises UsageError for arguments that profharness sets itself.
        """
        arguments = where.options.args_for(NAME)
        for word in arguments:
            if word.split("=")[0] in _OURS:
                raise UsageError(
                    f"--tool-arg py-spy:{word}: profharness sets that itself", "leave it out"
                )
        has_rate = any(
            word.split("=")[0] == "--rate" or word.startswith("-r") for word in arguments
        )
        rate = () if has_rate else ("--rate", str(RATE_HZ))
        tool = where.environment.tools.get(NAME)
        return command.with_prefix(
            (
                where.python,
                str(where.wrappers / "py_spy.py"),
                str(own_folder(NAME, command, where)),
                tool.path if tool is not None and tool.path else NAME,
                *("record", "--subprocesses", "--threads", "--idle", "--format", "chrometrace"),
                *rate,
                *arguments,
                "--",
            )
        )

    def extras(self, command: Command, where: Where) -> Extras:
        """The folder of this execution's file, and a window to be cut on reading."""
        cut = "" if where.capture in ("", "default", "all") else where.capture
        note = f"py-spy records the whole execution; --capture {cut} is cut from it"
        return Extras(
            folders=(own_folder(NAME, command, where),), notes=(note,) if cut else (), cut=cut
        )
