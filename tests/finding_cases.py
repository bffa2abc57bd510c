"""For each finding: the test that builds its situation, one close to it in which it must not
appear, and the recorded file that has it.

`recorded` names a file of the shared fixtures (checked by tests/analysis/test_fixture_findings.py,
or by the series' own tests), else says why none can.
"""

from __future__ import annotations

from dataclasses import dataclass

STUDY = "studies/particlenet_torch_published.csv"
OF_A_RUN = "it is of a run's passes, processes or point results, of which no recorded file tells"
OF_A_TOOL = "it is of how a tool ended or what it said, which its files do not hold"
OF_TELEMETRY = "no recorded file has telemetry beside it"
OF_LOAD = "no recorded file holds requests"
OF_TWO_FILES = "it is of a trace beside that of a capture, and says nothing of one file alone"
OF_A_NODE = "it is of the node and is told before a run, of which its files hold no trace"
NO_SNAPSHOTS = "no recorded file has readings of the host's clocks beside it"


@dataclass(frozen=True)
class Case:
    """Tests as `file::function` or `file::Class::function` below tests/."""

    builds: str
    absent: str
    recorded: str


_INTEGRITY, _TRIALS, _LOAD, _CURVE = (
    "analysis/verdict/test_integrity.py",
    "analysis/run/test_trial_findings.py",
    "stats/test_load.py",
    "analysis/curves/test_saturation.py",
)
_LAUNCHED = "analysis/verdict/test_steps_by_launch.py"
_SAID, _CLOCKS, _MEASURED = (
    "supervise/test_diagnosis.py::test_sentences_of_the_tools",
    "trace/clocks/test_align.py",
    "analysis/test_measurement_findings.py",
)
_USED = "analysis/efficiency"
_TIMELESS, _UNKNOWN = "analysis/time/test_timeless.py", "analysis/time/test_unknown_times.py"
_CALM = f"{_MEASURED}::test_a_calm_run_has_none"

CASES: dict[str, Case] = {
    # trace
    "kernels-missing": Case(
        f"{_INTEGRITY}::test_launches_that_lost_their_kernels",
        f"{_INTEGRITY}::test_kernels_beyond_the_end_of_the_file_are_not_missing",
        "every launch of the recorded traces has its kernel, or lies behind the last one that has",
    ),
    "launches-missing": Case(
        f"{_INTEGRITY}::test_kernels_whose_launches_are_not_in_the_file",
        f"{_INTEGRITY}::test_no_host_calls_is_no_missing_launch",
        "kineto/h100_qwen0.5b_prefill.json.gz",
    ),
    "times-missing": Case(
        f"{_TIMELESS}::test_records_without_times_have_no_place_in_a_window",
        f"{_TIMELESS}::test_records_that_all_have_times_are_not_told_of",
        "all recorded files have the times of all of their device work, or of none",
    ),
    "overlong-kernels": Case(
        f"{_UNKNOWN}::test_shares_and_idle_of_such_a_trace_are_ranges_and_sums_are_the_files",
        f"{_UNKNOWN}::test_branches_of_a_graph_and_small_overlaps_are_believed",
        "no kernel of the recorded files holds a whole successor of its stream",
    ),
    "host-ahead": Case(
        f"{_LAUNCHED}::test_it_is_told_by_how_much_the_host_ran_ahead",
        f"{_LAUNCHED}::test_a_host_that_waits_for_its_steps_did_not_run_ahead",
        "kineto/v100_epoch_ns_timestamps.json.gz",
    ),
    "work-of-others": Case(
        f"{_LAUNCHED}::test_work_that_no_step_launched_is_named_with_its_share",
        f"{_LAUNCHED}::test_without_other_work_nothing_is_said",
        "in the recorded traces the steps launch all but a thousandth of what runs in their window",
    ),
    "graph-replays": Case(
        "understand/test_replays.py::test_replays_that_a_capture_explains",
        "understand/test_replays.py::test_without_a_capture_nothing_is_said",
        OF_TWO_FILES,
    ),
    "graph-replays-unmatched": Case(
        "understand/test_replays.py::test_replays_that_a_capture_explains_in_order_are_no_success",
        "understand/test_replays.py::test_replays_that_a_capture_explains",
        OF_TWO_FILES,
    ),
    "graph-kernels-missing": Case(
        f"{_INTEGRITY}::test_replays_that_lost_kernels_against_other_steps",
        f"{_INTEGRITY}::test_full_replays_of_different_graphs_are_fine",
        "the recorded graph traces are whole: every launch shows its kernels, "
        "equally many in each step",
    ),
    "steps-without-device-events": Case(
        f"{_INTEGRITY}::test_steps_in_which_the_tracer_stopped_recording",
        f"{_INTEGRITY}::test_a_step_whose_kernels_run_later_or_that_launches_nothing_is_fine",
        "every step of the recorded traces has device work",
    ),
    "step-range-unmatched": Case(
        "understand/test_steps.py::test_what_a_run_recorded_counts_from_then_on",
        "understand/test_steps.py::test_ranges_that_match_are_no_finding",
        "no recorded file is of a run that named its steps",
    ),
    "empty-trace": Case(
        f"{_INTEGRITY}::test_operators_alone_are_no_empty_trace_but_launches_without_kernels_are",
        f"{_INTEGRITY}::test_totals_alone_are_no_empty_trace",
        "rocm/rocprofv3/pftrace/mi300a_3634743_results_EMPTY.pftrace",
    ),
    "ceiling-not-believed": Case(
        "analysis/verdict/test_above_peak.py::test_a_measured_ceiling_is_a_weaker_bound",
        "analysis/verdict/test_above_peak.py::test_a_ceiling_is_believed_up_to_a_fifth_above_it",
        "recorded files have no calibration beside them",
    ),
    "steps-grow": Case(
        "analysis/run/test_growing.py::test_a_run_whose_inputs_grow_with_each_step",
        "analysis/run/test_growing.py::test_steps_that_do_not_grow_all_the_way",
        "no recorded file holds steps that grow all the way",
    ),
    "start-up": Case(
        "analysis/verdict/test_start_up.py::test_a_first_launch_inside_of_the_window_is_no_limit",
        "analysis/verdict/test_start_up.py::test_a_short_first_launch_is_not_worth_a_word",
        "kineto/mi250_minitoy_rocm6.2.json.gz",
    ),
    "truncated-file": Case(
        f"{_INTEGRITY}::test_problems_stand_among_the_findings",
        f"{_INTEGRITY}::test_problems_of_readers_that_make_a_trace_incomplete",
        "no recorded file is cut; analysis/test_fixture_findings.py cuts six of them",
    ),
    "events-dropped": Case(
        f"{_INTEGRITY}::test_problems_of_readers_that_make_a_trace_incomplete",
        f"{_INTEGRITY}::test_a_complete_trace_has_no_findings",
        "no recorded tool dropped records",
    ),
    "idle-contradicted": Case(
        "analysis/power/test_contradictions.py::test_a_gap_in_which_the_driver_sees_work_is_an_error",
        "analysis/power/test_contradictions.py::test_a_gap_in_which_the_tool_recorded_nothing_at_all_is_a_pause",
        OF_TELEMETRY,
    ),
    "run-incomplete": Case(
        "runs/test_unfinished_runs.py::test_missing_points_and_passes_are_named",
        "runs/test_unfinished_runs.py::test_a_complete_run_lacks_nothing",
        OF_A_RUN,
    ),
    "output-lost": Case(
        "rundir/test_lost.py::test_one_finding_names_the_files_the_reasons_and_the_first_time",
        "rundir/test_lost.py::test_nothing_lost_is_no_finding",
        OF_A_RUN,
    ),
    "nothing-recorded": Case(
        "supervise/test_missing_records.py::test_each_cause_is_told",
        "supervise/test_missing_records.py::test_what_was_recorded_is_no_finding_except_for_a_process_that_was_cut_off",
        OF_A_RUN,
    ),
    "hook-message": Case(
        "supervise/test_missing_records.py::test_messages_are_published_once_per_sentence",
        "supervise/test_missing_records.py::test_processes_without_messages_say_nothing",
        OF_A_RUN,
    ),
    "fork-not-recorded": Case(
        "supervise/test_missing_records.py::test_a_forked_user_of_a_framework_is_advised_to_spawn",
        "supervise/test_missing_records.py::test_a_framework_without_a_hook_is_noticed",
        OF_A_RUN,
    ),
    "hook-not-loaded": Case(
        "supervise/test_missing_records.py::test_a_framework_without_a_hook_is_noticed",
        "runs/test_runs.py::test_a_command_is_passed_on_untouched_and_its_steps_are_found",
        OF_A_RUN,
    ),
    "above-peak": Case(
        "analysis/verdict/test_above_peak.py::test_a_trace_that_does_more_than_its_device_can",
        "analysis/verdict/test_above_peak.py::test_a_little_above_the_peak_is_possible",
        "the recorded products stay below the peaks of the types that they ran in",
    ),
    "impossible-figures": Case(
        "analysis/verdict/test_impossible.py::test_records_that_cannot_be_withhold_the_verdict",
        "analysis/verdict/test_impossible.py::test_of_a_sound_trace_nothing_is_said",
        "readers repair or leave out what cannot be, and no recorded file holds any",
    ),
    "formula-misfit": Case(
        "analysis/operators/test_coverage.py::test_entries_that_do_not_fit_are_counted",
        "analysis/operators/test_coverage.py::test_where_entries_fit_nothing_is_said",
        "the entries that come with profharness fit every call of the recorded traces",
    ),
    "kernels-differ": Case(
        "analysis/run/test_summary.py::test_kernels_of_two_passes",
        "analysis/run/test_work.py::test_busy_and_fill_of_the_bare_pass_keep_their_bounds_and_above_one_is_a_finding",
        OF_A_RUN,
    ),
    # profiler
    "profiler-overhead": Case(
        "analysis/run/test_summary.py::test_overhead_comes_from_the_passes", _CALM, OF_A_RUN
    ),
    "serialising-counters": Case(
        "runs/test_amd_splitting.py::test_refused_counters_are_halved_until_they_fit",
        "runs/test_amd_windows.py::test_a_period_of_time_that_the_tool_keeps_to_itself",
        OF_A_RUN,
    ),
    "profiler-failed": Case("supervise/test_diagnosis.py::test_nothing_recorded", _SAID, OF_A_TOOL),
    "profiler-hung": Case(
        "supervise/test_diagnosis.py::test_a_profilers_end_is_never_the_workloads", _SAID, OF_A_TOOL
    ),
    "launcher-traced": Case(
        "supervise/test_diagnosis.py::test_the_launcher_was_traced_instead_of_the_workers",
        _SAID,
        OF_A_TOOL,
    ),
    "mixed-rocm": Case(
        _SAID, "supervise/test_diagnosis.py::test_a_profilers_end_is_never_the_workloads", OF_A_TOOL
    ),
    "profiler-attached": Case(
        "layers/test_clashes.py::test_a_profiler_that_is_attached_already",
        "layers/test_clashes.py::test_a_node_in_order_has_none",
        OF_A_NODE,
    ),
    "nothing-by-line": Case(
        "runs/test_rocprofv3_runs.py::test_kernels_that_are_shorter_than_the_interval_are_no_silent_nothing",
        "runs/test_rocprofv3_runs.py::test_program_counters_and_threads_have_passes_of_their_own",
        OF_A_TOOL,
    ),
    "known-fault": Case(
        "layers/test_clashes.py::test_a_lock_of_another_user",
        "layers/test_clashes.py::test_a_node_in_order_has_none",
        "kineto/mi300x_bert_small.json.gz",
    ),
    "no-device-access": Case(
        _SAID, "supervise/test_diagnosis.py::test_a_profilers_end_is_never_the_workloads", OF_A_TOOL
    ),
    "counters-inexact": Case(
        _SAID, "supervise/test_diagnosis.py::test_a_profilers_end_is_never_the_workloads", OF_A_TOOL
    ),
    "counters-refused": Case(
        "measure/test_counter_split.py::test_what_is_said_of_a_refusal", _SAID, OF_A_TOOL
    ),
    "counters-split": Case(
        "measure/test_counter_split.py::test_what_is_said_of_a_refusal",
        "runs/test_amd_windows.py::test_a_period_of_time_that_the_tool_keeps_to_itself",
        OF_A_TOOL,
    ),
    "ranks-apart": Case(
        "runs/test_runs_of_a_step.py"
        "::test_ranks_that_nobody_can_tell_are_runs_of_their_own_and_say_how_to_join",
        "runs/test_runs_of_a_step.py::test_a_name_joins_them",
        OF_A_RUN,
    ),
    "rank-lost": Case(
        "measure/test_traced_ranks.py"
        "::test_rank_0_without_the_tool_waits_for_the_tools_around_the_others",
        "runs/test_runs_of_a_step.py::test_a_name_joins_them",
        OF_A_RUN,
    ),
    **{
        cause: Case(
            "analysis/run/test_job_end.py::test_what_ended_the_job_is_told",
            "analysis/run/test_job_end.py::test_a_job_that_ended_by_itself_has_none",
            OF_A_RUN,
        )
        for cause in ("node-lost", "time-limit", "cancelled")
    },
    "tasks-missing": Case(
        "understand/many/test_tasks.py::test_tasks_that_are_missing_have_names",
        "understand/many/test_tasks.py::test_where_all_are_done_none_is_missing",
        "it is of a folder of runs, of which no recorded file tells",
    ),
    "steps-not-captured": Case(
        "analysis/run/test_captures.py::test_a_window_that_closed_before_the_steps_is_said",
        "analysis/run/test_captures.py::test_captures_of_the_same_steps_are_nothing_to_say",
        OF_A_RUN,
    ),
    "captures-differ": Case(
        "analysis/run/test_captures.py::test_ranks_that_captured_different_steps_are_named",
        "analysis/run/test_captures.py::test_captures_of_the_same_steps_are_nothing_to_say",
        OF_A_RUN,
    ),
    "window-cut": Case(
        "runs/test_amd_windows.py::test_only_the_steps_asked_for",
        "runs/test_amd_windows.py::test_a_period_of_time_that_the_tool_keeps_to_itself",
        OF_A_RUN,
    ),
    "profiler-changed-exit": Case(
        "supervise/test_diagnosis.py::test_a_profilers_end_is_never_the_workloads", _SAID, OF_A_TOOL
    ),
    # clock
    "clock-residual": Case(
        f"{_CLOCKS}::test_markers_that_contradict_one_another",
        f"{_CLOCKS}::test_markers_enclose_the_true_error",
        "no recorded file holds our markers",
    ),
    "clock-unaligned": Case(
        f"{_CLOCKS}::test_sources_that_stay_apart_are_named",
        f"{_CLOCKS}::test_a_source_that_is_aligned_is_not_named",
        NO_SNAPSHOTS,
    ),
    "clock-causality": Case(
        "trace/clocks/test_causality.py::test_a_kernel_that_ends_after_the_return_needs_a_shift_back",
        "trace/clocks/test_causality.py::test_without_linked_kernels_nothing_is_said",
        "kineto/mi300x_qwen0.5b_prefill.json.gz",
    ),
    "suspended-host": Case(
        f"{_CLOCKS}::test_a_host_that_slept_matters_during_the_run_or_under_kineto_on_amd",
        f"{_CLOCKS}::test_a_host_that_slept_matters_during_the_run_or_under_kineto_on_amd",
        NO_SNAPSHOTS,
    ),
    "clock-stepped": Case(
        f"{_CLOCKS}::test_a_stepped_wall_clock_is_an_error_where_it_is_stamped",
        f"{_CLOCKS}::test_a_stepped_wall_clock_is_an_error_where_it_is_stamped",
        NO_SNAPSHOTS,
    ),
    # measurement
    "warmup-leak": Case(
        f"{_TRIALS}::test_slow_decay_is_a_leak",
        f"{_TRIALS}::test_a_far_trial_that_moves_nothing_is_no_finding",
        STUDY,
    ),
    "outlier-trial": Case(
        f"{_TRIALS}::test_one_slow_trial",
        f"{_TRIALS}::test_skewed_but_clean_trials_raise_nothing",
        "the published series have a few trials per level only",
    ),
    "missing-sync": Case(
        f"{_TRIALS}::test_launch_only_trials",
        f"{_TRIALS}::test_a_clock_boost_is_not_a_missing_sync",
        STUDY,
    ),
    "too-few-trials": Case(
        f"{_TRIALS}::test_too_few",
        f"{_TRIALS}::test_skewed_but_clean_trials_raise_nothing",
        OF_A_RUN,
    ),
    "throttled": Case(
        f"{_MEASURED}::test_a_device_held_back_is_throttled_by_its_cause", _CALM, OF_TELEMETRY
    ),
    "energy-counter": Case(
        "stats/test_packages.py::test_a_counter_that_disagrees_is_a_finding_and_not_used",
        "stats/test_packages.py::test_a_counter_that_agrees_is_no_finding",
        OF_TELEMETRY,
    ),
    "power-sensor": Case(
        "stats/test_packages.py::test_a_slow_sensor_is_a_finding_with_its_period_and_delay",
        "stats/test_packages.py::test_a_counter_that_agrees_is_no_finding",
        OF_TELEMETRY,
    ),
    "socket-traffic": Case(
        "analysis/run/test_socket_traffic.py::test_collectives_over_sockets_are_told",
        "analysis/run/test_socket_traffic.py::test_small_talk_and_other_interfaces_are_not",
        OF_TELEMETRY,
    ),
    "network-timeouts": Case(
        "analysis/run/test_network_timeouts.py::test_timeouts_are_told_with_their_node",
        "analysis/run/test_network_timeouts.py::test_retries_and_pauses_are_not",
        OF_TELEMETRY,
    ),
    "node-apart": Case(
        "analysis/power/test_nodes.py::test_a_slow_device_is_named_with_its_ratio",
        "analysis/power/test_nodes.py::test_like_nodes_make_no_finding",
        OF_TELEMETRY,
    ),
    "device-shared": Case(
        f"{_MEASURED}::test_other_processes_on_the_device_share_it", _CALM, OF_TELEMETRY
    ),
    "cpu-pressure": Case(
        "analysis/run/test_summary.py::test_cpu_pressure_and_gaps",
        "analysis/run/test_summary.py::test_cpu_pressure_and_gaps",
        OF_TELEMETRY,
    ),
    "sampler-gaps": Case(
        "analysis/run/test_summary.py::test_cpu_pressure_and_gaps", _CALM, OF_TELEMETRY
    ),
    "power-cap-left": Case(
        "measure/caps/test_endings.py::test_a_cap_of_somebody_else_is_left_alone",
        "measure/caps/test_endings.py::test_a_run_that_ends_well_sets_it_again",
        OF_A_NODE,
    ),
    "device-counters-hidden": Case(
        "analysis/power/test_device_counters.py::test_hidden_units_are_a_finding",
        "analysis/power/test_device_counters.py::test_counters_that_all_see_have_none",
        OF_TELEMETRY,
    ),
    "device-counters-limiter": Case(
        "analysis/power/test_device_counters.py::test_the_limiter_is_named_where_units_were_counted",
        "analysis/power/test_device_counters.py::test_counters_that_all_see_have_none",
        OF_TELEMETRY,
    ),
    "device-counters-exporter": Case(
        "analysis/power/test_device_counters.py::test_whose_counters_they_are_and_that_they_ended",
        "analysis/power/test_device_counters.py::test_counters_that_all_see_have_none",
        OF_TELEMETRY,
    ),
    "cold-cache": Case(
        "analysis/run/test_summary.py::test_findings_on_trials_caches_and_compilation",
        _CALM,
        OF_A_RUN,
    ),
    "compiled-in-trials": Case(
        "analysis/run/test_provider_findings.py::test_compiling_inside_of_trials_is_of_its_point",
        "analysis/run/test_provider_findings.py::test_a_session_on_what_was_asked_says_nothing",
        OF_A_RUN,
    ),
    "device-fallback": Case(
        "analysis/run/test_provider_findings.py::test_a_fallback_is_said_once_for_all_points_that_have_it",
        "analysis/run/test_provider_findings.py::test_a_session_on_what_was_asked_says_nothing",
        OF_A_RUN,
    ),
    "answers-differ": Case(
        "analysis/load/test_ragged.py::test_answers_that_change_with_the_batch_are_an_error_once",
        "analysis/load/test_ragged.py::test_answers_that_stay_the_same_say_nothing",
        OF_A_RUN,
    ),
    "nodes-on-cpu": Case(
        "analysis/run/test_provider_findings.py::test_nodes_on_the_cpu_are_counted",
        "analysis/run/test_provider_findings.py::test_a_session_on_what_was_asked_says_nothing",
        OF_A_RUN,
    ),
    "operators-unsupported": Case(
        "analysis/run/test_provider_findings.py::test_the_share_of_an_engine_is_said_once_where_it_is_not_all",
        "analysis/run/test_provider_findings.py::test_a_session_on_what_was_asked_says_nothing",
        OF_A_RUN,
    ),
    "memory-not-bound": Case(
        "analysis/run/test_provider_findings.py::test_memory_that_could_not_be_bound_is_said_once",
        "analysis/run/test_provider_findings.py::test_a_session_on_what_was_asked_says_nothing",
        OF_A_RUN,
    ),
    "failed-to-compile": Case(
        "analysis/run/test_summary.py::test_findings_on_trials_caches_and_compilation",
        _CALM,
        OF_A_RUN,
    ),
    "drift": Case(
        "analysis/run/test_summary.py::test_drift_widens_the_interval_and_is_found",
        f"{_TRIALS}::test_drift_finding_only_beyond_chance",
        OF_A_RUN,
    ),
    "point-failed": Case(
        "runs/test_runs.py::test_a_failing_point_costs_itself_only_and_json_stays_pure",
        _CALM,
        OF_A_RUN,
    ),
    # load
    "littles-law": Case(
        f"{_LOAD}::test_a_wrong_throughput_breaks_littles_law",
        f"{_LOAD}::test_small_batches",
        OF_LOAD,
    ),
    "generator-bound": Case(
        f"{_LOAD}::test_a_busy_client_process_is_the_limit",
        f"{_LOAD}::test_a_busy_client_process_is_the_limit",
        OF_LOAD,
    ),
    "unstable-level": Case(
        f"{_LOAD}::test_a_drift_inside_the_window_is_unstable",
        f"{_LOAD}::test_small_batches",
        OF_LOAD,
    ),
    "rate-not-reached": Case(
        f"{_LOAD}::test_a_server_that_cannot_keep_the_rate_is_not_the_generators_fault",
        f"{_LOAD}::test_a_rate_that_is_kept_is_no_finding",
        OF_LOAD,
    ),
    "errors": Case(
        f"{_LOAD}::test_failures_are_counted_and_not_in_the_rate",
        f"{_LOAD}::test_small_batches",
        OF_LOAD,
    ),
    "small-batches": Case(f"{_LOAD}::test_small_batches", f"{_LOAD}::test_small_batches", OF_LOAD),
    # curve
    "step": Case(f"{_CURVE}::test_published_steps", f"{_CURVE}::test_clean_batch_series", STUDY),
    "falls-after-peak": Case(
        f"{_CURVE}::test_usl_series_with_a_fall",
        f"{_CURVE}::test_fall_needs_more_than_noise",
        "the published series rise or stay flat to their end",
    ),
    "peak-beyond-range": Case(
        f"{_CURVE}::test_usl_series_without_a_fall_has_no_peak",
        f"{_CURVE}::test_usl_series_with_a_fall",
        "it is of series over clients; the published ones are over batches",
    ),
    "superlinear": Case(
        f"{_CURVE}::test_superlinear_clients",
        f"{_CURVE}::test_usl_series_with_a_fall",
        "it is of series over clients; the published ones are over batches",
    ),
    "poor-fit": Case(
        f"{_CURVE}::test_a_sharp_corner_is_no_usl",
        f"{_CURVE}::test_usl_series_with_a_fall",
        "every published series is fitted within its limit",
    ),
    # communication
    "exposed-communication": Case(
        "analysis/communication/test_figures.py::TestOfARun::test_ranks_on_the_runs_clock_are_compared_as_they_are",
        "analysis/communication/test_on_cpu.py::test_ranks_in_step_and_short_collectives_give_no_finding",
        "kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz",
    ),
    "clock-by-collectives": Case(
        "understand/test_rank_clocks.py::test_the_report_of_the_files_says_it_too",
        "understand/test_rank_clocks.py::test_one_file_alone_has_nothing_to_put_together",
        "it is raised for several files together, and each recorded file is read alone",
    ),
    "straggler": Case(
        "analysis/communication/test_figures.py::TestOverRanks::test_who_is_late_who_waits_and_how_long",
        "analysis/communication/test_figures.py::TestOverRanks::test_a_late_rank_by_chance_is_no_straggler",
        "the one recorded pair of ranks has ten collectives, of which neither is late in most",
    ),
    # use of the device
    "layout-under-convolutions": Case(
        f"{_USED}/test_layout.py::test_transposes_under_a_convolution_of_contiguous_tensors",
        f"{_USED}/test_layout.py::test_few_transposes_and_transposes_elsewhere_are_no_finding",
        "kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz",
    ),
    "copies-under-products": Case(
        f"{_USED}/test_layout.py::test_casts_inside_of_a_product",
        f"{_USED}/test_layout.py::test_other_copies_are_no_operands",
        "kineto/mi300x_timesformer.json.gz",
    ),
    "fp32-products": Case(
        f"{_USED}/test_precision.py"
        "::test_products_in_full_precision_where_the_device_has_a_faster_one",
        f"{_USED}/test_precision.py::test_products_that_are_rounded_or_cannot_be_are_no_finding",
        "the recorded programs multiply in half precision or TF32, or on devices without TF32",
    ),
    "tile-waste": Case(
        f"{_USED}/test_tile_waste.py::test_products_that_do_not_fill_their_tiles",
        f"{_USED}/test_tile_waste.py::test_products_that_lose_nothing_are_no_finding",
        "kineto/mi300x_timesformer.json.gz",
    ),
    "contention": Case(
        f"{_USED}/test_contention.py::test_kernels_that_take_longer_in_company",
        f"{_USED}/test_contention.py"
        "::test_what_cannot_be_compared_or_does_not_differ_is_no_finding",
        "kineto/a100_train_rank3of8_intus.json.gz",
    ),
    # system
    "streams-exceed-queues": Case(
        f"{_INTEGRITY}::test_more_busy_streams_than_hardware_queues",
        f"{_INTEGRITY}::test_streams_that_are_busy_in_turn_share_nothing",
        "the recorded AMD traces have two streams at most",
    ),
    "mask-applied-twice": Case(
        "analysis/run/test_checks.py::test_two_masks_one_after_the_other",
        "analysis/run/test_checks.py::test_one_mask_or_one_that_changes_nothing",
        OF_A_RUN,
    ),
    "secrets-in-artifact": Case(
        "secrets/test_scrub.py::test_one_finding_of_all_files_with_names_only",
        "secrets/test_scrub.py::test_one_finding_of_all_files_with_names_only",
        "the recorded databases hold the environment of their makers, without secrets",
    ),
}
