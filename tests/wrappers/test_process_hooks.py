"""The hooks in processes without a framework: they say hello, change nothing, and survive whatever
the program does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from profharness.rundir.manifest import ENDED_BY, Hello

from .running import WRAPPERS, Runner, hooks_path


def test_hello_is_what_the_manifest_reads(runner: Runner) -> None:
    words = ("one", "--name", "two words", "--other=three", "-pfour", "-v", "--", "-5")
    ran = runner.run(runner.script("import sys; print(sys.argv)"), *words, PROFHARNESS_RANK="3")
    assert ran.out == f"{[str(runner.folder / 'program.py'), *words]}\n"
    hello = msgspec.json.decode(
        (runner.folder / "hooks" / f"hello-{ran.pid}.json").read_bytes(), type=Hello
    )
    assert hello.pid == ran.pid
    assert hello.argv[1:] == (
        str(runner.folder / "program.py"),
        *("...", "--name", "...", "--other=...", "-p...", "-v", "--", "..."),
    )
    assert hello.hooks == ("sitecustomize",)
    assert hello.rank == 3
    assert hello.host == os.uname().nodename
    assert hello.frameworks == {}
    assert ran.hello["prefix"] == sys.prefix


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        ({"SLURM_PROCID": "5"}, 5),
        ({"RANK": "2", "SLURM_PROCID": "5"}, 2),
        ({"OMPI_COMM_WORLD_RANK": "7"}, 7),
        ({"PMI_RANK": "4"}, 4),
        ({}, None),
    ],
)
def test_rank_is_read_from_the_launchers(
    runner: Runner, variables: dict[str, str], rank: int | None
) -> None:
    assert runner.run("-c", "pass", **variables).hello["rank"] == rank


def test_nothing_happens_without_the_variables(runner: Runner) -> None:
    ran = runner.run(
        "-c",
        "import sys; print('profharness_hooks' in sys.modules, "
        "'profharness' in repr(sys.meta_path))",
        PROFHARNESS_HOOKS_DIR="",
    )
    assert ran.out == "False False\n"
    assert not (runner.folder / "hooks").exists()


PROGRAMS = {
    "exit": "import sys; print('out'); sys.exit(3)",
    "message": "import sys; sys.exit('told you')",
    "exception": "def f():\n    raise ValueError('bad')\nprint('before')\nf()\n",
    "killed": "import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": (
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(5)"
    ),
    "vanished": "import os; os._exit(9)",
    "streams": "import sys; sys.stderr.write('warn\\n'); print(input())",
    "atexit": (
        "import atexit; atexit.register(print, 'late'); print(sorted(m for m in "
        "__import__('sys').modules if m == 'sitecustomize'))"
    ),
    "ours gone": (
        "import sys; sys.path[:] = [p for p in sys.path if 'wrappers' not in p]; "
        "import json; print(json.dumps([1]))"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_outcome_is_that_of_a_plain_run(runner: Runner, name: str) -> None:
    program = runner.script(PROGRAMS[name])
    hooked, plain = runner.both(program)
    assert (hooked.status, hooked.out, hooked.err) == (plain.status, plain.out, plain.err)
    assert len(hooked.hellos) == 1


def test_interpreter_options_that_keep_the_hooks_away(runner: Runner) -> None:
    for option in ("-S", "-E", "-I"):
        ran = runner.run(option, "-c", "print('ran')")
        assert (ran.status, ran.out, ran.hellos) == (0, "ran\n", []), option


def test_users_sitecustomize_and_usercustomize_run(runner: Runner) -> None:
    runner.script("import builtins; builtins.chained = __file__", "site/sitecustomize.py")
    base = runner.folder / "base"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    runner.script(
        "import builtins; builtins.user = 'user'",
        f"base/lib/{version}/site-packages/usercustomize.py",
    )
    program = runner.script(
        "import sys, site; print(chained, getattr(__builtins__, 'user', "
        "site.ENABLE_USER_SITE), sys.modules['sitecustomize'].__file__)"
    )
    hooked, plain = runner.both(
        program, PYTHONPATH=hooks_path(runner.folder / "site"), PYTHONUSERBASE=str(base)
    )
    assert str(runner.folder / "site" / "sitecustomize.py") in hooked.out
    assert hooked.out == plain.out
    assert hooked.hello["hooks"] == ["sitecustomize"]


@pytest.mark.parametrize(
    "text", ["raise RuntimeError('mine')", "import not_there_at_all", "import sys; sys.exit(4)"]
)
def test_errors_of_the_users_sitecustomize_are_reported_as_ever(runner: Runner, text: str) -> None:
    runner.script(text, "site/sitecustomize.py")
    hooked, plain = runner.both("-c", "print('on')", PYTHONPATH=hooks_path(runner.folder / "site"))
    assert plain.err or plain.status
    assert (hooked.status, hooked.out, hooked.err.splitlines()[:2]) == (
        plain.status,
        plain.out,
        plain.err.splitlines()[:2],
    )


def test_no_name_of_ours_hides_one_of_the_users(runner: Runner) -> None:
    for name in ("marks", "torch_hook", "exec_hook", "probe"):
        runner.script("mine = True", f"lib/{name}.py")
    program = runner.script(
        "import marks, torch_hook, exec_hook, probe\nprint(marks.mine, torch_hook.mine, "
        "exec_hook.mine, probe.mine)"
    )
    assert (
        runner.run(program, PYTHONPATH=hooks_path(runner.folder / "lib")).out
        == "True True True True\n"
    )


def test_forked_child_says_hello_and_ends_as_it_likes(runner: Runner) -> None:
    program = runner.script(
        "import os, sys\npid = os.fork()\nif pid == 0:\n    sys.exit(7)\nprint(os.waitpid(pid, "
        "0)[1] >> 8)"
    )
    ran = runner.run(program)
    assert (ran.status, ran.out, ran.err) == (0, "7\n", "")
    forked = {hello["forked"]: hello for hello in ran.hellos}
    assert set(forked) == {False, True}
    assert forked[True]["parent_pid"] == ran.pid


@pytest.mark.parametrize("start", ["spawn", "fork", "forkserver"])
def test_multiprocessing_children_say_hello(runner: Runner, start: str) -> None:
    program = runner.script(
        "import multiprocessing as m, os\ndef f(x): return os.getpid()\n"
        f"if __name__ == '__main__':\n    with m.get_context({start!r}).Pool(1) as pool: "
        "print(pool.map(f, [1])[0])\n"
    )
    ran = runner.run(program)
    assert ran.status == 0, ran.err
    assert int(ran.out) in {hello["pid"] for hello in ran.hellos}


def test_subprocesses_say_hello_even_when_started_from_sys_path(runner: Runner) -> None:
    program = runner.script(
        "import os, subprocess, sys\nenv = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))\n"
        "print(subprocess.run([sys.executable, '-c', 'import os; print(os.getpid())'], "
        "env=env, stdout=-1).stdout.decode().strip())\n"
    )
    ran = runner.run(program)
    assert {hello["pid"] for hello in ran.hellos} == {ran.pid, int(ran.out)}


def test_second_program_in_the_same_process_gets_its_own_hello(runner: Runner) -> None:
    program = runner.script(
        "import os, sys\nif len(sys.argv) == 1:\n    os.execv(sys.executable, [sys.executable, "
        "__file__, 'again'])\nprint('second')"
    )
    ran = runner.run(program)
    assert [hello["pid"] for hello in ran.hellos] == [ran.pid, ran.pid]
    assert {hello["argv"][-1] for hello in ran.hellos} == {"...", str(program)}


def test_unwritable_folder_costs_one_line_and_nothing_else(runner: Runner) -> None:
    (runner.folder / "occupied").write_text("a file, where a folder is wanted")
    program = runner.script(
        "import profharness_mark\nfor i in range(3): profharness_mark.step()\nprint('fine')"
    )
    ran = runner.run(
        program,
        PROFHARNESS_HOOKS_DIR=str(runner.folder / "occupied" / "hooks"),
        PROFHARNESS_ARTIFACTS=str(runner.folder / "occupied"),
    )
    assert (ran.status, ran.out) == (0, "fine\n")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("profharness: ")


# -- arming at the import of a framework: a small stand-in package takes the place of the real one
# -------------------

FAKE = "__version__ = '9.8.7'\nvalue = 41\n"


def fake_framework(runner: Runner, text: str = FAKE) -> str:
    runner.script(text, "lib/tensorflow/__init__.py")
    runner.script("", "lib/tensorflow/part.py")
    return hooks_path(runner.folder / "lib")


@pytest.mark.parametrize(
    "program",
    [
        "import tensorflow",
        "import tensorflow.part",
        "import importlib, tensorflow; tensorflow = importlib.reload(tensorflow)",
        "import importlib.util as u; assert u.find_spec('tensorflow').origin; import tensorflow",
        (
            "import importlib.util as u, sys; s = u.find_spec('tensorflow'); "
            "s.loader = u.LazyLoader(s.loader); tensorflow = u.module_from_spec(s); "
            "sys.modules['tensorflow'] = tensorflow; s.loader.exec_module(tensorflow)"
        ),
        (
            "import threading; t = threading.Thread(target=__import__, args=('tensorflow',)); "
            "t.start(); t.join(); import tensorflow"
        ),
    ],
)
def test_framework_is_noticed_however_it_is_imported(runner: Runner, program: str) -> None:
    path = fake_framework(runner)
    check = (
        "\nassert tensorflow.value == 41\nprint(type(tensorflow.__loader__).__name__, "
        "'exec_module' in vars(tensorflow.__spec__.loader))"
    )
    ran = runner.run(runner.script(program + check), PYTHONPATH=path)
    assert (ran.status, ran.out, ran.err) == (0, "SourceFileLoader False\n", "")
    assert ran.hello["frameworks"] == {"tensorflow": "9.8.7"}


def test_looking_for_a_framework_is_not_using_it(runner: Runner) -> None:
    ran = runner.run(
        "-c",
        "import importlib.util as u; print(u.find_spec('tensorflow') is not None, "
        "u.find_spec('nothing_here'))",
        PYTHONPATH=fake_framework(runner),
    )
    assert ran.out == "True None\n"
    assert ran.hello["frameworks"] == {}


def test_failing_import_fails_as_ever(runner: Runner) -> None:
    ran = runner.run(
        "-c",
        "import tensorflow",
        PYTHONPATH=fake_framework(runner, "raise ImportError('no device')"),
    )
    assert ran.status == 1
    assert ran.err.rstrip().endswith("ImportError: no device")
    assert ran.hello["frameworks"] == {}


def test_framework_that_the_hook_does_not_understand_still_works(runner: Runner) -> None:
    runner.script("__version__ = '0.1'\n", "lib/torch/__init__.py")
    ran = runner.run(
        "-c",
        "import torch; print(torch.__version__)",
        PYTHONPATH=hooks_path(runner.folder / "lib"),
        PROFHARNESS_LAYERS="torch",
    )
    assert (ran.status, ran.out) == (0, "0.1\n")
    assert ran.err.startswith("profharness: the torch hook failed")
    assert len(ran.err.splitlines()) == 1
    assert ran.hello["hooks"] == ["sitecustomize"]
    assert "AttributeError" in ran.hello["messages"][0]
    assert "Traceback" in (runner.folder / "hooks" / f"hook-{ran.pid}.log").read_text()


# -- the user's own marks
# ---------------------------------------------------------------------------------------------


def test_marks_do_nothing_without_profharness(runner: Runner) -> None:
    program = runner.script(
        "import profharness_mark\nwith profharness_mark.range('load'):\n"
        "    profharness_mark.step(items=4)\nprint('ok')"
    )
    ran = runner.run(program, hooked=False, PYTHONPATH=str(WRAPPERS))
    assert (ran.status, ran.out, ran.err) == (0, "ok\n", "")


def test_steps_are_logged_with_times_and_items(runner: Runner) -> None:
    program = runner.script(
        "import profharness_mark, time\nstart = time.monotonic_ns()\nfor i in range(5):\n"
        "    with profharness_mark.range('work'): pass\n"
        "    profharness_mark.step(items=10 * i)\nprint(start, time.monotonic_ns())"
    )
    ran = runner.run(program)
    start, end = map(int, ran.out.split())
    assert [(step["n"], step["items"], step["source"]) for step in ran.steps()] == [
        (i, 10 * i, "mark") for i in range(5)
    ]
    stamps = [step["monotonic_ns"] for step in ran.steps()]
    assert start <= stamps[0]
    assert stamps == sorted(stamps)
    assert stamps[-1] <= end
    (path,) = ran.files("steps")
    assert path.relative_to(runner.folder) == Path(
        "artifacts", "steps", os.uname().nodename, str(ran.pid), f"steps-{ran.pid}.jsonl"
    )


def test_a_kill_loses_a_tenth_of_a_second_of_steps(runner: Runner) -> None:
    program = runner.script(
        "import profharness_mark, sys, time\nfor i in range(60):\n    profharness_mark.step()\n"
        "    time.sleep(0.01)\n"
        "print(i, flush=True)\nsys.stdin.read()"
    )
    env = runner.environment()
    with subprocess.Popen(
        [sys.executable, str(program)],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "59\n"
        process.send_signal(signal.SIGKILL)
    (path,) = (runner.folder / "artifacts").rglob("steps-*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["n"] for line in lines] == list(range(len(lines)))
    assert len(lines) >= 50


def test_forked_child_has_its_own_step_log(runner: Runner) -> None:
    program = runner.script(
        "import os, profharness_mark\nprofharness_mark.step(1)\npid = os.fork()\n"
        "profharness_mark.step(2 if pid else 3)\n"
        "if pid: os.waitpid(pid, 0)\n"
    )
    ran = runner.run(program)
    logs = {
        path.name: [json.loads(line)["items"] for line in path.read_text().splitlines()]
        for path in ran.files("steps")
    }
    assert logs.pop(f"steps-{ran.pid}.jsonl") == [1, 2]
    assert list(logs.values()) == [[3]]


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (("-c", "import sys; key = 'hunter2'"), ["-c", "..."]),
        (("-X", "dev", "-m", "this", "hunter2"), ["-X", "...", "-m", "this", "..."]),
        (("-c", "pass", "--password", "hunter2", "--token=hunter2", "-phunter2"), None),
        (("-c", "pass", "http://me:hunter2@host/", "hunter2", "--a b=hunter2"), None),
    ],
)
def test_hello_and_bye_hold_no_value_of_the_command_line(
    runner: Runner, program: tuple[str, ...], told: list[str] | None
) -> None:
    ran = runner.run(*program)
    assert ran.status == 0, ran.err
    kept = {path.name: path.read_bytes() for path in (runner.folder / "hooks").iterdir()}
    assert set(kept) == {f"hello-{ran.pid}.json", f"bye-{ran.pid}.json"}
    assert [name for name, content in kept.items() if b"hunter2" in content] == []
    if told is not None:
        for content in kept.values():
            assert json.loads(content)["argv"][1:] == told


def test_a_program_that_rewrote_its_title_tells_no_value(runner: Runner) -> None:
    program = (
        "from profharness_hooks.command_line import shown; print(shown(['python t --pw hunter2']), "
        "shown(['/bin/own', 'hunter2']), shown([]))"
    )
    assert runner.run("-c", program).out == "['python'] ['/bin/own', '...'] []\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "def load():\n    import no_such_module\nload()",
            "the program ended by ModuleNotFoundError: No module named 'no_such_module' (program.py:2)",
        ),
        (
            "import json\njson.loads('hunter2')",
            "the program ended by JSONDecodeError (program.py:2)",
        ),
        ("raise ValueError('hunter2')", "the program ended by ValueError (program.py:1)"),
        ("raise KeyboardInterrupt", None),
        ("raise SystemExit(3)", None),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass", None),
    ],
)
def test_an_exception_that_ends_the_program_is_noted_without_its_data(
    runner: Runner, body: str, said: str | None
) -> None:
    ran = runner.run(runner.script(body))
    assert ran.hello["messages"] == ([] if said is None else [said])
    assert said is None or said.startswith(ENDED_BY)
    assert "hunter2" not in json.dumps(ran.hello)


def test_an_exception_in_a_forked_child_is_its_own(runner: Runner) -> None:
    body = (
        "import os\npid = os.fork()\nif pid == 0:\n    raise ValueError('x')\n"
        "os.waitpid(pid, 0)\nprint(pid)"
    )
    ran = runner.run(runner.script(body))
    assert {hello["pid"]: hello["messages"] for hello in ran.hellos} == {
        ran.pid: [],
        int(ran.out): ["the program ended by ValueError (program.py:4)"],
    }
