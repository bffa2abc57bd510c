"""`python exec_hook.py SCRIPT ARGS`, `... -m MODULE ARGS` or `... -c CODE ARGS`: run it as python
would, with the hooks.

For `--hook exec`, where PYTHONPATH is not trusted or not passed on. The script gets its own fresh
__main__ module, sys.argv and sys.path[0]; its exit status and exceptions are its own, and our
frames are cut off its tracebacks.

This file must not have a `from __future__` line: `compile` gives the workload's code the future
features of the code that calls it. Annotations therefore stand in quotation marks.
"""

import os
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional


def _path_entry() -> bool:
    """Whether Python puts the script's folder first on sys.path: not under -P or -I."""
    return not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated)


def _install_hooks() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        sys.path.insert(0, folder)
        try:
            from profharness_hooks import process
        finally:
            sys.path.remove(folder)
        process.install("exec")
    except Exception as error:  # whatever is wrong with the hooks, the workload runs
        os.write(
            2, ("profharness: the hooks did not load: %r\n" % (error,)).encode("utf-8", "replace")
        )


def _fresh_main() -> "dict[str, Any]":
    main = types.ModuleType("__main__")
    names = vars(main)
    names.update(__builtins__=sys.modules["builtins"], __annotations__={})
    sys.modules["__main__"] = main
    return names


def _first_on_path(entry: str) -> None:
    if _path_entry():
        sys.path[0] = entry


def _plan(arguments: "list[str]") -> "Callable[[], None]":
    """Turn the arguments into a function that runs the program, in the order in which the
    interpreter looks at them.
    """
    if not arguments:
        raise SystemExit("usage: exec_hook.py SCRIPT | -m MODULE | -c CODE [ARGS ...]")
    kind = arguments[0]
    if kind == "-m" and len(arguments) > 1:
        sys.argv[:] = ["-m", *arguments[2:]]
        _first_on_path(os.getcwd())
        return lambda: _run_module(arguments[1], alter_argv=True)
    if kind == "-c" and len(arguments) > 1:
        sys.argv[:] = ["-c", *arguments[2:]]
        _first_on_path("")
        code = arguments[1]
        return lambda: exec(compile(code, "<string>", "exec"), _fresh_main())
    sys.argv[:] = arguments
    if os.path.isdir(kind) or (os.path.isfile(kind) and _is_zip(kind)):
        if _path_entry():
            sys.path[0] = kind
        else:
            sys.path.insert(0, kind)
        return lambda: _run_module("__main__", alter_argv=False)
    _first_on_path(os.path.dirname(os.path.realpath(kind)))
    return lambda: _run_script(kind)


def _is_zip(path: str) -> bool:
    import zipimport

    try:
        zipimport.zipimporter(path)
    except ImportError:
        return False
    return True


def _run_module(name: str, *, alter_argv: bool) -> None:
    import runpy

    _fresh_main()
    # what the interpreter itself calls for -m
    runpy._run_module_as_main(name, alter_argv)  # type: ignore[attr-defined]  # as python -m does


def _run_script(path: str) -> None:
    from importlib.machinery import SourceFileLoader

    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write(
            "%s: can't open file %r: [Errno %d] %s\n"
            % (sys.executable, os.path.abspath(path), error.errno or 0, error.strerror)
        )
        raise SystemExit(2) from None
    names = _fresh_main()
    names.update(
        __file__=path,
        __cached__=None,
        __spec__=None,
        __package__=None,
        __loader__=SourceFileLoader("__main__", path),
    )
    exec(compile(source, path, "exec"), names)


def _without_our_frames(
    traceback: "Optional[types.TracebackType]",
) -> "Optional[types.TracebackType]":
    """Cut the frames at the top that are ours."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def _cut_when_shown() -> None:
    """Before 3.11 a bare `raise` puts the frames back, so they are cut where the traceback is
    printed.
    """
    shown = sys.excepthook

    def hook(
        kind: "type[BaseException]",
        value: BaseException,
        traceback: "Optional[types.TracebackType]",
    ) -> None:
        value.__traceback__ = _without_our_frames(traceback)
        shown(kind, value, value.__traceback__)

    sys.excepthook = hook


if sys.version_info >= (3, 8):  # older ones run as without us
    _install_hooks()
if sys.version_info < (3, 11):
    _cut_when_shown()
_run = _plan(sys.argv[1:])
try:
    _run()
except BaseException as error:  # Ctrl-C too: no traceback of the user's may show our frames
    error.__traceback__ = _without_our_frames(error.__traceback__)
    raise
