"""The hook for onnxruntime: switches its own profiler on for every session of a command. Workers of
scans use parts of it.

onnxruntime writes one JSON file per session when profiling ends, and names it by prefix and local
time. Its stamps are microseconds since the session's profiling start, which the session gives as
Unix time in ns; the sidecar keeps that.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import time
import weakref

from profharness_hooks import sidecars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, Tuple

    from profharness_hooks.process import Process

    Bracket = Tuple[int, int]  # readings of the clock before and after, in ns


MAX_EVENTS = 1000000  # onnxruntime stops writing there without a word in the file
_PREFIX = ".profharness-"


class SessionProfile:
    """One session's profile: configure(options) before the session is made, finish(session) when
    its work is done.
    """

    def __init__(self, path: str, point: str = "", role: str = "trace") -> None:
        self.path = os.fspath(path)
        self._point, self._role = point, role
        folder, name = os.path.split(self.path)
        self._prefix = os.path.join(folder, "%s%d-%s" % (_PREFIX, os.getpid(), name))
        self.start_ns: int | None = None

    def configure(self, options: Any) -> None:
        """Switch profiling on in a SessionOptions."""
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        options.enable_profiling = True
        options.profile_file_prefix = self._prefix

    def finish(self, session: Any, markers: Iterable[Bracket] = ()) -> None:
        """End the session's profiling, move its file to `path` and write the sidecar. Raises
        OSError.
        """
        self.start_ns = session.get_profiling_start_time_ns()
        self.keep(session.end_profiling(), markers)

    def forget(self) -> None:
        """Remove what onnxruntime began to write, for a session that could not be made."""
        for path in self._produced():
            os.remove(path)

    def _produced(self) -> list[str]:
        return sorted(glob.glob(glob.escape(self._prefix) + "*"))

    def keep(self, produced: str, markers: Iterable[Bracket] = ()) -> bool:
        """Move what onnxruntime wrote (or the file it left when the session was destroyed) to
        `path`. Returns whether there was a file.
        """
        produced = produced or next(iter(self._produced()), "")
        if not produced:
            return False
        os.replace(produced, self.path)
        full = sidecars.count_events(self.path) >= MAX_EVENTS
        window = {
            "kind": "all",
            "first_step": None,
            "steps": None,
            "truncated": full,
            "reason": "onnxruntime keeps %d events at most" % MAX_EVENTS if full else "",
        }
        sidecars.sidecar(
            self.path,
            "onnxruntime",
            point=self._point,
            role=self._role,
            start_ns=self.start_ns,
            window=window,
            markers=list(markers),
        )
        return True


def _field(number: int, payload: bytes) -> bytes:
    """One length-delimited field of a protobuf message
    (https://protobuf.dev/programming-guides/encoding); short ones only.
    """
    return bytes([number << 3 | 2, len(payload)]) + payload


def _value_info(name: bytes) -> bytes:
    shape = _field(2, _field(1, b"\x08\x01"))  # one dimension of size 1
    return _field(1, name) + _field(
        2, _field(1, b"\x08\x01" + shape)
    )  # a tensor of element type 1, float


def identity_model() -> bytes:
    """The bytes of an ONNX ModelProto (onnx.proto, IR version 7, opset 13): y = Identity(x),
    float[1].
    """
    node = _field(1, b"x") + _field(2, b"y") + _field(4, b"Identity")
    graph = (
        _field(1, node)
        + _field(2, b"marker")
        + _field(11, _value_info(b"x"))
        + _field(12, _value_info(b"y"))
    )
    return b"\x08\x07" + _field(7, graph) + _field(8, b"\x10\x0d")


def marker_session(path: str, runs: int = 400) -> None:
    """Profile `runs` runs of a tiny session, each between two readings of the clock, to bound the
    alignment error.

    The file's `model_run` events and the sidecar's markers (role "marker") are in the same order.
    The runs of a real session would give a bound tens of times wider, since more Python lies
    between the clock reading and the start of their run; a bound call leaves most of that out.
    """
    import numpy as np
    import onnxruntime

    profile = SessionProfile(path, role="marker")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    profile.configure(options)
    with _observer.aside() if _observer is not None else contextlib.nullcontext():
        session = onnxruntime.InferenceSession(
            identity_model(), options, providers=["CPUExecutionProvider"]
        )
    run, clock = _shortest_call(session, np.zeros(1, np.float32)), time.perf_counter_ns
    brackets: list[Bracket] = []
    for _ in range(runs):
        before = clock()
        run()
        brackets.append((before, clock()))
    profile.finish(session, brackets)


def _shortest_call(session: Any, value: Any) -> Callable[[], Any]:
    """A run of the marker session with as little of Python around it as this onnxruntime allows."""
    from onnxruntime import OrtValue

    try:
        binding = session.io_binding()
        given, taken = OrtValue.ortvalue_from_numpy(value), OrtValue.ortvalue_from_numpy(value)
        binding.bind_ortvalue_input("x", given)
        binding.bind_ortvalue_output("y", taken)
        return functools.partial(session._sess.run_with_iobinding, binding._iobinding, None)
    except (
        AttributeError,
        TypeError,
    ):  # another version's inside: the public call, with a wider bound
        return functools.partial(session.run, ["y"], {"x": value})


def _provider(asked: Any) -> str:
    """The name of an asked provider, which may stand alone or with its options."""
    return str(asked[0] if isinstance(asked, tuple) else asked)


_observer: _Observer | None = None


class _Observer:
    """Profiles every session of this process and keeps their files at exit."""

    def __init__(self, process: Process, onnxruntime: Any) -> None:
        self._process, self._onnxruntime = process, onnxruntime
        self._profiles: list[tuple[weakref.ref[Any], SessionProfile]] = []
        self._aside = False
        self._files = 0

    def attach(self) -> None:
        """Replace `InferenceSession.__init__`, so that the class itself, its subclasses and
        isinstance stay as they are.
        """
        observer, original = self, self._onnxruntime.InferenceSession.__init__

        @functools.wraps(original)
        def made(session: Any, *args: Any, **kwargs: Any) -> None:
            profile = restore = None
            try:
                args, kwargs, profile, restore = observer.prepare(args, kwargs)
            except Exception:  # the session is made all the same
                observer.failed()
            done = False
            try:
                original(session, *args, **kwargs)
                done = True
            finally:
                if profile is not None and restore is not None:
                    restore()
                    asked = kwargs.get("providers", args[2] if len(args) > 2 else None)
                    observer.made(session, profile, done, asked)

        self._onnxruntime.InferenceSession.__init__ = made

    def prepare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], SessionProfile | None, Callable[[], None] | None]:
        """The arguments of a new session with profiling switched on, its profile, and a function
        that puts the user's SessionOptions back as they were. Both are None where the session is
        left alone.
        """
        if self._aside:
            return args, kwargs, None, None
        options = args[1] if len(args) > 1 else kwargs.get("sess_options")
        if options is None:
            options = self._onnxruntime.SessionOptions()
            if len(args) > 1:
                args = (args[0], options, *args[2:])
            else:
                kwargs = dict(kwargs, sess_options=options)
        if options.enable_profiling:
            self._process.hello.add(
                "messages",
                "the script profiles an onnxruntime session itself: ours stood back from it",
            )
            return args, kwargs, None, None
        before = options.profile_file_prefix
        name = "trace-%d%s.json" % (os.getpid(), "-%d" % self._files if self._files else "")
        profile = SessionProfile(os.path.join(self._process.settings.folder("onnxruntime"), name))
        profile.configure(options)
        self._files += 1

        def restore() -> None:
            options.enable_profiling = False
            options.profile_file_prefix = before

        return args, kwargs, profile, restore

    def made(self, session: Any, profile: SessionProfile, done: bool, asked: Any) -> None:
        """Follow the new session, and say which of the `asked` providers onnxruntime left out; the
        file of one that could not be made goes.
        """
        try:
            if not done:
                profile.forget()
                return
            profile.start_ns = session.get_profiling_start_time_ns()
            self._profiles.append((weakref.ref(session), profile))
            got = session.get_providers()
            lost = [name for name in map(_provider, asked or ()) if name not in got]
            if lost:
                self._process.hello.add(
                    "messages",
                    "the script asked onnxruntime for %s, and the session runs on %s"
                    % (", ".join(lost), got[0]),
                )
        except Exception:  # the session is the user's
            self.failed()

    def failed(self) -> None:
        self._process.hello.failed("profiling an onnxruntime session")

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """While entered, sessions are made without profiling."""
        before, self._aside = self._aside, True
        try:
            yield
        finally:
            self._aside = before

    def finish(self) -> None:
        """Called at exit: end the sessions that still profile, keep the files that destroyed
        sessions left, and add the marker session.
        """
        kept = 0
        for reference, profile in self._profiles:
            session = reference()
            produced = session.end_profiling() if session is not None else ""
            kept += profile.keep(produced)
        self._profiles = []
        if kept:
            folder = self._process.settings.folder("onnxruntime")
            marker_session(os.path.join(folder, "marker-%d.json" % os.getpid()))

    def in_child(self) -> None:
        self._profiles = []
        self._aside = True


def arm(process: Process, onnxruntime: Any) -> bool:
    """Observe the sessions of a command, where the layer is asked for. Returns False in the workers
    of scans.
    """
    global _observer
    if process.settings.is_worker or "onnxruntime" not in process.settings.layers:
        return False
    import atexit

    from profharness_hooks import step_log

    _observer = _Observer(process, onnxruntime)
    _observer.attach()
    atexit.register(step_log.guarded(process, _observer.finish))
    process.on_fork(child=_observer.in_child)
    return True
