"""A replayed call as a script of its own, which needs torch alone: for an issue or an experiment.

The text is made of literals only. Names and types are checked, whatever the trace and the worker
said.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from profharness.analysis.operators.element_types import names
from profharness.analysis.replay.records import ReplayRow, Replays
from profharness.report.tables.hotspot_names import with_inputs
from profharness.rundir.shown.screen import one_line
from profharness.trace.calls.plan import Passed, PassedTensor, ReplayLine
from profharness.units import format_ns

_OPERATOR = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*", re.ASCII)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BARE = {"inf", "-inf", "nan"}  # numbers that Python writes, and does not read
_NEEDLESS = re.compile(r'["\\]')

_HEAD = '''\
"""{title}

{about}

    python {file} [cpu | cuda | cuda:N]

Written by profharness replay. It needs torch alone.
"""

import sys
import time

import torch

DEVICE = torch.device(sys.argv[1] if len(sys.argv) > 1 else {device!r})
torch.manual_seed({seed})
{threads}

def tensor(dims, strides, dtype, low=0.5, high=1.0, rising=False):
    """A tensor with these extents and strides, filled with numbers from low to high."""
    stored = 1 + sum((d - 1) * s for d, s in zip(dims, strides)) if all(dims) else 0
    kind = getattr(torch, dtype)
    if kind == torch.bool:
        flat = torch.rand(stored) < 0.5
    elif kind.is_floating_point or kind.is_complex:
        flat = torch.rand(stored) * (high - low) + low
    else:
        flat = torch.randint(int(low), max(int(high), int(low) + 1), (stored,))
        if rising and stored:
            flat = flat.sort().values
            flat[0] = int(low)
    return torch.as_strided(flat.to(device=DEVICE, dtype=kind), dims, strides)


'''
_TAIL = """\


def synchronise():
    if DEVICE.type != "cpu":
        torch.cuda.synchronize(DEVICE)


def once():
    return run(*arguments, **keywords)


with torch.no_grad():
    for _ in range(10):
        once()
    times = []
    end = time.perf_counter() + 2
    while time.perf_counter() < end or len(times) < 10:
        synchronise()
        start = time.perf_counter()
        once()
        synchronise()
        times.append(time.perf_counter() - start)
times.sort()
print("%d calls, median %.3f us, shortest %.3f us" % (
    len(times), 1e6 * times[len(times) // 2], 1e6 * times[0]))
"""


def file_name(number: int, row: ReplayRow) -> str:
    """`03-aten-addmm.py` of the third row."""
    word = re.sub(r"\W+", "-", row.name, flags=re.ASCII).strip("-")[:60]
    return f"{number:02d}-{word}.py"


def script(found: Replays, row: ReplayRow, line: ReplayLine, file: str) -> str:
    """The script of one row. Raises ValueError where an answer of the worker is no literal."""
    if _OPERATOR.fullmatch(row.name) is None or not _is_word(line.overload, empty=True):
        raise ValueError("no name of an operator")
    namespace, _, short = row.name.partition("::")
    title = _plain(f"{with_inputs(row.name, row.shapes, row.dtypes)} alone.")
    took = "\n".join(_about(row))
    threads = f"torch.set_num_threads({found.threads})\n" if found.threads else ""
    head = _HEAD.format(
        title=title,
        about=took,
        file=file,
        device="cuda" if found.on_device else "cpu",
        seed=found.seed,
        threads=threads,
    )
    positional = [slot for slot in line.slots if not slot.keyword]
    keywords = [slot for slot in line.slots if slot.keyword]
    calls = f"run = torch.ops.{namespace}.{short}.{line.overload or 'default'}\n"
    passed = "".join(f"    {_argument(slot)},  # {_name(slot)}\n" for slot in positional)
    named = "".join(f"    {_name(slot)!r}: {_argument(slot)},\n" for slot in keywords)
    return f"{head}{calls}arguments = [\n{passed}]\nkeywords = {{\n{named}}}\n{_TAIL}"


def _about(row: ReplayRow) -> Iterator[str]:
    """What is known of the call, in lines of a comment."""
    yield f"In the trace a call took {format_ns(row.in_trace.value or 0.0)} in the mean of "
    yield f"{row.calls}; alone and warm {format_ns(row.alone.value or 0.0)}."
    for choice in row.chosen:
        yield _plain(f"Chosen: {choice}.")


def _plain(text: str) -> str:
    """A foreign text that can stand in a docstring."""
    return _NEEDLESS.sub("'", one_line(text))


def _is_word(text: str, *, empty: bool = False) -> bool:
    return (empty and not text) or _WORD.fullmatch(text) is not None


def _name(slot: Passed) -> str:
    if not _is_word(slot.name):
        raise ValueError("no name of an argument")
    return slot.name


def _argument(slot: Passed) -> str:
    if slot.listed:
        return f"[{', '.join(map(_tensor, slot.tensors))}]"
    return _tensor(slot.tensors[0]) if slot.tensors else _literal(slot.value)


def _tensor(one: PassedTensor) -> str:
    if one.dtype not in names():
        raise ValueError("no element type")
    words = [repr(one.dims), repr(one.strides), repr(one.dtype)]
    if (one.low, one.high) != (0.5, 1.0):
        words += [repr(one.low), repr(one.high)]
    return f"tensor({', '.join(words)}{', rising=True' if one.rising else ''})"


def _literal(text: str) -> str:
    """The text of a value, read as a literal and written again. Raises ValueError."""
    if text in _BARE:
        return f"float({text!r})"
    try:
        return repr(ast.literal_eval(text))
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"{text[:40]!r} is no literal") from error
