"""What a row will do is known before anything runs, and so is what is wrong with a file, a directive or a flag."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.directives import Directives
from common.python.pairs.discovery import discover
from common.python.pairs.revisions import against, checkout
from common.python.pairs.scaffold import new_pair
from common.python.pairs.targets import select
from common.python.processes.messages import Probed
from common.python.session import planning
from common.python.session.planning import choose_device, require_gpu
from common.python.settings import Device, Settings
from tests.common.python.pairs.test_revisions import git
from tests.common.python.session.conftest import H200, WITH_GPU, WITHOUT_GPU
from tests.support.commands import BASELINE, OPTIMIZED, write_pair
from tests.support.plans import a_plan

TRITON = '"""Optimized: a kernel."""\nimport triton\n\n\ndef prepare(x):\n    return lambda: x\n'
CUDA = "// Side.\nLAUNCH(const float* x, float* y, int n, cudaStream_t stream) { return cudaSuccess; }\n"


def with_line(source, line):
    return source.replace('"""\n', f'"""\n# {line}\n', 1)


# --- what a row does here


def test_on_a_cpu_a_pair_is_timed_at_its_shape_for_cpus_by_the_hosts_clock(plans, tmp_path):
    write_pair(tmp_path)
    (plan,) = plans("demo:double")
    assert (plan.target, plan.sides, plan.device, plan.clock, plan.skip) == ("demo:double", ("baseline", "optimized"), "cpu", "host", "")
    assert plan.timed == {"cpu": {"n": 512}}
    assert plan.described.check_at == [{"n": 3}]


def test_on_a_gpu_it_is_timed_at_every_named_shape_by_its_own_clock(on_a_gpu, tmp_path):
    write_pair(tmp_path, time_at='{"small": {"n": 64}, "large": {"n": 4096}}', clock='"launch"')
    (plan,) = on_a_gpu()
    assert (plan.device, plan.clock) == ("cuda", "launch")
    assert plan.timed == {"small": {"n": 64}, "large": {"n": 4096}}


SMALL = H200.model_copy(update={"name": "Small GPU", "memory_bytes": 5 << 28})
LARGE_N = 1 << 26  # 256 MiB of x, and as much of y


@pytest.fixture
def on_a_small_gpu(plans, monkeypatch):
    monkeypatch.setattr(planning, "choose_device", lambda *_: "cuda")
    return lambda *targets, **choices: plans(*targets, machine=WITHOUT_GPU.model_copy(update={"gpus": (SMALL,)}), **choices)


def test_what_does_not_fit_a_gpus_memory_is_skipped_with_both_figures(on_a_small_gpu, on_a_gpu, tmp_path):
    write_pair(tmp_path, time_at=f'{{"n": {LARGE_N}}}')
    (plan,) = on_a_small_gpu()
    expected = "workload_double.py: inputs and outputs of 2 sides and of the referee take 1.50 GiB; Small GPU has 1.25 GiB"
    assert (plan.skip, plan.timed) == (expected, {})
    (plan,) = on_a_gpu()
    assert (plan.skip, plan.timed, plan.without_room) == ("", {"default": {"n": LARGE_N}}, {})


def test_sides_that_are_there_one_at_a_time_need_less(on_a_small_gpu, tmp_path):
    write_pair(tmp_path, time_at=f'{{"n": {LARGE_N}}}')  # a side and the referee take 1 GiB
    for choices in ({"command": "verify"}, {"cold_start": True}):
        (plan,) = on_a_small_gpu(**choices)
        assert (plan.skip, list(plan.timed)) == ("", ["default"])
    (half,) = on_a_small_gpu("demo:double_optimized")
    assert half.skip == ""


def test_of_several_shapes_those_that_fit_are_timed(on_a_small_gpu, tmp_path):
    write_pair(tmp_path, time_at=f'{{"large": {{"n": {LARGE_N}}}, "small": {{"n": 64}}}}')
    (plan,) = on_a_small_gpu()
    assert (plan.skip, plan.timed) == ("", {"small": {"n": 64}})
    assert plan.without_room["large"].startswith("workload_double.py @large: inputs and outputs of 2 sides")


def test_of_a_sweep_those_that_fit_are_timed(on_a_small_gpu, tmp_path):
    write_pair(tmp_path, time_at=f'{{"n": {LARGE_N}}}')
    (plan,) = on_a_small_gpu(sweep={"n": ("64", str(LARGE_N))})
    assert (plan.skip, list(plan.timed), list(plan.without_room)) == ("", ["n=64"], [f"n={LARGE_N}"])


def test_what_lies_on_the_host_takes_the_referees_memory_alone(on_a_small_gpu, tmp_path):
    inputs = 'lambda rand, n: {"x": rand.normal(n, where="pinned")}'
    write_pair(tmp_path, time_at=f'{{"n": {LARGE_N}}}', inputs=inputs)
    (plan,) = on_a_small_gpu()
    assert plan.skip == ""  # 256 MiB of y on either side, and of x and y with the referee: 1 GiB


def test_inputs_that_need_their_values_are_not_weighed(on_a_small_gpu, tmp_path):
    write_pair(tmp_path, time_at=f'{{"n": {LARGE_N}}}', inputs='lambda rand, n: {"x": rand.normal(n) * float(rand.normal(1))}')
    (plan,) = on_a_small_gpu()
    assert plan.skip == ""


def test_work_of_the_host_stays_there_at_the_machines_shape(on_a_gpu, tmp_path):
    write_pair(tmp_path, place='"host"', clock='"host"')
    (plan,) = on_a_gpu()
    assert (plan.device, plan.timed) == ("cpu", {"default": {"n": 4096}})


def test_without_a_shape_for_cpus_a_pair_is_checked_there_and_not_timed(plans, tmp_path):
    write_pair(tmp_path, cpu_at="None")
    (plan,) = plans()
    assert (plan.timed, plan.skip) == ({}, "")


def test_on_a_gpu_triton_is_compiled_and_timed(on_a_gpu, tmp_path):
    write_pair(tmp_path, optimized=TRITON)
    (plan,) = on_a_gpu()
    assert (plan.interpreted, plan.timed) == (False, {"default": {"n": 4096}})


def test_on_a_cpu_triton_is_interpreted_and_not_timed(plans, tmp_path):
    write_pair(tmp_path, optimized=TRITON)
    (plan,) = plans()
    assert (plan.interpreted, plan.timed) == (True, {})


OF_PROJECT = '"""Optimized: of the project."""\nfrom ops.rows import tri\n\n\ndef prepare(x):\n    return lambda: tri(x)\n'


@pytest.mark.parametrize(("kernels", "interpreted"), [("import triton\n", True), ("import math\n", False)])
def test_kernels_of_the_project_that_a_side_imports_are_its_own(plans, tmp_path, kernels, interpreted):
    write_pair(tmp_path, optimized=OF_PROJECT)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops/rows.py").write_text("from .kernels import tri\n")
    (tmp_path / "ops/kernels.py").write_text(f"{kernels}def tri(x):\n    return x * 2\n")
    (plan,) = plans()
    assert (plan.interpreted, plan.timed) == (interpreted, {} if interpreted else {"cpu": {"n": 512}})


def test_a_half_is_named_by_its_side(plans, tmp_path):
    write_pair(tmp_path)
    assert [(plan.target, plan.sides) for plan in plans("demo:double_baseline")] == [("demo:baseline_double", ("baseline",))]
    assert [(plan.target, plan.sides) for plan in plans("demo:optimized_double")] == [("demo:optimized_double", ("optimized",))]


def test_against_another_revision_no_rung_of_a_ladder_is_timed(plans, tmp_path):
    write_pair(tmp_path)
    workload = tmp_path / "demo/workload_double.py"
    workload.write_text(workload.read_text().replace("WORKLOAD = Workload(", 'WORKLOAD = Workload(\n    ladder=("once",),', 1))
    (tmp_path / "demo/optimized_double_once.py").write_text(OPTIMIZED)
    assert [plan.sides for plan in plans("demo:double")] == [("baseline", "once", "optimized")]
    assert [plan.sides for plan in plans("demo:double", against="HEAD")] == [("baseline", "optimized")]


def test_against_another_revision_what_is_predicted_of_the_pair_is_not_held_to_its_sides(plans, tmp_path):
    """The baseline is then the optimized side of a past whose lines are the same, and a ladder's rungs and library are no sides."""
    new_pair(discover(tmp_path), "demo:sums", cuda=False)
    optimized = tmp_path / "demo/optimized_sums.py"
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    optimized.write_text(with_line(optimized.read_text(), "predicts: library = 0.5 x baseline"))
    with checkout(tmp_path, "HEAD") as past:
        selections, _ = against(select(discover(tmp_path), []).selections, past.root)
        (plan,) = plans(against="HEAD", selections=selections)
    assert plan.timed == {"cpu": {"rows": 1024, "cols": 1024}}


# --- why a row is skipped


def test_a_cuda_side_needs_a_device(plans, tmp_path):
    write_pair(tmp_path, baseline=CUDA, optimized=CUDA)
    (plan,) = plans()
    assert plan.skip == "no CUDA device"


UNMET = {
    "wgmma": "needs wgmma; no CUDA device",
    "gpus 2": "needs 2 GPUs; this machine has 0",
    "package no_such_package": "needs the Python package no_such_package; not installed",
    "tma, numa 99": "needs tma; no CUDA device; needs 99 NUMA nodes; this machine has 1",
}


@pytest.mark.parametrize("need", UNMET)
def test_an_unmet_need_is_the_reason(plans, tmp_path, need):
    write_pair(tmp_path, optimized=with_line(OPTIMIZED, f"needs: {need}"))
    assert [plan.skip for plan in plans()] == [UNMET[need]]


def test_a_row_of_a_disk_is_skipped_where_its_files_would_be_in_memory(plans, tmp_path):
    write_pair(tmp_path, optimized=with_line(OPTIMIZED, "needs: disk"))
    reason = "needs a disk; /dev/shm is on tmpfs, which keeps files in memory"
    assert [plan.skip for plan in plans(artifacts_dir=Path("/dev/shm/absent/run"))] == [reason]


def test_a_gpu_of_another_kind_is_told_and_so_is_what_to_try_instead(on_a_gpu, tmp_path):
    write_pair(tmp_path, optimized=with_line(with_line(OPTIMIZED, "instead: ch10:wgmma"), "needs: tcgen05"))
    assert [plan.skip for plan in on_a_gpu()] == ["needs compute capability 10.x (tcgen05); this is 9.0; try ch10:wgmma"]


def test_on_a_machine_whose_gpu_is_not_to_be_used_there_is_none(plans, tmp_path):
    write_pair(tmp_path, optimized=with_line(OPTIMIZED, "needs: tma"))
    (plan,) = plans(machine=WITH_GPU, device=Device.CPU)
    assert plan.skip == "needs tma; no CUDA device"


def test_a_need_of_the_other_half_does_not_matter_to_a_half(plans, tmp_path):
    write_pair(tmp_path, optimized=with_line(OPTIMIZED, "needs: wgmma"))
    assert [plan.skip for plan in plans("demo:baseline_double")] == [""]


# --- what a library's side needs


@pytest.mark.parametrize("need", UNMET)
def test_an_unmet_need_of_the_library_leaves_it_out_and_the_pair_goes_on(plans, tmp_path, need):
    write_pair(tmp_path, library=with_line(OPTIMIZED, f"needs: {need}"))
    (plan,) = plans()
    assert (plan.skip, plan.left_out) == ("", {"library": UNMET[need]})
    assert plan.sides == tuple(plan.side_directives) == ("baseline", "optimized")
    assert plan.timed == {"cpu": {"n": 512}}


def test_a_library_whose_needs_are_met_stays(plans, on_a_gpu, tmp_path):
    write_pair(tmp_path, library=with_line(OPTIMIZED, "needs: gpus 1, wgmma, package torch"))
    (plan,) = on_a_gpu()
    assert (plan.sides, plan.left_out, plan.skip) == (("baseline", "optimized", "library"), {}, "")
    (plan,) = plans()
    assert (plan.sides, list(plan.left_out)) == (("baseline", "optimized"), ["library"])


@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_an_unmet_need_of_another_side_skips_the_row_whatever_the_library_needs(plans, tmp_path, side):
    lacking = {"baseline": with_line(BASELINE, "needs: gpus 2"), "optimized": with_line(OPTIMIZED, "needs: gpus 2")}[side]
    write_pair(tmp_path, **{side: lacking}, library=with_line(OPTIMIZED, "needs: package no_such_package"))
    (plan,) = plans()
    assert (plan.skip, plan.left_out) == (UNMET["gpus 2"], {})


def test_an_unmet_need_of_the_workload_skips_the_row_that_has_a_library(plans, tmp_path):
    write_pair(tmp_path, library=OPTIMIZED)
    workload = tmp_path / "demo/workload_double.py"
    workload.write_text(with_line(workload.read_text(), "needs: wgmma"))
    assert [(plan.skip, plan.left_out) for plan in plans()] == [(UNMET["wgmma"], {})]


def test_on_a_cpu_a_library_in_cuda_is_left_out_of_a_pair_in_python_alone(plans, tmp_path):
    write_pair(tmp_path, "demo:double", library=CUDA)
    write_pair(tmp_path, "demo:twice", baseline=CUDA, optimized=CUDA, library=CUDA)
    in_python, in_cuda = plans("demo:double", "demo:twice")
    assert (in_python.skip, in_python.left_out) == ("", {"library": "no CUDA device"})
    assert (in_cuda.skip, in_cuda.left_out, len(in_cuda.sides)) == ("no CUDA device", {}, 3)  # all of it is built and read


# --- the device


def test_the_device_is_the_gpu_where_torch_and_the_driver_have_one():
    can, cannot = (Probed(nonce="1", torch="2.13", cuda=cuda) for cuda in (True, False))
    assert choose_device(Settings(), WITH_GPU, can) == "cuda"
    assert choose_device(Settings(), WITH_GPU, cannot) == "cpu"
    assert choose_device(Settings(), WITHOUT_GPU, can) == "cpu"
    assert choose_device(Settings(device="cpu"), WITH_GPU, can) == "cpu"
    assert choose_device(Settings(device="cuda"), WITH_GPU, can) == "cuda"
    with pytest.raises(BenchmarkError, match=r"^--device cuda: found 1 GPUs, and torch 2.13 cannot use CUDA; expected both$"):
        choose_device(Settings(device="cuda"), WITH_GPU, cannot)
    for settings, machine in ((Settings(), WITHOUT_GPU), (Settings(device="cpu"), WITHOUT_GPU), (Settings(device="cuda"), WITH_GPU)):
        require_gpu(settings, machine)
    with pytest.raises(BenchmarkError, match=r"^--device cuda: found 0 GPUs; expected one, or --device cpu$"):
        require_gpu(Settings(device="cuda"), WITHOUT_GPU)


def test_nothing_is_accepted_where_there_is_no_gpu_to_gate_on():
    require_gpu(Settings(accept_regressions=True), WITH_GPU)
    for device, found in (("auto", "0 GPUs"), ("cpu", "--device cpu")):
        with pytest.raises(BenchmarkError, match=f"^--accept: found {found}; expected a GPU, as a CPU's time is never gated$"):
            require_gpu(Settings(device=device, accept_regressions=True), WITHOUT_GPU)


# --- what is wrong is told before anything runs

WORKLOAD = "demo/workload_double.py"
BROKEN = {
    "inputs raises": ({"inputs": "lambda rand, n: 1 / 0"}, "{W}:8: raised ZeroDivisionError: division by zero; expected no exception"),
    "outputs raises": ({"outputs": "lambda n: [][n]"}, "{W}:9: raised IndexError: list index out of range; expected no exception"),
    "work raises": ({"work": "lambda n: {}[n]"}, "{W}:14: raised KeyError: 3; expected no exception"),
    "importing raises": ({"rtol": "undefined"}, "{W}:15: raised NameError: name 'undefined' is not defined; expected no exception"),
    "inputs are no dict": ({"inputs": "lambda rand, n: rand.normal(n)"}, "{W}: inputs returned a Tensor; expected a dict"),
    "a name of two things": (
        {"inputs": 'lambda rand, n: {"n": rand.normal(n)}'},
        "{W}: 'n' is an input and a shape entry; expected a name to",
    ),
    "no outputs": (
        {"outputs": "lambda n: {}"},
        "{W}: outputs are empty at {'n': 3}; expected at least one, or state='evolves'",
    ),
    "outputs are a Spec": ({"outputs": "lambda n: Spec((n,), torch.float32)"}, "{W}: outputs returned Spec("),
    "an extent is no tuple": (
        {"outputs": 'lambda n: {"y": Spec(n, torch.float32)}'},
        "{W}: output y is Spec(shape=3, dtype=torch.float32, where='device',",
    ),
    "an extent is a word": (
        {"outputs": 'lambda n: {"y": Spec((str(n),), torch.float32)}'},
        "{W}: output y is Spec(shape=('3',), dtype=torch.float32, where='device',",
    ),
    "a shape has a word for a number": (
        {"cpu_at": '{"n": "512"}'},
        "{W}: shape cpu_at has n='512', of type str; expected int, as in time_at",
    ),
    "a misspelt field": ({"rtl": "1e-4"}, "{W}: found rtl; expected a field of Workload, as rtol"),
    "a dtype is a word": (
        {"outputs": 'lambda n: {"y": Spec((n,), "float32")}'},
        "{W}: output y is Spec(shape=(3,), dtype='float32', where='device',",
    ),
    "nothing is checked": (
        {"outputs": 'lambda n: {"y": Spec((n, n - 3), torch.float32)}'},
        "{W}: output y has shape (3, 0) at {'n': 3}; expected no extent below 1, or nothing is checked",
    ),
    "negative work": ({"work": 'lambda n: {"dram_read": -n}'}, "{W}: work gives dram_read=-3 at {'n': 3}; expected a finite amount"),
    "misspelt work": (
        {"work": 'lambda n: {"dram_raed": n}'},
        "{W}: work names 'dram_raed' at {'n': 3}, which is no ceiling; expected dram_read",
    ),
    "drawn elsewhere": (
        {"inputs": 'lambda rand, n: {"x": torch.randn(n)}'},
        "{W}: inputs gave 'x' other values for the same seed; expected it drawn with rand, as rand.normal(...), and not by a generator",
    ),
    "no such constant": ({"constants": '("w",)'}, "{W}: constants or in_place name 'w'; expected some of the inputs ['x']"),
    "state is a number": (
        {"inputs": 'lambda rand, n: {"x": rand.normal(n), "s": {"t": 0.5}}', "in_place": '("s",)', "state": '"evolves"', "steps": "2"},
        "{W}: s.t is state and a float; expected tensors, which can be compared",
    ),
    "rows are taken": (
        {"inputs": 'lambda rand, n: {"rows": rand.normal(n)}', "reference": "None", "reference_rows": "lambda rows: rows"},
        "{W}: 'rows' is what reference_rows is given, and an input or a shape entry; expected one meaning",
    ),
    "an output without rows": (
        {"outputs": 'lambda n: {"y": Spec((), torch.float32)}', "reference_rows": "lambda rows: rows"},
        "{W}: found reference_rows and outputs y of shape () at {'n': 3}; expected all to have as many rows",
    ),
    "outputs of other rows": (
        {
            "outputs": 'lambda n: {"y": Spec((n,), torch.float32), "z": Spec((2, n), torch.float32)}',
            "reference_rows": "lambda rows: rows",
        },
        "{W}: found reference_rows and outputs y of shape (3,), z of shape (2, 3) at {'n': 3}; expected all to have as many rows",
    ),
    "no shape to check": ({"check_at": "()"}, "{W}: check_at is empty; expected at least one awkward shape to check"),
    "other keys": ({"check_at": '({"m": 3},)'}, "{W}: shape check_at[0] has keys ['m']; expected ['n'], those of time_at"),
    "a key too many": ({"outputs": 'lambda n, m: {"y": Spec((n, m), torch.float32)}'}, "raised TypeError: "),
    "the process ends": ({"inputs": "lambda rand, n: __import__('os')._exit(5)"}, "{W}: the describe process ended with exit code 5"),
    "the process dies": (
        {"inputs": "lambda rand, n: __import__('ctypes').string_at(0)"},
        "{W}: the describe process was killed by SIGSEGV",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_workload_is_one_sentence_with_its_file(plans, tmp_path, what):
    fields, sentence = BROKEN[what]
    write_pair(tmp_path, "demo:alone")
    write_pair(tmp_path, **fields)
    with pytest.raises(BenchmarkError) as caught:
        plans()
    assert str(caught.value).startswith(WORKLOAD)
    assert sentence.replace("{W}", WORKLOAD) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_does_not_parse_is_named(plans, tmp_path):
    write_pair(tmp_path)
    (tmp_path / WORKLOAD).write_text('"""Idea."""\nWORKLOAD = Workload(\n')
    with pytest.raises(BenchmarkError, match=r"^demo/workload_double\.py:.*SyntaxError: '\(' was never closed"):
        plans()


@pytest.mark.parametrize("on", ["plans", "on_a_gpu"])
def test_a_side_that_does_not_parse_is_named_with_its_line(request, tmp_path, on):
    write_pair(tmp_path, optimized=OPTIMIZED + "x = (1\n")
    with pytest.raises(BenchmarkError, match=r"^demo/optimized_double\.py:\d+: '\(' was never closed; expected Python$"):
        request.getfixturevalue(on)()


def test_so_is_a_file_that_a_side_imports(plans, tmp_path):
    write_pair(tmp_path, baseline="from shared_parts import part\n" + BASELINE)
    (tmp_path / "demo/shared_parts.py").write_text("def part(:\n")
    with pytest.raises(BenchmarkError, match=r"^demo/baseline_double\.py: /.*/demo/shared_parts\.py:1: invalid syntax; expected Python$"):
        plans()


def test_each_broken_file_has_a_line_in_one_error(plans, tmp_path):
    write_pair(tmp_path, "demo:ends", inputs="lambda rand, n: __import__('os')._exit(5)")
    write_pair(tmp_path, "demo:good")
    write_pair(tmp_path, "demo:misspelt", baseline=with_line(BASELINE, "need: wgmma"))
    write_pair(tmp_path, "demo:open", optimized=OPTIMIZED + "x = (1\n")
    write_pair(tmp_path, "demo:raises", rtol="undefined", baseline=BASELINE + "x = )\n")
    with pytest.raises(BenchmarkError) as caught:
        plans()
    assert [line.partition(";")[0] for line in str(caught.value).splitlines()] == [
        "demo/workload_ends.py: the describe process ended with exit code 5 before it answered",
        "demo/baseline_misspelt.py:2: found directive 'need'",
        "demo/optimized_open.py:6: '(' was never closed",
        "demo/workload_raises.py:15: raised NameError: name 'undefined' is not defined",
        "demo/baseline_raises.py:6: unmatched ')'",
    ]
    assert [plan.target for plan in plans("demo:good")] == ["demo:good"]


def test_a_workload_that_two_targets_share_is_told_once(plans, tmp_path):
    write_pair(tmp_path, rtol="undefined")
    (tmp_path / "demo/optimized_double_again.py").write_text(OPTIMIZED)
    with pytest.raises(BenchmarkError, match=r"^demo/workload_double\.py:15: [^\n]*$"):
        plans()


def test_a_flag_that_no_pair_can_take_is_told_once(plans, tmp_path):
    for target in ("demo:one", "demo:two"):
        write_pair(tmp_path, target)
    with pytest.raises(BenchmarkError, match=r"^--kwargs m=1: workload_one\.py has no such shape entry; expected some of n$"):
        plans(kwargs={"m": "1"})


def test_a_workload_that_hangs_is_given_up_at_the_limit_of_preparing(plans, tmp_path):
    write_pair(tmp_path, inputs="lambda rand, n: __import__('time').sleep(60)")
    with pytest.raises(BenchmarkError, match=r"^demo/workload_double\.py: describe took more than 0\.24 s; expected an answer by then$"):
        plans(timeout_multiplier=0.001)


def test_a_need_that_is_none_is_told_with_its_file(plans, tmp_path):
    write_pair(tmp_path, optimized=with_line(OPTIMIZED, "needs: wgmm"))
    with pytest.raises(BenchmarkError, match=r"^demo/optimized_double\.py: needs: found 'wgmm'; expected wgmma$"):
        plans()


def test_of_a_side_in_cuda_no_other_file_is_named(plans, tmp_path):
    write_pair(tmp_path, baseline=CUDA, optimized=CUDA.replace("\n", "\n// need: wgmma\n", 1))
    with pytest.raises(BenchmarkError, match=r"^demo/optimized_double\.cu:2: found directive 'need'; expected 'needs'$"):
        plans()


def test_a_misspelt_directive_is_told_with_its_line(plans, tmp_path):
    write_pair(tmp_path, baseline=with_line(BASELINE, "need: wgmma"))
    with pytest.raises(BenchmarkError, match=r"baseline_double\.py:2: found directive 'need'; expected 'needs'$"):
        plans()


# --- --kwargs

SHAPE = '{"n": 4, "eps": 0.5, "causal": True, "mode": "a"}'
MANY = {
    "time_at": SHAPE,
    "cpu_at": SHAPE,
    "check_at": f"({SHAPE},)",
    "inputs": 'lambda rand, n, eps, causal, mode: {"x": rand.normal(n)}',
    "outputs": 'lambda n, eps, causal, mode: {"y": Spec((n,), torch.float32)}',
    "work": "lambda n, eps, causal, mode: {}",
}


def test_kwargs_change_timed_shapes_alone_and_keep_the_types(plans, tmp_path):
    write_pair(tmp_path, **MANY)
    (plan,) = plans(kwargs={"n": "1_000", "eps": "2", "causal": "False", "mode": "1"})
    assert plan.timed == {"cpu": {"n": 1000, "eps": 2.0, "causal": False, "mode": "1"}}
    assert [type(value) for value in plan.timed["cpu"].values()] == [int, float, bool, str]
    assert plan.described.check_at == [{"n": 4, "eps": 0.5, "causal": True, "mode": "a"}]


@pytest.mark.parametrize("choices", [{"kwargs": {"n": "8"}}, {"sweep": {"n": ("8", "16")}}])
def test_an_equation_is_held_to_the_shape_of_the_pair_alone(plans, tmp_path, choices):
    """A prediction's number is of the shape that the workload times: at another shape its equation says something else."""
    write_pair(tmp_path, optimized=with_line(OPTIMIZED, "predicts: optimized 4 us = n * 1e-6"), **MANY)
    assert plans()
    assert plans(**choices)
    write_pair(tmp_path, optimized=with_line(OPTIMIZED, "predicts: optimized 5 us = n * 1e-6"), **MANY)
    with pytest.raises(BenchmarkError, match="expected two sides within 2 %"):
        plans()


KWARGS = {
    "m=3": "--kwargs m=3: workload_double.py has no such shape entry; expected some of causal, eps, mode, n",
    "n=3.5": "--kwargs n=3.5: found '3.5'; expected an integer, which n is in workload_double.py",
    "n=many": "--kwargs n=many: found 'many'; expected an integer, which n is in workload_double.py",
    "eps=small": "--kwargs eps=small: found 'small'; expected a finite number, which eps is in workload_double.py",
    "eps=nan": "--kwargs eps=nan: found 'nan'; expected a finite number, which eps is in workload_double.py",
    "causal=maybe": "--kwargs causal=maybe: found 'maybe'; expected true or false, which causal is in workload_double.py",
    "n=0": "demo/workload_double.py: output y has shape (0,) at ",
    "n=-4": "demo/workload_double.py: output y has shape (-4,) at ",
}


@pytest.mark.parametrize("given", KWARGS)
def test_kwargs_that_do_not_fit_are_one_sentence(plans, tmp_path, given):
    write_pair(tmp_path, **MANY)
    key, _, value = given.partition("=")
    with pytest.raises(BenchmarkError) as caught:
        plans(kwargs={key: value})
    assert str(caught.value).startswith(KWARGS[given])


def test_of_shapes_that_kwargs_make_wrong_one_that_would_run_is_told(plans, on_a_gpu, tmp_path):
    fields = {
        "inputs": 'lambda rand, rows, cols: {"x": rand.normal(rows, cols)}',
        "outputs": 'lambda rows, cols: {"y": Spec((rows, cols), torch.float32)}',
        "time_at": '{"rows": 512, "cols": 4096}',
        "cpu_at": '{"rows": 512, "cols": 1024}',
        "check_at": '({"rows": 3, "cols": 65},)',
        "work": "lambda rows, cols: {}",
    }
    write_pair(tmp_path, **fields)
    with pytest.raises(BenchmarkError, match=r"output y has shape \(0, 1024\) at \{'rows': 0, 'cols': 1024\}"):
        plans(kwargs={"rows": "0"})
    with pytest.raises(BenchmarkError, match=r"output y has shape \(0, 1024\)"):
        plans(machine=WITH_GPU, device=Device.CPU, kwargs={"rows": "0"})
    with pytest.raises(BenchmarkError, match=r"output y has shape \(0, 4096\)"):
        on_a_gpu(kwargs={"rows": "0"})


# --- launch lines

LAUNCHES = {
    "const double* x, float* y, int n, cudaStream_t stream": "found argument `const double* x`; expected `const float* x`",
    "const float* x, int n, cudaStream_t stream": "found no argument for output 'y' in LAUNCH; expected `float* y`",
    "const float* x, float* y, float n, cudaStream_t stream": "found argument `float n` for n=3; expected `int n`",
    "const float* x, float* y, int n": "found 0 `cudaStream_t stream` in LAUNCH; expected one",
}


@pytest.mark.parametrize("arguments", LAUNCHES)
def test_a_launch_line_that_does_not_fit_is_the_rows_to_tell(plans, tmp_path, arguments):
    """It costs its own row, so that of a chapter's other pairs nothing is lost."""
    write_pair(tmp_path, baseline=CUDA, optimized=f"// Side.\nLAUNCH({arguments}) {{ return cudaSuccess; }}\n")
    (plan,) = plans()
    assert f"optimized_double.cu: {LAUNCHES[arguments]}" in plan.described.mismatch
    assert "\n" not in plan.described.mismatch


@pytest.mark.parametrize(
    ("place", "clock", "allows", "several"),
    [
        ("host", "device", "processes", True),
        ("host", "device", "threads", True),
        ("host", "device", "sync", False),
        ("device", "device", "threads", False),
        ("device", "host", "threads", True),
        ("device", "host", "sync", False),
    ],
)
def test_sides_with_threads_or_processes_have_all_cores_by_the_hosts_clock_and_where_the_work_is_the_hosts(
    tmp_path, place, clock, allows, several
):
    plan = a_plan(tmp_path)
    sides = {"baseline": Directives(), "optimized": Directives(allows=(allows,))}
    plan = replace(plan, described=plan.described.model_copy(update={"place": place, "clock": clock}), side_directives=sides)
    assert plan.cores == (tuple(sorted(os.sched_getaffinity(0))) if several else ())
