"""The command line: the literal list of commands, and the only place where an error becomes text
and an exit code.

Each command is one small file that is imported when it is called, so that `--help` stays fast.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profharness import __version__
from profharness.cli.parsing.words import Interrupted, Rest
from profharness.errors import InputError, ProfharnessError, UsageError
from profharness.rundir.shown.screen import Painted, guarded, one_line

if TYPE_CHECKING:
    from profharness.cli.parsing.help_screen import HelpfulCommand

# name, what it does; the function of that name is in profharness/cli/<name>.py, or in a folder
# that parsing/commands.py names
COMMANDS: tuple[tuple[str, str], ...] = (
    ("run", "Run a scan or a command under instrumentation layers, and report."),
    ("report", "Write the HTML report of a run or of trace files, and print its summary."),
    ("merge", "Merge runs or trace files into one Perfetto trace on one clock."),
    ("hotspots", "Show where device (or operator) time went."),
    ("metrics", "Show saturation metrics, counts, findings and problems."),
    ("replay", "Run the hottest operators of a trace alone; say what is their own."),
    ("saturation", "Fit throughput curves: knee, recommended point, what bends them."),
    ("fleet", "Say how many devices a load of clients needs."),
    ("compare", "Compare two runs, with noise bounds; usable as a CI gate."),
    ("certify", "Certify by named criteria whether a device is saturated; check it again."),
    ("bundle", "Put what a colleague needs of a run, without secrets, into one zip."),
    ("plot", "Draw scans as a figure for a paper, or a run's resources over time."),
    ("export", "Write the tables of a run or of trace files for other programs."),
    ("view", "Open a trace in the Perfetto UI."),
    ("validate", "Check a Perfetto trace for faults that viewers pass over silently."),
    ("scrub", "Remove the values of secret-looking variables from trace files."),
    ("wrap", "Run a command under one layer, without a run around it."),
    ("attach", "Record a running process for some time; it goes on."),
    ("attach-run", "Wait again for a Slurm job that a run submitted, and show its run."),
    ("slurm-template", "Write job scripts for Slurm, to copy and to change."),
    (
        "telemetry",
        "Sample power, clocks, utilisation and CPU, without a profiler; judge from that.",
    ),
    ("calibrate", "Measure what this device reaches: matrix products, copies, launches."),
    ("serve", "Serve models by a Triton server until Ctrl-C."),
    ("mcp", "Let an agent ask for answers and figures, over the Model Context Protocol."),
    ("topology", "Write which CPUs each process of a multi-process scan gets."),
    ("doctor", "Say what works on this node, what is missing, and the fix."),
    ("ls", "List runs."),
    ("index", "Write one page over many runs: filter, sort, compare, tags and notes."),
    ("schema", "Print the JSON Schema of scan files, for editors that complete them."),
    ("help", "Show the help of a command, or of one topic of its options."),
)

_STARTS_PROGRAMS = frozenset(
    {"run", "wrap", "attach", "telemetry", "calibrate", "doctor", "serve", "replay"}
)  # whose environment must stay the user's

_COMPLETES = "_PROFHARNESS_COMPLETE"  # through it the shell asks for completions
_COMPLETION = (("--install-completion",), ("--show-completion",))
_TAKES_COMMAND = ("run", "telemetry", "wrap")

_FULL = "make room, or name another place with --output (-o); what was recorded until then is kept"
_LOCKED = "look at its permissions and at the folder's, or name another place"
_PLACES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _LOCKED,
    errno.EACCES: _LOCKED,
    errno.EPERM: _LOCKED,
}  # no fault of ours

_EPILOG = """\
Start here:
  profharness run particlenet                          scan our ParticleNet
  profharness run --profile torch -- python train.py   profile your own script, unchanged
"""


def root_help() -> str:
    """The text of `profharness --help`; made without importing any command."""
    width = max(len(name) for name, _ in COMMANDS)
    listed = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS)
    return (
        f"Usage: profharness COMMAND [OPTIONS] ...\n\n"
        f"  Is this GPU saturated by this workload, and if not, what holds it back?\n\n"
        f"Commands:\n{listed}\n\nOptions:\n"
        f"  -h, --help            This text; `profharness COMMAND --help` for a command\n"
        f"  -V, --version         The version\n"
        f"  --install-completion  Let your shell complete commands, options and values\n"
        f"  --show-completion     Print the shell code for that\n\n{_EPILOG}"
    )


def run_cli(arguments: Sequence[str]) -> int:
    """Run one command line; its exit code (docs/command-line.md#exit-codes). The line is split at
    the first `--` for `run`. Whatever is printed meanwhile is fit for a screen.
    """
    with guarded():
        return _answered(arguments)


def _answered(arguments: Sequence[str]) -> int:
    status = _without_command(tuple(arguments))
    if status is not None:
        return status
    try:
        return _call(arguments)
    except ProfharnessError as error:
        if isinstance(error, InputError) and os.environ.get("PROFHARNESS_TRACEBACK"):
            _show_cause(error)
        _say(error.message, error.hint)
        return error.exit_code
    except (KeyboardInterrupt, Interrupted) as error:
        _say("interrupted", "")
        cause = error.__cause__ or error  # of which launchers.between.Terminated has a number
        return 128 + int(getattr(cause, "number", signal.SIGINT))
    except BrokenPipeError:
        # the reader of our output went away (`| head`); nothing is wrong here
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (
        Exception
    ) as error:  # a fault of ours: the traceback is for its report, not for a user's eyes
        if os.environ.get("PROFHARNESS_TRACEBACK"):
            raise
        _say(*_unforeseen(error))
        return 1


def _show_cause(error: InputError) -> None:
    """The traceback of what a file made its reader raise, for whoever mends the reader."""
    import traceback

    if error.__cause__ is not None:
        traceback.print_exception(error.__cause__)


def _without_command(words: tuple[str, ...]) -> int | None:
    """Answer what concerns no command: completion, the list of commands, the version; None for all
    else.
    """
    if os.environ.get(_COMPLETES) or words[:1] in _COMPLETION:
        from profharness.cli.parsing import completion

        return completion.answer(COMMANDS, words, _COMPLETES)
    if words[:1] in (("-V",), ("--version",)):
        print(f"profharness {__version__}")
    elif not words or words[0] in ("-h", "--help") or words == ("help",):
        print(root_help(), end="")
    else:
        return None
    return 0


def _unforeseen(error: Exception) -> tuple[str, str]:
    """What no command foresaw: a place that cannot be read or written is the system's word, all
    else a fault of ours.
    """
    if isinstance(error, OSError) and error.errno in _PLACES:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{os.strerror(error.errno)}", _PLACES[error.errno]
    return (
        f"profharness itself failed: {type(error).__name__}: {error}",
        (
            "please report it, with the traceback that PROFHARNESS_TRACEBACK=1 shows; "
            "what was recorded is kept"
        ),
    )


def _call(arguments: Sequence[str]) -> int:
    """Import the command's module, let typer parse the words, run it. Raises UsageError for a wrong
    word.
    """
    name = arguments[0]
    if name not in dict(COMMANDS):
        import difflib

        near = difflib.get_close_matches(name, dict(COMMANDS), 1)
        raise UsageError(
            f"there is no command {name!r}",
            f"did you mean `profharness {near[0]}`?" if near else "see `profharness --help`",
        )
    if name not in _STARTS_PROGRAMS:
        # NumPy's linear algebra starts a thread per core that nothing here uses: 0.06 CPU s on two
        # cores
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from profharness.cli.parsing.commands import load

    words, rest = split_line(arguments)
    return carry_out(load(name), words[1:], rest)


def carry_out(command: HelpfulCommand, words: Sequence[str], rest: Rest) -> int:
    """Let typer parse the words of one command, and run it; its exit code. Raises UsageError for a
    wrong word.
    """
    import typer

    name = str(command.name)
    # typer carries a copy of click of its own in newer versions: take the exception's class from
    # typer itself
    click_error: type[Exception] = next(
        kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
    )
    try:
        status = command.main(
            args=_without_topic(words, command),
            prog_name=f"profharness {name}",
            obj=rest,
            standalone_mode=False,
            color=True,  # escape sequences are left to our own door, which shows them
        )
    except typer.Exit as stop:
        return int(stop.exit_code)
    except typer.Abort as stop:
        raise KeyboardInterrupt from stop
    except click_error as error:
        message = _plain(str(getattr(error, "format_message", error.__str__)()))
        raise UsageError(message, _hint(name, message, rest)) from error
    return status if isinstance(status, int) else 0


def _without_topic(words: Sequence[str], command: HelpfulCommand) -> list[str]:
    """The words without the topic of `--help TOPIC` or `--help=TOPIC`, which is told to the
    command.
    """
    for at, word in enumerate(words):
        name, equals, topic = word.partition("=")
        if name not in ("-h", "--help") or not command.topics:
            continue
        if not equals and at + 1 < len(words) and not words[at + 1].startswith("-"):
            topic = words[at + 1]
        if topic:
            command.show_topic(topic)
        return ["--help"]
    return list(words)


def _hint(name: str, message: str, rest: Rest) -> str:
    """Most often it is the `--` before a command that is missing."""
    if name in _TAKES_COMMAND and "extra argument" in message and not rest.given:
        return f"a command goes after --: profharness {name} ... -- python train.py"
    if message.endswith(": permission denied"):
        return _LOCKED
    return f"see `profharness {name} --help`"


def _plain(message: str) -> str:
    """`--by: 'foo' is not one of ...`, without the parser's own vocabulary."""
    message = re.sub(r"^Invalid value for '?([^':]+)'?(?: / '[^']+')*: ", r"\1: ", message).replace(
        "Value error, ", ""
    )
    message = re.sub(
        r"^[A-Z|.a-z ]+: Path '(.+)' is not readable", r"\1: permission denied", message
    )
    message = re.sub(r"Input should be a valid (integer|number).*", r"not a valid \1", message)
    message = re.sub(r"a valid (integer|float|number) range", r"a valid \1", message)
    message = (
        message.replace("a valid integer", "a whole number")
        .replace("a valid number", "a number")
        .replace("a valid float", "a number")
    )
    return message.rstrip(".")


def split_line(arguments: Sequence[str]) -> tuple[Sequence[str], Rest]:
    """Only commands that start a program take a rest; elsewhere `--` keeps its usual meaning."""
    if arguments and arguments[0] in (*_TAKES_COMMAND, "doctor") and "--" in arguments:
        at = list(arguments).index("--")
        return arguments[:at], Rest(tuple(arguments[at + 1 :]), given=True)
    return arguments, Rest((), given=False)


def _say(message: str, hint: str) -> None:
    """`error: what happened`, and the way out on the next line."""
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    label = "\033[1;31merror\033[0m" if coloured else "error"
    # several errors of one command stand below each other; no name can begin a line of its own
    lines = "\n       ".join(one_line(line) for line in message.split("\n"))
    sys.stderr.write(Painted(f"{label}: {lines}\n"))
    for line in hint.splitlines():
        print(f"  {line}", file=sys.stderr)
