"""The one rule for damage: whatever reading a file of a run raises is told as a fault of that file.

It lies around reading and decoding alone, so that a fault of ours in computing or writing is never
dressed as a bad file; the exception itself stays as the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profharness.errors import InputError, ProfharnessError, UsageError

DAMAGED = "the run directory may be damaged or incomplete: copy it again"
_LONGEST = 300


@contextmanager
def reading(path: Path | str, what: str = "cannot be read") -> Iterator[None]:
    """Raises InputError, naming `path` and saying `what` it is not, for whatever else is raised
    inside, MemoryError and RecursionError included. Errors of ours with a sentence of their own
    pass, a UsageError as an InputError: the file said it, and not the user.
    """
    try:
        yield
    except UsageError as error:
        raise InputError(f"{path}: {error.message}", DAMAGED) from error
    except ProfharnessError:
        raise
    except Exception as error:  # the rule of this module: the file's fault, whatever it is called
        raise InputError(f"{path}: {what} ({_words(error)})", DAMAGED) from error


def _words(error: Exception) -> str:
    """What was wrong, in one line."""
    if isinstance(error, MemoryError):
        return "it asks for more memory than there is"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
