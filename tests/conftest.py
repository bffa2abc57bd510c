"""Fixtures for all tests. Those that need the shared recorded files skip, saying so, where they are
absent.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import quiet

# Tests start profharness a thousand times: to compile it anew for each would be a good part of
# their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# inherited where a test starts pytest: that run collects first
os.environ.pop("PYTEST_CURRENT_TEST", None)

# a job in a script's background ignores interrupts, one under nohup hang-ups, and so would all that
# the tests start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# the key by which a user's own runs are known: the tests' own, one for all processes of all tests
os.environ["XDG_STATE_HOME"] = f"{tempfile.gettempdir()}/profharness-tests-state-{os.getuid()}"

# no test may set a power cap outside of an emulated tree or on another library than a stand-in, and
# none finds what a user's own run left
os.environ["PROFHARNESS_POWER_CAPS"] = "emulated"
os.environ["PROFHARNESS_POWER_CAPS_DIR"] = f"{os.environ['XDG_STATE_HOME']}-power-caps"

# a busy machine must not make a property fail for its time
settings.register_profile(
    "no-deadline", deadline=None, suppress_health_check=(HealthCheck.too_slow,)
)
# for `make quick`, where a property has no number of examples of its own
settings.register_profile("quick", settings.get_profile("no-deadline"), max_examples=25)
settings.load_profile("no-deadline")


@pytest.hookimpl(tryfirst=True)  # before xdist, which writes the groups into the names
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes run the tests: those that share a fixture of their file stay in one
    of them, so that it is made once. Those that run alone come first, where nothing that has begun
    must end before them; then the slow ones, whole groups before single ones, so that no process
    ends with long ones while the others wait.
    """
    if not hasattr(config, "workerinput"):
        return
    for item in items:
        if _shares_a_fixture(item) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    order = ("alone", "slow", "xdist_group")
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in order])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Around everything of a test, its fixtures included: no other test works beside one that is
    marked `alone`.
    """
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with quiet.turn(os.getppid(), alone=item.get_closest_marker("alone") is not None):
        return (yield)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look through a million
    objects again and again, least of all where a test asks for a collection.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        for path in quiet.files(os.getpid()):
            path.unlink(missing_ok=True)


def _shares_a_fixture(item: pytest.Item) -> bool:
    """Whether it uses a fixture of its own file that lives longer than one test."""
    used = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    own = item.nodeid.partition("::")[0]
    return any(
        one.scope in ("module", "session") and one.baseid.startswith(own)
        for ones in used.values()
        for one in ones
    )


ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PROFHARNESS_SHARED", ROOT.parent / "shared"))


def shared_path(relative: str) -> Path:
    """A shared recorded file or tool. A test that asks for one is skipped where there are none; at
    collection it is only a path, as a missing file must not fail that.
    """
    if "PYTEST_CURRENT_TEST" in os.environ:
        _there_or_skip()
    return SHARED / relative


def _there_or_skip() -> None:
    if not (SHARED / "fixtures").is_dir():
        pytest.skip(f"needs the shared recorded files ({SHARED} is absent)")


@pytest.fixture(scope="session", autouse=True)
def refusals_name_what_there_is() -> Generator[None]:
    """The commands and options in the way out of every error that any test meets are ones that
    profharness takes.
    """
    from profharness.errors import ProfharnessError

    plain = ProfharnessError.__init__

    def checked(self: ProfharnessError, message: str, hint: str = "") -> None:
        plain(self, message, hint)
        if "--" in hint or "`profharness " in hint:
            from tests import advice

            wrong = advice.wrong_in(hint)
            assert not wrong, f"{hint!r} names {wrong}"

    ProfharnessError.__init__ = checked  # type: ignore[method-assign]
    yield
    ProfharnessError.__init__ = plain  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared recorded files and tools; the test is skipped where it is absent."""
    _there_or_skip()
    return SHARED


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for the exports of the built-in model, one for all processes of this test run: each
    export takes seconds, and the user's own cache stays as it is.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "model-cache"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this checkout."""
    return ROOT
