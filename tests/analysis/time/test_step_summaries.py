from __future__ import annotations

import json
from functools import partial

import pytest

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time import step_summaries as step_summaries_module
from profharness.analysis.time.step_summaries import Selection, parse, step_summaries
from profharness.cli import run_cli
from profharness.errors import InputError, UsageError
from profharness.report.text.steps import lines
from profharness.trace.model import Device, Source
from tests.analysis.scene import Scene
from tests.steps import calls_of


def trace():
    """Ten compute units; three steps with a mark of 100 ns, each with a kernel at its begin: 50 ns
    that fill the device, 80 ns that fill a tenth, a collective of 40 ns. On the device they end
    with their kernels, and begin where the one before ended.
    """
    made = Scene()
    for number, (length, workgroups, name) in enumerate(
        ((50, 10, "gemm"), (80, 1, "small"), (40, 10, "ncclDevKernel_AllReduce"))
    ):
        made.mark("step", number * 100, number * 100 + 100, f"ProfilerStep#{number}")
        made.kernel(
            number * 100,
            number * 100 + length,
            made.launch(number * 100, number * 100 + 1),
            name=name,
            workgroups=workgroups,
        )
    return made.build()


def chosen(text="all"):
    whole = trace()
    return step_summaries(whole, KernelFacts(whole), parse(text))


def test_each_step_has_its_own_figures():
    found = chosen()
    assert [one.step for one in found] == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    assert [(one.start_ns, one.dur_ns) for one in found] == [(0, 50), (50, 130), (180, 60)]
    assert [one.metrics["compute"].value for one in found] == [1.0, 80 / 130, 0.0]
    assert [one.metrics["fill"].value for one in found] == pytest.approx([1, 8 / 130, 40 / 60])
    assert [one.metrics["fill_busy"].value for one in found] == pytest.approx([1.0, 0.1, 1.0])
    assert [one.metrics["exposed_communication"].value for one in found] == [0, 0, 40 / 60]
    for one in found:
        split = one.partition
        assert (
            split.compute_ns
            + split.exposed_communication_ns
            + split.exposed_copy_ns
            + split.idle_ns
            == one.dur_ns
        )


def test_the_steps_together_are_the_window():
    found, whole = chosen(), summarise_trace(trace(), "x")
    for part in ("compute_ns", "exposed_communication_ns", "idle_ns", "window_ns"):
        assert sum(getattr(one.partition, part) for one in found) == getattr(whole.partition, part)


def test_a_choice_of_steps():
    assert [one.step for one in chosen("1")] == ["ProfilerStep#1"]
    assert [one.step for one in chosen("1:")] == ["ProfilerStep#1", "ProfilerStep#2"]
    assert [one.step for one in chosen(":1")] == ["ProfilerStep#0"]
    assert (parse("10:30"), parse(":5"), parse("3"), parse("all")) == (
        Selection(10, 30),
        Selection(None, 5),
        Selection(3, 4),
        Selection(),
    )
    for text in ("7:9", "3", "3:"):
        with pytest.raises(UsageError, match="no record is left") as refused:
            chosen(text)
        assert refused.value.hint == "the trace holds steps 0 to 2"


def later(*names, kind="step"):
    """Marks of these names, 100 ns each, and a kernel in each."""
    made = Scene()
    for place, name in enumerate(names):
        made.mark(kind, place * 100, place * 100 + 100, name)
        made.kernel(place * 100, place * 100 + 50)
    return made.build()


def of(whole, text):
    return [
        (one.step, one.number, one.start_ns)
        for one in step_summaries(whole, KernelFacts(whole), parse(text))
    ]


@pytest.mark.parametrize("name", ["ProfilerStep#{}", "profharness.step:{}:64", "step {}"])
def test_steps_are_chosen_by_their_own_number(name):
    whole = later(*(name.format(number) for number in range(5, 25)))
    shown = "ProfilerStep#{}" if name.startswith("P") else "step {}"
    assert of(whole, "5:8") == [
        (shown.format(number), number, (number - 5) * 100) for number in (5, 6, 7)
    ]
    assert [number for _, number, _ in of(whole, "23:")] == [23, 24]
    assert [number for _, number, _ in of(whole, ":6")] == [5]
    for text, asked in (("0:3", "0:3"), (":5", ":5"), ("25", "25:26"), ("30:", "30:")):
        with pytest.raises(UsageError) as refused:
            of(whole, text)
        assert (refused.value.message, refused.value.hint) == (
            f"steps {asked}: no record is left",
            "the trace holds steps 5 to 24",
        )


def test_marks_without_numbers_are_chosen_by_their_place():
    whole = later("train", "train", "train")
    assert of(whole, "1:3") == [("train", None, 100), ("train", None, 200)]
    assert of(whole, "all") == [("train", None, 0), ("train", None, 100), ("train", None, 200)]
    with pytest.raises(UsageError, match="steps 3:4: no record is left") as refused:
        of(whole, "3")
    assert (
        refused.value.hint
        == "the trace holds steps 0 to 2 (they carry no numbers, and are counted from 0)"
    )


def test_trials_are_chosen_by_the_number_that_each_point_gave_them():
    whole = later(
        "profharness.trial:b:4:0",
        "profharness.trial:b:4:1",
        "profharness.trial:b8:0",
        "profharness.trial:b8:1",
        kind="trial",
    )
    assert of(whole, "1") == [("trial 1", 1, 100), ("trial 1", 1, 300)]


def test_a_trace_without_steps_says_so():
    made = Scene()
    made.kernel(0, 10)
    made.mark("range", 0, 10, "forward")
    whole = made.build()
    assert of(whole, "all") == []
    with pytest.raises(UsageError, match="steps 0:3: no record is left") as refused:
        of(whole, "0:3")
    assert refused.value.hint == (
        "the trace marks no steps; --step-range REGEX makes ranges of the program into "
        "steps: ranges there are 'forward'"
    )


def test_an_empty_range_is_refused():
    with pytest.raises(UsageError, match="the range 8:5 is empty"):
        parse("8:5")


@pytest.mark.parametrize("text", ["", ":", "x", "1:2:3", "-1", "1.5"])
def test_nonsense_is_refused(text):
    with pytest.raises(UsageError, match="names no steps"):
        parse(text)


def test_a_step_of_two_processes_is_one():
    made = Scene(
        sources=(Source("a", "kineto", pid=7), Source("b", "kineto", pid=7)),
        devices=(Device("0"), Device("1")),
    )
    for rank in range(2):
        made.mark("step", rank * 20, 100 + rank * 20, "ProfilerStep#0", source=rank)
        made.kernel(rank * 20, rank * 20 + 60, device=rank, source=rank)
    whole = made.build()
    (one,) = step_summaries(whole, KernelFacts(whole), Selection())
    assert (one.processes, one.start_ns, one.dur_ns, one.partition.window_ns) == (2, 0, 120, 240)
    assert one.metrics["compute"].value == 0.5


def test_trials_of_one_name_are_told_by_their_position():
    made = Scene()
    for number in range(3):
        made.mark("trial", number * 100, number * 100 + 50, "trial")
        made.kernel(number * 100, number * 100 + 10 * (number + 1))
    whole = made.build()
    assert [
        one.metrics["compute"].value
        for one in step_summaries(whole, KernelFacts(whole), Selection())
    ] == [0.2, 0.4, 0.6]


def test_marks_of_our_own_workers_read_as_words():
    made = Scene()
    for number, name in enumerate(("profharness.trial:torch-b4:0", "profharness.trial:torch-b4:1")):
        made.mark("trial", 100 * number, 100 * number + 50, name, point="torch-b4")
    whole = made.build()
    assert [one.step for one in step_summaries(whole, KernelFacts(whole), Selection())] == [
        "torch-b4 trial 0",
        "torch-b4 trial 1",
    ]


def test_what_all_steps_lack_is_said_once():
    made = Scene()
    made.mark("step", 0, 50, "step 0")
    whole = made.build()
    (said,) = [
        line
        for line in lines(step_summaries(whole, KernelFacts(whole), Selection()))
        if "not measured" in line
    ]
    assert said.startswith(
        "compute, comm. exposed, copy exposed, idle, launch-bound, fill, fill busy, occupancy, "
        "MFU: not measured: needs kernels"
    )


def test_on_the_command_line_and_in_json(shared, capsys):
    path = str(shared / "fixtures/kineto/a100_nccl_rank0of2.json.gz")
    assert run_cli(["metrics", path, "--steps", "5:7"]) == 0
    text = capsys.readouterr().out
    assert [number for number in range(10) if f"ProfilerStep#{number}" in text] == [5, 6]
    assert run_cli(["metrics", path, "--steps", "0:3"]) == 2
    said = capsys.readouterr().err
    assert "steps 0:3: no record is left" in said
    assert "the trace holds steps 4 to 6" in said
    assert run_cli(["metrics", path, "--steps", "all", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["steps"]
    assert [one["number"] for one in found] == [4, 5, 6]
    assert [one["step"] for one in found] == ["ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6"]
    assert all(
        0 < one["metrics"]["occupancy"]["value"] < 1 and 0 < one["metrics"]["fill"]["value"] < 1
        for one in found
    )
    assert run_cli(["metrics", path]) == 0
    assert "ProfilerStep#5" not in capsys.readouterr().out
    assert run_cli(["metrics", path, "--steps", "x"]) == 2


def test_a_repeat_of_a_point_is_a_step_of_its_own():
    made = Scene(sources=(Source("a", "trials", pid=7), Source("b", "trials", pid=7)))
    for source, (point, begin) in enumerate((("b4", 0), ("b4", 1000))):
        for number in range(2):
            made.mark(
                "trial",
                begin + number * 100,
                begin + number * 100 + 50,
                f"trial {number}",
                point=point,
                source=source,
            )
    whole = made.build()
    found = step_summaries(whole, KernelFacts(whole), Selection())
    assert [(one.step, one.start_ns, one.dur_ns) for one in found] == [
        ("b4 trial 0", 0, 50),
        ("b4 trial 1", 100, 50),
        ("b4 trial 0", 1000, 50),
        ("b4 trial 1", 1100, 50),
    ]


def stepped(count):
    """So many steps with a kernel each."""
    made = Scene()
    for number in range(count):
        made.mark("step", number * 100, number * 100 + 90, f"ProfilerStep#{number}")
        made.kernel(
            number * 100 + 5, number * 100 + 50, made.launch(number * 100, number * 100 + 1)
        )
    return made.build()


def test_more_steps_than_a_trace_of_so_few_records_has_are_refused(monkeypatch):
    monkeypatch.setattr(step_summaries_module, "STEPS", 3)
    trace = stepped(5)
    with pytest.raises(InputError, match="5 steps are more than the 3 that"):
        step_summaries(trace, KernelFacts(trace), parse("all"))
    assert len(step_summaries(trace, KernelFacts(trace), parse("1:4"))) == 3


def test_what_all_steps_say_is_worked_out_once():
    few, many = (
        calls_of(partial(step_summaries, trace, KernelFacts(trace), parse("all")))
        for trace in (stepped(40), stepped(160))
    )
    assert many < 4.5 * few


def test_the_place_of_a_step_without_a_number_counts_those_that_launch_nothing():
    """The first mark of each of two ranks launches nothing, and of the second rank its second."""
    scene = Scene(sources=(Source("a", "kineto", pid=7), Source("b", "kineto", pid=8)))
    for source, idle in enumerate(((0,), (0, 1))):
        for place in range(4):
            at, pid = 100 * place, 7 + source
            scene.mark("step", at, at + 100, "train", pid=pid, source=source)
            if place not in idle:
                launch = scene.launch(at + 5, at + 6, pid=pid, source=source)
                scene.kernel(at + 10, at + 90, launch, source=source, stream=source)
    whole = scene.build()
    facts = KernelFacts(whole)
    assert [one.processes for one in step_summaries(whole, facts, parse("all"))] == [1, 2, 2]
    (second,) = step_summaries(whole, facts, parse("1"))
    assert second.processes == 1
    with pytest.raises(UsageError, match="no record is left"):
        step_summaries(whole, facts, parse("0"))


def test_the_host_is_looked_at_while_all_devices_of_a_step_ran():
    scene = Scene(devices=(Device("0"), Device("1")))
    for number in range(3):
        at = 100 * number
        scene.mark("step", at, at + 100, f"ProfilerStep#{number}")
        for device in (0, 1):
            begin = at + 10 + 40 * device
            launch = scene.launch(at + 1 + device, at + 2 + device)
            scene.kernel(begin, begin + 100, launch, device=device, stream=device)
    for at in range(0, 360, 10):
        scene.sample("cpu_tree", at, at + 10, float(at))
    whole = scene.build()
    second = step_summaries(whole, KernelFacts(whole), parse("1"))[0]
    # it ran from 110 to 210 and from 150 to 250
    assert second.metrics["cores_used"].value == (150 + 200) / 2
