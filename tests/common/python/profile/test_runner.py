"""Profiling a pair under stand-ins for nsys and ncu: what arrives in the result, and the line that each way to fail leaves."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from common.python.errors import SideFailure, Status
from common.python.pairs.claims import parse_claim
from common.python.pairs.directives import Directives
from common.python.profile import runner
from common.python.profile.runner import profile_red, profile_row, sets_in
from common.python.profile.tools import Ended, run_job
from common.python.prove.collect import add_counters
from common.python.prove.proofs import Seen, prove
from common.python.results import StepTrace
from common.python.session.session import Sanitized
from tests.support.commands import OPTIMIZED, run_here, write_pair
from tests.support.factories import a_row, a_timing
from tests.support.plans import WITH_GPU
from tests.support.profiled import STAND_INS, a_pair, a_session, put_on_path

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
CLAIM = f"counter {SECTORS} < 0.2 x baseline"
WORK = {"default": {"dram_read": 67_108_864.0, "dram_write": 67_108_864.0}}


@pytest.fixture
def profiled(tmp_path, monkeypatch):
    """Profiles demo:double with the stand-ins in `mode`; the files are in tmp_path / "run" / "demo_double"."""

    def profile(mode="", tools=("nsys", "ncu"), limit_s=60.0, choices=None, program="skip", **changes):
        put_on_path(monkeypatch, *tools, folder=tmp_path / "tools", mode=mode, program=program)
        directives = {"baseline": Directives(), "optimized": Directives(proves=(CLAIM,))}
        plan = a_pair(tmp_path, **{"side_directives": directives, "work": WORK} | changes)
        return profile_row(plan, a_session(tmp_path / "run", limit_s=limit_s, **{"profile": "minimal"} | (choices or {})))

    return profile


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run" / "ch07_double"


def test_a_step_of_each_side_arrives_in_the_result(profiled, folder):
    found = profiled(program="run")
    baseline, optimized = found.of("baseline"), found.of("optimized")
    assert (baseline.step.source, baseline.step.launches, baseline.step.kernels, baseline.step.copies) == ("nsys", 2, 2, 1)
    assert (optimized.step.launches, optimized.step.kernels, optimized.step.copies) == (1, 1, 1)
    # Kernels at 100 to 300 and 400 to 600 ns, the copy at 150 to 250, the host in the step for 200.
    assert (baseline.step.host_ns, baseline.step.span_ns, baseline.step.busy_ns, baseline.step.overlap_share) == (200, 500, 400, 1.0)
    assert list(baseline.kernels) == ["copy(const float *, float *, int)"]
    assert baseline.counters["gpu__time_duration.sum"] == 2 * 84_700
    assert optimized.counters["gpu__time_duration.sum"] == 2 * 36_700
    assert optimized.counters["launch__registers_per_thread"] == 32
    assert baseline.counters["sm__throughput.avg.pct_of_peak_sustained_elapsed"] == 50.5
    assert found.notes[:2] == ["profile: nsys 2025.3.1.90 traced a step a side", "profile: ncu 2025.3.1.0 counted minimal in a step a side"]
    left = {path.name for path in folder.iterdir() if path.is_file()}
    assert {"profile.nsys-rep", "profile.ncu-rep", "profile_counters.csv", "profile_cuda_gpu_trace.csv", "profile.chrome.json"} <= left
    assert "profile.sqlite" not in left
    events = json.loads((folder / "profile.chrome.json").read_text())["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(processes.values()) == ["ch07:double/baseline", "ch07:double/optimized"]
    assert {event["pid"] for event in events if event["ph"] == "X"} == set(processes)


def test_several_ranks_are_not_profiled_and_a_note_says_so(profiled):
    found = profiled(program="run", ranks=2)
    assert (found.steps, found.launches) == ({}, {})
    assert found.notes == ["profile: none of 2 ranks, as a step under a profiler runs in one process"]


def test_a_counter_that_a_claim_names_is_counted_at_every_level_and_decides_the_claim(profiled):
    found = profiled()
    assert found.counters["baseline"][SECTORS] == 2 * 8_388_608
    assert SECTORS in found.of("optimized").counters
    evidence = {side: {"90a": Seen()} for side in ("baseline", "optimized")}
    claim = parse_claim(CLAIM, separates=True)
    assert prove(claim, "optimized", evidence).state == "unchecked"
    for side, counters in found.counters.items():
        add_counters(evidence[side], WITH_GPU, counters)
    assert prove(claim, "optimized", evidence).state == "proven"
    turned = {"baseline": evidence["optimized"], "optimized": evidence["baseline"]}
    failed = prove(claim, "optimized", turned)
    assert (failed.state, "1.67772e+07" in failed.detail) == ("failed", True)


def test_what_is_counted_at_another_shape_neither_proves_nor_refutes(profiled):
    """A claim on counters is about the shape that its author chose."""
    found = profiled()
    evidence = {side: {"90a": Seen()} for side in ("baseline", "optimized")}
    for side, counters in found.counters.items():
        add_counters(evidence[side], WITH_GPU, counters, "it is about another shape")
    for one, other in (("baseline", "optimized"), ("optimized", "baseline")):
        turned = {"baseline": evidence[one], "optimized": evidence[other]}
        proof = prove(parse_claim(CLAIM, separates=True), "optimized", turned)
        assert (proof.state, proof.detail) == ("unchecked", "it is about another shape")


@pytest.mark.parametrize(
    ("choices", "expected", "absent"),
    [
        ({"profile": "minimal"}, ("--cache-control all --metrics gpu__time", SECTORS), "--set"),
        ({"profile": "roofline"}, ("--set roofline", SECTORS, "lts__t_sector_hit_rate.pct"), "--set full"),
        ({"profile": "deep_dive"}, ("--set full", SECTORS), "--set roofline"),
        ({"profile": "deep_dive", "ncu_metric_set": "minimal"}, ("--metrics gpu__time",), "--set"),
    ],
)
def test_a_level_is_a_preset_of_ncu(profiled, folder, choices, expected, absent):
    profiled(choices=choices)
    (arguments,) = (folder / "ncu_arguments.txt").read_text().splitlines()
    assert arguments.startswith("--clock-control none --profile-from-start off --target-processes all --nvtx")
    assert all(words in arguments for words in expected)
    assert absent not in arguments


def test_a_preset_of_none_leaves_ncu_out(profiled, folder):
    found = profiled(choices={"profile": "minimal", "ncu_metric_set": "none"})
    assert (found.counters, found.of("baseline").step.source) == ({}, "nsys")
    assert not (folder / "ncu_arguments.txt").exists()


def test_a_hot_workload_is_counted_with_the_caches_as_they_are(profiled, folder):
    profiled(cache="hot")
    assert "--cache-control none" in (folder / "ncu_arguments.txt").read_text()


FAILURES = {
    "permission": "profile: ncu: the driver keeps the GPU's counters for root (ERR_NVGPUCTRPERM); run as root, with CAP_SYS_ADMIN in a "
    "container, or have NVreg_RestrictProfilingToAdminUsers=0 set",
    "none": "profile: ncu: it wrote no report, exit code 0 (No kernels were profiled.); expected profile.ncu-rep",
    "side": "profile: ncu: no launch is in the range of optimized; expected some of each side",
    "unknown": "profile: ncu: does not know sm__throughput.avg.pct_of_peak_sustained_elapsed; counted without",
}


@pytest.mark.parametrize("mode", FAILURES)
def test_what_ncu_does_not_give_is_a_line_and_nsys_is_kept(profiled, mode):
    found = profiled(mode)
    assert FAILURES[mode] in found.notes
    assert found.of("optimized").step.source == "nsys"
    assert set(found.counters) == {"permission": set(), "none": set(), "side": {"baseline"}, "unknown": {"baseline", "optimized"}}[mode]


def test_a_side_that_only_copies_is_no_failure_of_ncu():
    sides = ("optimized", "library", "lost")
    trace = {"source": "nsys", "launches": 1, "host_ns": 1.0, "span_ns": 1.0, "busy_ns": 1.0}
    steps = {
        "optimized": StepTrace(kernels=1, copies=0, **trace),
        "library": StepTrace(kernels=0, copies=1, **trace),
        "lost": StepTrace(kernels=1, copies=0, **trace),
    }
    assert runner._uncounted(sides, runner.Profiling(steps=steps, launches={"optimized": ()})) == [
        "profile: ncu: library launches no kernel, and ncu counts nothing else",
        "profile: ncu: no launch is in the range of lost; expected some of each side",
    ]
    assert "in the range of library" in runner._uncounted(sides, runner.Profiling(launches={"optimized": ()}))[0]


def test_a_side_of_many_kernels_is_left_to_the_trace(profiled, folder, monkeypatch):
    monkeypatch.setattr(runner, "_MOST_KERNELS", 1)
    found = profiled()
    assert (set(found.counters), found.of("baseline").step.kernels) == ({"optimized"}, 2)
    assert "profile: ncu: baseline launches 2 kernels a step; expected at most 1, so only the trace tells of it" in found.notes
    assert [Path(side["side"]).stem for side in json.loads((folder / "profile_ncu.job.json").read_text())["sides"]] == ["optimized_double"]


def test_where_every_side_has_many_kernels_ncu_is_not_started(profiled, folder, monkeypatch):
    monkeypatch.setattr(runner, "_MOST_KERNELS", 0)
    assert profiled().counters == {}
    assert not (folder / "ncu_arguments.txt").exists()


def test_counters_that_a_result_can_do_without_are_left_out_where_ncu_refuses_some(profiled, folder):
    found = profiled("refuse", choices={"profile": "roofline"})
    assert SECTORS in found.counters["baseline"]
    assert any(note.startswith("profile: ncu: does not know sm__warps_active") for note in found.notes)
    assert len((folder / "ncu_arguments.txt").read_text().splitlines()) == 2


def test_a_set_that_this_ncu_does_not_have_is_a_line(profiled):
    found = profiled("noset", choices={"profile": "roofline"})
    assert "profile: ncu: no set roofline; it has basic, detailed, full, roof" in found.notes
    assert found.counters["baseline"]["dram__bytes.sum"] == 2 * 268_435_456


@pytest.mark.parametrize(
    ("mode", "line"),
    [
        (
            "importer",
            (
                "profile: nsys: it recorded a step and wrote no report: its importer failed (Importer error status: An unknown error "
                "occurred.); expected profile.nsys-rep; torch.profiler traced instead"
            ),
        ),
        ("empty", "profile: nsys: no range ch07:double/baseline; torch.profiler traced instead"),
    ],
)
def test_where_nsys_gives_nothing_torch_profiler_traces(profiled, mode, line, monkeypatch):
    monkeypatch.setattr("common.python.profile.runner.run_job", traced_at_once)
    found = profiled(mode)
    assert found.notes[0] == line
    assert found.of("optimized").step.source == "torch.profiler"
    assert found.of("optimized").step.host_ns == 2500


def traced_at_once(under, job, *others):
    """As run_job, but for torch.profiler's own process: it would need the GPU that nothing here brings."""
    if under:
        return run_job(under, job, *others)
    for side in job.sides:
        event = {"ph": "X", "cat": "user_annotation", "name": side.label, "ts": 1.0, "dur": 2.5}
        Path(side.trace).write_text(json.dumps({"traceEvents": [event]}))
    return Ended(0, "")


def test_without_tools_the_lines_say_what_to_install(profiled, monkeypatch):
    monkeypatch.setattr("common.python.profile.runner.run_job", traced_at_once)
    monkeypatch.setattr("common.python.machine.description._tool_folders", lambda: ())
    found = profiled(tools=())
    advice = "not found; install Nsight Systems, or Nsight Compute, which brings one"
    assert found.notes[0] == f"profile: nsys: {advice}; torch.profiler traced instead"
    assert "profile: ncu: not found; install Nsight Compute" in found.notes
    assert found.of("baseline").step.source == "torch.profiler"


def test_on_a_cpu_torch_profiler_traces_and_says_why(profiled, tmp_path):
    found = profiled(device="cpu")
    assert found.notes == ["profile: nsys and ncu are for GPUs; torch.profiler traced a step a side"]
    assert (found.of("baseline").step.kernels, found.of("baseline").step.overlap_share) == (0, None)
    trace = json.loads((tmp_path / "run" / "ch07_double" / "optimized" / "trace.json").read_text())
    assert any(event["name"] == "ch07:double/optimized" for event in trace["traceEvents"])


def test_a_side_that_crashes_in_its_profile_is_a_line_and_ends_the_profile(profiled, folder):
    crashing = '"""Optimized."""\n\nimport os\n\n\ndef prepare(x):\n    print("gone", flush=True)\n    os._exit(9)\n'
    found = profiled(optimized=crashing, program="run")
    (line,) = found.notes
    assert line == (
        "profile: the process ended with exit code 9 preparing optimized (gone); expected a step that returns; the timing is from before"
    )
    assert found.of("baseline") is None
    assert not (folder / "ncu_arguments.txt").exists()


def test_a_profiler_that_hangs_is_ended_at_its_limit(profiled, monkeypatch):
    found = profiled("hang", limit_s=0.5)
    assert found.notes[0].startswith("profile: nsys: took more than 0.5 s; expected it to end by then (--timeout-multiplier)")


def test_a_declaration_that_no_side_comes_near_is_a_finding(profiled):
    found = profiled(work={"default": {"dram_read": 10e6}})
    assert found.notes[-1] == (
        "workload_double.py: found 268.4 MB of DRAM traffic in a step of optimized, the nearest of its sides; "
        "expected the 10 MB that it declares, within 10 %"
    )


def test_a_workload_may_say_why_more_is_moved_than_it_declares(profiled):
    found = profiled(work={"default": {"dram_read": 10e6}}, workload_directives=Directives(traffic="x is read 26 times"))
    assert found.notes[-1] == (
        "workload_double.py: found 268.4 MB of DRAM traffic in a step of optimized, the nearest of its sides; "
        "10 MB are declared: x is read 26 times"
    )


def test_a_declaration_that_a_side_meets_is_none(profiled):
    assert not any("DRAM traffic" in note for note in profiled(work={"default": {"dram_read": 260e6}}).notes)


@pytest.mark.parametrize(
    ("work", "is_finding"),
    [
        ({"dram_read": 268e6, "dram_write": 50e6}, False),  # the L2 may have all that was written
        ({"dram_read": 268e6, "dram_write": 100e6}, True),  # but not more than it holds
        ({"dram_read": 320e6}, True),  # what was read came from somewhere
    ],
)
def test_what_was_written_last_may_be_in_the_l2(profiled, work, is_finding):
    found = profiled(work={"default": work}, choices={"cache_bytes": 60_000_000})
    assert any("DRAM traffic" in note for note in found.notes) is is_finding


def test_sets_are_the_first_column_of_what_ncu_lists():
    listed = (STAND_INS / "ncu").read_text().split('SETS = """')[1].split('"""')[0]
    assert sets_in(listed) == ("basic", "detailed", "full", "roofline")
    assert sets_in("") == ()


@pytest.fixture
def red(tmp_path, monkeypatch):
    """Profiles demo:double, which is red at its second shape, with the stand-ins in `mode`; the row before, and after."""

    def profile(mode="", tools=("nsys", "ncu")):
        put_on_path(monkeypatch, *tools, folder=tmp_path / "tools", mode=mode)
        shapes = {"small": {"n": 64}, "large": {"n": 512}}
        plan = replace(a_pair(tmp_path), timed=shapes, work={name: {} for name in shapes})
        before = a_row(timings=dict.fromkeys(shapes, a_timing()), notes=("as it was",))
        return before, profile_red(before, plan, "large", a_session(tmp_path / "run"))

    return profile


def test_a_red_row_is_profiled_at_the_shape_at_which_it_is_red_and_its_timings_stay(red, folder):
    before, after = red()
    assert json.loads((folder / "profile_ncu.job.json").read_text())["sides"][0]["shapes"] == [{"n": 512}]
    assert after.sides["optimized"].profile.counters["dram__bytes.sum"] == 2 * 134_217_728
    assert after.notes == (
        "as it was",
        "profile: nsys 2025.3.1.90 traced a step a side",
        "profile: ncu 2025.3.1.0 counted minimal in a step a side",
    )
    assert after.timings == before.timings


@pytest.mark.parametrize("mode", ["permission", "none"])
def test_a_profiler_that_gives_nothing_of_a_red_row_is_a_line_and_no_more(red, mode):
    before, after = red(mode)
    assert FAILURES[mode] in after.notes
    assert (after.status, after.timings, after.verdicts) == (before.status, before.timings, before.verdicts)


def test_without_ncu_a_red_row_is_not_profiled(red, folder):
    before, after = red(tools=("nsys",))
    assert after == before.model_copy(update={"notes": ("as it was", "profile: ncu: not found; install Nsight Compute")})
    assert not folder.exists()


def rows_of(tmp_path, **choices):
    folder = tmp_path / "run"
    outcome = run_here(tmp_path / "root", folder, iterations=1, warmup=1, **choices)
    return outcome.rows


def test_a_run_with_a_profile_has_its_timing_and_the_profile(tmp_path):
    write_pair(tmp_path / "root")
    (row,) = rows_of(tmp_path, profile="minimal")
    assert (row.status, list(row.timings)) == ("PASSED", ["cpu"])
    assert row.sides["optimized"].profile.step.source == "torch.profiler"
    assert "profile: nsys and ncu are for GPUs; torch.profiler traced a step a side" in row.notes


def test_a_side_that_crashes_only_in_its_profile_keeps_its_timing(tmp_path):
    crashing = OPTIMIZED.replace("def prepare(x):\n", "import os, sys\n\ndef prepare(x):\n    'profiled' in sys.argv[0] and os._exit(3)\n")
    write_pair(tmp_path / "root", optimized=crashing)
    (row,) = rows_of(tmp_path, profile="minimal")
    assert (row.status, list(row.timings)) == ("PASSED", ["cpu"])
    assert row.sides["optimized"].profile is None
    assert any(note.startswith("profile: the process ended with exit code 3 preparing optimized") for note in row.notes)


def test_a_run_that_did_not_ask_is_neither_profiled_nor_sanitized(tmp_path):
    write_pair(tmp_path / "root")
    (row,) = rows_of(tmp_path)
    assert (row.sides["optimized"].profile, row.notes) == (None, ())
    assert not list((tmp_path / "run").rglob("profile*"))


def test_a_sanitizer_without_a_gpu_is_a_line_of_the_row(tmp_path):
    write_pair(tmp_path / "root")
    (row,) = rows_of(tmp_path, sanitize=("memcheck", "synccheck"))
    assert (row.status, row.notes) == ("PASSED", ("sanitize: memcheck: no CUDA device", "sanitize: synccheck: no CUDA device"))


def test_any_sanitizers_finding_fails_the_row_and_what_the_others_say_stands_beside_it(tmp_path, monkeypatch):
    said = (Sanitized(note="sanitize: memcheck found nothing in a.cu"), Sanitized(finding="a.cu: raced"), Sanitized(finding="b.cu: unset"))
    monkeypatch.setattr("common.python.run.suite.sanitize", lambda *_: {"demo:double": said})
    write_pair(tmp_path / "root")
    (row,) = rows_of(tmp_path, sanitize=("memcheck", "racecheck", "initcheck"))
    assert (row.status, row.reason.partition("; repeat: ")[0]) == ("WRONG_RESULT", "a.cu: raced")
    assert row.notes == ("sanitize: memcheck found nothing in a.cu", "sanitize: b.cu: unset")


def refuse(*_):
    raise SideFailure(Status.UNPROVEN, "b.cu: found none")


def test_a_claim_that_counters_refute_fails_a_row_that_was_timed(tmp_path, monkeypatch):
    monkeypatch.setattr("common.python.benchmark_harness.profile", refuse)
    write_pair(tmp_path / "root")
    (row,) = rows_of(tmp_path, profile="minimal")
    assert (row.status, row.reason, row.timings, row.metrics) == ("UNPROVEN", "b.cu: found none", {}, {})


def test_what_a_sanitizer_found_is_said_of_a_row_that_is_red_for_another_reason(tmp_path, monkeypatch):
    monkeypatch.setattr("common.python.run.suite.sanitize", lambda *_: {"demo:double": (Sanitized(finding="a.cu: raced"),)})
    monkeypatch.setattr("common.python.benchmark_harness.read_evidence", refuse)
    write_pair(tmp_path / "root")
    (row,) = rows_of(tmp_path, sanitize=("racecheck",))
    assert (row.reason, row.notes) == ("b.cu: found none", ("sanitize: a.cu: raced",))
