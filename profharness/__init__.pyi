from profharness.cli.notebook.block import profile as profile
from profharness.cli.notebook.starting import run as run
from profharness.errors import InputError as InputError
from profharness.errors import OutputExists as OutputExists
from profharness.errors import ProfharnessError as ProfharnessError
from profharness.errors import Unavailable as Unavailable
from profharness.errors import UsageError as UsageError
from profharness.errors import WorkloadFailed as WorkloadFailed
from profharness.understand.session.opening import open_run
from profharness.understand.session.opening import read as read
from profharness.understand.session.recording import Recording as Recording
from profharness.understand.session.recording import Run as Run
from profharness.understand.session.scan import Scan as Scan

__version__: str
__all__ = [
    "InputError",
    "OutputExists",
    "ProfharnessError",
    "Recording",
    "Run",
    "Scan",
    "Unavailable",
    "UsageError",
    "WorkloadFailed",
    "__version__",
    "open",
    "profile",
    "read",
    "run",
]
open = open_run  # noqa: A001  as in gzip
