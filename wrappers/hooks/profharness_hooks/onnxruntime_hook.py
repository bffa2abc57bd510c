"""The hook for onnxruntime: its own profiler, on for every session of a command; and what the
workers of scans need.

onnxruntime writes one JSON file per session, named by it (prefix and local time), when profiling
ends. Its stamps are microseconds since the session's profiling start, which the session gives as
Unix time in ns; the sidecar keeps that.
"""

import contextlib
import functools
import glob
import os
import time
import weakref

from profharness_hooks import windows

MAX_EVENTS = 1000000  # onnxruntime stops writing there without a word in the file
_PREFIX = ".profharness-"


class SessionProfile:
    """One session's profile: configure(options) before the session is made, finish(session) when
    its work is done.
    """

    def __init__(self, path, point="", role="trace"):
        self.path = os.fspath(path)
        self._point, self._role = point, role
        folder, name = os.path.split(self.path)
        self._prefix = os.path.join(folder, "%s%d-%s" % (_PREFIX, os.getpid(), name))
        self.start_ns = None

    def configure(self, options):
        """Switch profiling on in a SessionOptions."""
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        options.enable_profiling = True
        options.profile_file_prefix = self._prefix

    def finish(self, session, markers=()):
        """End the session's profiling, move its file to `path` and write the sidecar."""
        self.start_ns = session.get_profiling_start_time_ns()
        self.keep(session.end_profiling(), markers)

    def forget(self):
        """Remove what onnxruntime began to write."""
        for path in self._produced():
            os.remove(path)

    def _produced(self):
        return sorted(glob.glob(glob.escape(self._prefix) + "*"))

    def keep(self, produced, markers=()):
        """Move what onnxruntime wrote (or the file it left when the session was destroyed) to
        `path`.
        """
        produced = produced or next(iter(self._produced()), "")
        if not produced:
            return False
        os.replace(produced, self.path)
        full = windows.count_events(self.path) >= MAX_EVENTS
        window = {
            "kind": "all",
            "first_step": None,
            "steps": None,
            "truncated": full,
            "reason": "onnxruntime keeps %d events at most" % MAX_EVENTS if full else "",
        }
        windows.sidecar(
            self.path,
            "onnxruntime",
            point=self._point,
            role=self._role,
            start_ns=self.start_ns,
            window=window,
            markers=list(markers),
        )
        return True


def _field(number, payload):
    """One length-delimited field of a protobuf message
    (https://protobuf.dev/programming-guides/encoding); short ones only.
    """
    return bytes([number << 3 | 2, len(payload)]) + payload


def _value_info(name):
    shape = _field(2, _field(1, b"\x08\x01"))  # one dimension of size 1
    return _field(1, name) + _field(
        2, _field(1, b"\x08\x01" + shape)
    )  # a tensor of element type 1, float


def identity_model():
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


def marker_session(path, runs=400):
    """Profile `runs` runs of a tiny session, each between two readings of the clock, to bound the
    alignment error.

    The file's `model_run` events and the sidecar's markers (role "marker") are in the same order. A
    real session's runs would bound it tens of times worse, since their start lies behind more
    Python; of that, a bound call skips most.
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
    run, clock, brackets = (
        _shortest_call(session, np.zeros(1, np.float32)),
        time.perf_counter_ns,
        [],
    )
    for _ in range(runs):
        before = clock()
        run()
        brackets.append((before, clock()))
    profile.finish(session, brackets)


def _shortest_call(session, value):
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


_observer = None


class _Observer:
    """Profiles every session of this process and keeps their files at exit."""

    def __init__(self, process, onnxruntime):
        self._process, self._onnxruntime = process, onnxruntime
        self._profiles = []
        self._aside = False
        self._files = 0

    def attach(self):
        """Replace `InferenceSession.__init__`, so that the class itself, its subclasses and
        isinstance stay as they are.
        """
        observer, original = self, self._onnxruntime.InferenceSession.__init__

        @functools.wraps(original)
        def made(session, *args, **kwargs):
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
                if profile is not None:
                    restore()
                    observer.made(session, profile, done)

        self._onnxruntime.InferenceSession.__init__ = made

    def prepare(self, args, kwargs):
        """Arguments with profiling switched on; and how to put a SessionOptions of the user back as
        it was.
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

        def restore():
            options.enable_profiling = False
            options.profile_file_prefix = before

        return args, kwargs, profile, restore

    def made(self, session, profile, done):
        """Follow the new session; the file of one that could not be made goes."""
        try:
            if not done:
                profile.forget()
                return
            profile.start_ns = session.get_profiling_start_time_ns()
            self._profiles.append((weakref.ref(session), profile))
        except Exception:  # the session is the user's
            self.failed()

    def failed(self):
        self._process.hello.failed("profiling an onnxruntime session")

    @contextlib.contextmanager
    def aside(self):
        """While entered, sessions are made without profiling."""
        before, self._aside = self._aside, True
        try:
            yield
        finally:
            self._aside = before

    def finish(self):
        """At exit: end what still profiles, keep what destroyed sessions left, and add the marker
        session.
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

    def in_child(self):
        self._profiles = []
        self._aside = True


def arm(process, onnxruntime):
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
