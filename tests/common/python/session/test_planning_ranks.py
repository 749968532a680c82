"""What a row of several processes will do, and what is wrong with one, is known before anything runs."""

import re

import pytest

from common.python.errors import BenchmarkError
from common.python.session import planning
from tests.common.python.session.conftest import H200, WITH_GPU
from tests.common.python.session.test_planning import CUDA, with_line
from tests.support.commands import BASELINE, FIELDS, OPTIMIZED, write_pair

RANKED = {"inputs": 'lambda rand, rank, n: {"x": rand.of_rank(rank).normal(n)}', "ranks": "(2, 4)"}
TWO_GPUS = WITH_GPU.model_copy(update={"gpus": (H200, H200.model_copy(update={"index": 1, "uuid": "GPU-2"}))})


def test_a_side_runs_in_as_many_processes_as_there_are_gpus_for(plans, monkeypatch, tmp_path):
    monkeypatch.setattr(planning, "choose_device", lambda *_: "cuda")
    write_pair(tmp_path, **RANKED)
    (plan,) = plans(machine=TWO_GPUS)
    assert (plan.ranks, plan.device, plan.gpus, plan.skip, plan.only_checked) == (2, "cuda", TWO_GPUS.gpus, "", "")
    assert plan.timed == {"default": {"n": 4096}}


def test_with_too_few_gpus_it_is_checked_on_the_cpu_and_says_how_many_it_needs(on_a_gpu, tmp_path):
    write_pair(tmp_path, **RANKED)
    (plan,) = on_a_gpu()
    assert (plan.ranks, plan.device, plan.timed, plan.skip) == (2, "cpu", {}, "")
    assert plan.only_checked == "needs 2 GPUs, found 1; checked with 2 gloo processes on the CPU"
    (plan,) = on_a_gpu(ranks=4)
    assert plan.only_checked == "needs 4 GPUs, found 1; checked with 2 gloo processes on the CPU"


def test_with_too_few_gpus_a_cuda_side_is_not_checked(on_a_gpu, tmp_path):
    write_pair(tmp_path, optimized=CUDA, **RANKED)
    (plan,) = on_a_gpu()
    assert plan.skip == "needs 2 GPUs, found 1"


def test_on_a_cpu_it_is_timed_where_each_rank_has_a_core(plans, tmp_path):
    write_pair(tmp_path, **RANKED)
    assert [(plan.ranks, plan.timed) for plan in plans()] == [(2, {"cpu": {"n": 512}})]
    assert [(plan.ranks, plan.timed, plan.only_checked) for plan in plans(ranks=4)] == [(4, {}, "")]


@pytest.mark.parametrize(
    ("fields", "asked", "expected"),
    [(RANKED, 3, r"one of ranks=\(2, 4\)"), (RANKED, 1, r"one of ranks=\(2, 4\)"), ({}, 2, "1, as the workload has no ranks")],
)
def test_ranks_that_a_workload_cannot_run_in_are_one_sentence(plans, tmp_path, fields, asked, expected):
    write_pair(tmp_path, **fields)
    with pytest.raises(BenchmarkError, match=f"^--ranks {asked}: workload_double.py cannot run in as many processes; expected {expected}$"):
        plans(ranks=asked)


BAD_RANKS = {
    r"ranks=\(2, 4\) and inputs do not ask for `rank`; expected each process to have a shard of its own": {"inputs": FIELDS["inputs"]},
    r"ranks=\(1, 2\); expected a tuple of how many processes a side may run in, as in \(2, 4, 8\)": {"ranks": "(1, 2)"},
    r"ranks=2; expected a tuple": {"ranks": "2"},
    r"inputs are the same tensors for rank 0 and rank 1; expected shards, as rand.of_rank": {
        "inputs": 'lambda rand, rank, n: {"x": rand.normal(n)}'
    },
    r"an input is called 'ranks', and ranks=\(2, 4\); expected another name": {
        "inputs": 'lambda rand, rank, n: {"x": rand.of_rank(rank).normal(n), "ranks": 3}'
    },
    r"found reference_rows and ranks=\(2, 4\); expected reference": {"reference_rows": "lambda rows, x: 2 * x[rows]"},
}


@pytest.mark.parametrize("sentence", BAD_RANKS)
def test_ranks_that_are_stated_wrongly_are_one_sentence_with_the_file(plans, tmp_path, sentence):
    write_pair(tmp_path, **RANKED | BAD_RANKS[sentence])
    with pytest.raises(BenchmarkError, match=sentence) as error:
        plans()
    assert str(error.value).startswith("demo/workload_double.py")


def test_work_may_be_of_one_process_of_so_many(plans, monkeypatch, tmp_path):
    write_pair(tmp_path, work='lambda ranks, n: {"dram_read": 8 * n / ranks}', **RANKED)
    assert [plans(ranks=ranks)[0].work for ranks in (2, 4)] == [{"cpu": {"dram_read": 2048}}, {"cpu": {"dram_read": 1024}}]
    monkeypatch.setattr(planning, "choose_device", lambda *_: "cuda")
    assert plans(machine=TWO_GPUS)[0].work == {"default": {"dram_read": 16384}}
    swept = plans(machine=TWO_GPUS, sweep={"n": ("8", "16")})[0].work
    assert swept == {"n=8": {"dram_read": 32}, "n=16": {"dram_read": 64}}


def test_work_that_is_less_than_nothing_on_some_number_of_processes_is_refused(plans, tmp_path):
    write_pair(tmp_path, work='lambda ranks, n: {"dram_read": 3 - ranks}', **RANKED)
    with pytest.raises(BenchmarkError, match=r"work gives dram_read=-1 at .*; expected a finite amount that is not negative"):
        plans()


UNSEEN = "counter dram__bytes_read.sum < 0.7 x baseline"


@pytest.mark.parametrize(
    ("side", "source", "line"),
    [("optimized", OPTIMIZED, f"proves: {UNSEEN}"), ("baseline", BASELINE, "has: counter dram__bytes_read.sum < 4096")],
)
def test_a_claim_of_a_counter_is_refused_where_no_profiler_counts(plans, tmp_path, side, source, line):
    """Unchecked on every machine, it would read as proven by somebody."""
    write_pair(tmp_path, **{side: with_line(source, line)}, **RANKED)
    found = re.escape(f"demo/{side}_double.py:2: found `{line}` and ranks=(2, 4); expected a claim that a watched step shows: ")
    with pytest.raises(BenchmarkError, match=f"^{found}profilers count on no row of several ranks$"):
        plans()


def test_ranks_may_claim_what_a_watched_step_shows_and_one_process_may_claim_counters(plans, tmp_path):
    write_pair(tmp_path, optimized=with_line(OPTIMIZED, "proves: kernel SendRecv"), **RANKED)
    assert [claim.text for claim in plans()[0].claims["optimized"]] == ["kernel SendRecv"]
    write_pair(tmp_path, optimized=with_line(OPTIMIZED, f"proves: {UNSEEN}"))
    assert plans()[0].counters_claimed == ("dram__bytes_read.sum",)
