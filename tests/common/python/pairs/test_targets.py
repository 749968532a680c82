"""The target grammar: what each spelling selects, and what is said of a name that selects nothing."""

from __future__ import annotations

import re

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import canonical, discover
from common.python.pairs.targets import aliases, catalogue, in_directory, select
from common.python.project import PROJECT_ROOT
from tests.support.trees import pair_files, write

ACCEPTED = [line.split() for line in (PROJECT_ROOT / "tests/data/acceptance_targets.txt").read_text(encoding="utf-8").splitlines()]
PLANNED = re.compile(r"is planned and not written yet$")

# label, the pair it stands for, and what it selects of that pair
LABELS = [
    ("ch1:warp_specialization", "ch01:basic_benchmark", "pair"),
    ("ch1:context_parallelism", "ch15:context_parallelism", "pair"),
    ("ch4:nccl_baseline", "ch04:nccl", "baseline"),
    ("ch4:nccl_nvls", "ch04:nccl", "optimized"),
    ("ch4:nvl72_baseline", "ch04:nvl72", "baseline"),
    ("ch4:nvl72_optimized", "ch04:nvl72", "optimized"),
    ("ch5:gpu_input_baseline", "ch05:gpu_input", "baseline"),
    ("ch5:gpu_input_nvcomp", "ch05:gpu_input", "optimized"),
    ("ch5:optimized_storage_cpu", "ch05:storage_cpu", "optimized"),
    ("ch6:triton", "ch14:triton_intro", "pair"),
    ("ch6:ilp", "ch08:ilp", "pair"),
    ("ch6:launch_bounds", "ch08:launch_bounds", "pair"),
    ("ch6:extreme_ilp", "ch08:extreme_ilp", "pair"),
    ("ch6:bank_conflicts", "ch07:bank_conflicts", "pair"),
    ("ch6:coalescing", "ch06:coalescing", "pair"),
    ("ch8:double_buffering", "ch10:double_buffered_pipeline", "pair"),
    ("ch8:double_buffering_pipelined", "ch10:double_buffered_pipeline", "pair"),
    ("ch9:warp_specialization_baseline", "ch10:warp_specialization_blackwell", "baseline"),
    ("ch9:warp_specialization_producer_consumer", "ch10:warp_specialization_producer_consumer", "pair"),
    ("ch10:tmem_triple_overlap_baseline", "ch10:tmem_triple_overlap", "baseline"),
    ("ch10:cluster_multicast_baseline", "ch10:cluster_multicast", "baseline"),
    ("ch11:optimized_streams", "ch11:streams", "optimized"),
    ("ch12:cuda_graphs_baseline", "ch12:cuda_graphs", "baseline"),
    ("ch13:dtensor_baseline", "ch13:dtensor", "baseline"),
    ("ch13:dtensor_mesh", "ch13:dtensor", "optimized"),
    ("ch15:expert_parallelism_baseline", "ch15:expert_parallelism", "baseline"),
    ("ch15:moe_overlap_baseline", "ch15:moe_overlap", "baseline"),
    ("ch15:prefill_decode_baseline", "ch15:inference_monolithic", "baseline"),
    ("ch15:optimized_kv_cache_management", "ch15:kv_cache_management", "optimized"),
    ("ch15:moe_inference", "ch18:moe_inference", "baseline"),
    ("ch16:piece_graphs_baseline", "ch16:piece_graphs", "baseline"),
    ("ch16:piece_graphs_optimized", "ch16:piece_graphs", "optimized"),
    ("ch18:nvfp4_inference_baseline", "ch18:nvfp4_inference", "baseline"),
    ("ch18:nvfp4_inference_trtllm", "ch18:nvfp4_inference", "optimized"),
    ("ch18:paged_attn_vllm", "ch18:paged_attn", "optimized"),
    ("ch18:scheduling_baseline", "ch18:scheduling", "baseline"),
    ("ch18:scheduling_vllm_sglang", "ch18:scheduling", "optimized"),
    ("ch19:kv_offload_baseline", "ch19:kv_offload", "baseline"),
    ("ch19:kv_offload_grace", "ch19:kv_offload", "optimized"),
    ("ch19:nvfp4_training_baseline", "ch19:nvfp4_training", "baseline"),
    ("ch19:nvfp4_training_optimized", "ch19:nvfp4_training", "optimized"),
    ("labs/ultimate_moe_inference:layer2_memory", "labs/ultimate_moe_inference:layer2_memory", "pair"),
]


@pytest.fixture
def tree(tmp_path):
    """ch07 with a variant and a library, a sound ch08, ch10 and lab, and a spoilt ch09."""
    pairs = pair_files("ch07:add", "ch07:copy", "ch08:ilp", "ch10:matmul", "labs/chat:09_end", "ch09:tiling")
    return discover(
        write(tmp_path, [*pairs, "ch07/optimized_copy_wide.cu", "ch07/library_copy.py", "ch09/optimized_x.py", "ch09/optimized_y.py"])
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The project as the catalogue has it when all is written, three pairs on the baseline of another."""
    borrowed = {
        "ch15:wide_ep": "ch15/baseline_expert_parallelism.py",
        "ch17:prefill_decode_disagg": "ch15/baseline_inference_monolithic.py",
    }
    elsewhere = {"ch12:cuda_graphs_router", "ch15:moe_inference"}
    root = write(tmp_path_factory.mktemp("finished"), pair_files(*(set(catalogue()) - elsewhere)))
    write(root, ["ch12/optimized_cuda_graphs_router.cu"])
    for target, baseline in borrowed.items():
        directory, name = target.split(":")
        (root / directory / f"baseline_{name}.py").unlink()
        (root / directory / f"workload_{name}.py").write_text(f"# baseline: {baseline}\n", encoding="utf-8")
    return discover(root)


def chosen(tree, *targets):
    """What targets select, as (target, sides)."""
    return [(selection.pair.target, selection.sides) for selection in select(tree, targets).selections]


def refusal(tree, *targets):
    """What is said of targets that select nothing."""
    with pytest.raises(BenchmarkError) as error:
        select(tree, targets)
    return str(error.value)


def without(tree, directory):
    """`tree` with one folder's problems solved."""
    for name in ("x", "y"):
        (tree.root / directory / f"optimized_{name}.py").unlink()
    return discover(tree.root)


BOTH = ("baseline", "optimized")
COPY = ("ch07:copy", (*BOTH, "library"))


def test_a_folder_is_its_pairs_and_their_variants(tree):
    assert chosen(tree, "ch07") == [("ch07:add", BOTH), COPY, ("ch07:copy_wide", (*BOTH, "library"))]
    assert chosen(tree, "ch7") == chosen(tree, "ch07/") == chosen(tree, "ch07")
    assert chosen(tree, "labs/chat") == [("labs/chat:09_end", BOTH)]


def test_a_pair_is_without_its_variants(tree):
    assert chosen(tree, "ch7:copy") == chosen(tree, "ch07:copy") == [COPY]
    assert chosen(tree, "labs/chat:09_end") == [("labs/chat:09_end", BOTH)]
    assert not select(tree, ["ch07:copy"]).selections[0].is_half


@pytest.mark.parametrize("side", BOTH)
def test_a_half_is_one_side_alone_in_either_spelling(tree, side):
    assert chosen(tree, f"ch07:copy_{side}") == chosen(tree, f"ch7:{side}_copy") == [("ch07:copy", (side,))]
    assert select(tree, [f"ch07:copy_{side}"]).selections[0].is_half


@pytest.mark.parametrize(
    "targets",
    [
        ("ch07:copy_baseline", "ch07:optimized_copy"),
        ("ch07:optimized_copy", "ch7:copy_baseline"),
        ("ch07:copy_baseline", "ch07:copy"),
        ("ch07:copy", "ch07:copy", "ch7:copy_optimized"),
    ],
)
def test_both_halves_and_overlaps_are_the_pair_once(tree, targets):
    assert chosen(tree, *targets) == [COPY]


def test_the_order_is_that_of_first_mention(tree):
    names = [target for target, _ in chosen(tree, "ch10", "ch07:copy_baseline", "ch08:ilp", "ch07", "ch10:matmul")]
    assert names == ["ch10:matmul", "ch07:copy", "ch08:ilp", "ch07:add", "ch07:copy_wide"]


def test_a_half_that_another_pair_measures_is_not_measured_twice(tree):
    selected = select(tree, ["ch07:copy_baseline", "ch07:copy_wide"])
    assert [selection.pair.target for selection in selected.selections] == ["ch07:copy_wide"]
    assert selected.notes == ("the baseline side of ch07:copy is that of ch07:copy_wide, and is measured there",)
    assert len(chosen(tree, "ch07:copy_optimized", "ch07:copy_wide")) == 2


def test_no_target_is_everything(tree):
    assert chosen(without(tree, "ch09")) == [
        ("ch07:add", BOTH),
        COPY,
        ("ch07:copy_wide", (*BOTH, "library")),
        ("ch08:ilp", BOTH),
        ("ch09:tiling", BOTH),
        ("ch10:matmul", BOTH),
        ("labs/chat:09_end", BOTH),
    ]


def test_everything_of_nothing_is_an_error(tmp_path):
    assert refusal(discover(tmp_path)).startswith(f"{tmp_path}: found no pair; expected workload_<name>.py")


@pytest.mark.parametrize("targets", [("ch09",), ("ch09:tiling",), ("ch9:tiling_baseline",), ("ch09:x",), ("ch07", "ch09"), ()])
def test_a_folder_with_problems_is_not_measured(tree, targets):
    sentence = "ch09/optimized_x.py: found no workload for it; expected ch09/workload_x.py (and 1 more)"
    assert refusal(tree, *targets) == sentence


def test_a_lone_problem_is_told_alone(tree):
    (tree.root / "ch09/optimized_y.py").unlink()
    assert refusal(discover(tree.root), "ch09").endswith("expected ch09/workload_x.py")


def test_problems_elsewhere_do_not_matter(tree):
    assert chosen(tree, "ch08") == [("ch08:ilp", BOTH)]


def test_an_alias_whose_pair_is_half_written_says_what_is_missing(tree):
    write(tree.root, ["ch14/optimized_triton_intro.py"])
    assert refusal(discover(tree.root), "ch06:triton").startswith("ch14/optimized_triton_intro.py: found no workload for it")


@pytest.mark.parametrize(
    ("target", "near"),
    [
        ("ch07:copi", "ch07:copy"),
        ("ch07:copy_wid", "ch07:copy_wide"),
        ("ch08:copy", "ch07:copy"),
        ("ch77:add", "ch07:add"),
        ("matmul", "ch10:matmul"),
        ("labs", "labs/chat:09_end"),
        ("ch07:", "ch07:add"),
        ("ch77", "ch07"),
    ],
)
def test_an_unknown_target_lists_the_near_ones(tree, target, near):
    message = refusal(tree, "ch08", target)
    assert message.startswith(f"target {target!r}: found nothing of that name; expected one like ")
    assert near in message.partition("one like ")[2].split(", ")
    assert "\n" not in message


@pytest.fixture
def told(tree):
    """`tree`, whose pairs have ideas and claims."""
    (tree.root / "ch08/optimized_ilp.py").write_text('"""Optimized: four sums in flight, through shared memory."""\n')
    (tree.root / "ch10/optimized_matmul.py").write_text(
        '"""Optimized: a pipeline."""\n# proves: tma_load_tile in gemm\n# proves: wgmma_wait\n'
    )
    (tree.root / "ch07/optimized_copy_wide.cu").write_text("// Optimized: 16 bytes a load, past shared memory.\n// has: ld_128bit\n")
    return without(tree, "ch09")


@pytest.mark.parametrize(
    ("target", "near"),
    [
        ("tma", "ch10:matmul"),
        ("ch10:tma_pipeline", "ch10:matmul"),
        ("tensor_cores", "ch10:matmul"),
        ("float4", "ch07:copy_wide"),
        ("gemm", "ch10:matmul"),
        ("ch08:shared_memory", "ch08:ilp, ch07:copy_wide"),
        ("ch07:Shared memory", "ch07:copy_wide, ch08:ilp"),
        ("optimized_add", "ch07:add"),
        ("ch07:add:x", "ch07:add"),
    ],
)
def test_an_unknown_target_lists_those_whose_idea_or_claims_have_its_words(told, target, near):
    assert refusal(told, target) == f"target {canonical(target)!r}: found nothing of that name; expected one like {near}"


def test_several_targets_in_one_are_told_apart(told):
    expected = "expected --targets ch07 --targets ch08:ilp"
    assert refusal(told, "ch7,ch08:ilp") == f"target 'ch7,ch08:ilp': found several in one; {expected}"
    assert refusal(told, "ch07 ch8:ilp").endswith(expected)


@pytest.mark.parametrize("target", ["ch08:zzzzzzzz", "ch07:copy_baseline_optimized"])
def test_a_target_unlike_any_is_sent_to_the_list(tree, target):
    assert refusal(tree, target) == f"target {target!r}: found nothing of that name; expected one that list-targets prints"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("ch10:tcgen05", "ch10:tcgen05 is planned and not written yet"),
        ("ch4", "ch04 is planned and not written yet"),
        ("labs/moe_cuda", "labs/moe_cuda is planned and not written yet"),
        ("ch10:tcgen05_baseline", "ch10:tcgen05_baseline stands for ch10:tcgen05, which is planned and not written yet"),
        ("ch6:triton", "ch06:triton stands for ch14:triton_intro, which is planned and not written yet"),
    ],
)
def test_what_is_promised_and_not_written_says_just_that(tree, target, message):
    assert refusal(tree, target) == message


@pytest.mark.parametrize(("label", "target", "part"), LABELS)
def test_every_label_of_older_texts_selects_what_it_stood_for(finished, label, target, part):
    assert chosen(finished, label) == [(target, BOTH if part == "pair" else (part,))]


def test_another_name_is_told_once(finished):
    targets = ["ch1:warp_specialization", "ch01:warp_specialization", "ch4:nccl_nvls", "ch6:triton_baseline", "ch04:nvl72_baseline"]
    assert select(finished, targets).notes == (
        "ch01:warp_specialization is another name of ch01:basic_benchmark",
        "ch04:nccl_nvls is the optimized side of ch04:nccl",
        "ch06:triton_baseline is the baseline side of ch14:triton_intro",
    )


def test_a_pair_of_that_very_name_wins_over_an_alias_and_over_a_half(tree):
    write(tree.root, pair_files("ch04:nccl", "ch04:nccl_nvls"))
    assert chosen(discover(tree.root), "ch04:nccl_nvls") == [("ch04:nccl_nvls", BOTH)]


def test_a_folder_on_disk_may_have_one_digit(tmp_path):
    one_digit = discover(write(tmp_path, pair_files("ch7:copy")))
    assert chosen(one_digit, "ch07:copy") == chosen(one_digit, "ch7") == [("ch7:copy", BOTH)]


def selects_or_is_planned(tree, target):
    try:
        return select(tree, [target]).selections
    except BenchmarkError as error:
        return PLANNED.search(str(error))


@pytest.mark.parametrize("targets", ACCEPTED, ids=" ".join)
def test_every_published_command_selects_something_or_says_it_is_planned(targets):
    tree = discover(PROJECT_ROOT)
    for target in targets:
        assert selects_or_is_planned(tree, target)


@pytest.mark.parametrize(
    "targets", [targets for targets in ACCEPTED if len(targets) == 2 and targets[0].endswith("_baseline")], ids=" ".join
)
def test_every_published_comparison_is_one_pair(finished, targets):
    (selection,) = select(finished, targets).selections
    assert selection.sides == BOTH


def test_every_published_command_resolves_once_all_is_written(finished):
    assert all(select(finished, targets).selections for targets in ACCEPTED)


def test_the_catalogue_promises_203_different_pairs():
    assert len(catalogue()) == len(set(catalogue())) == 203
    assert all(re.fullmatch(r"(ch(0[1-9]|1\d|20)|labs/\w+):\w+", target) for target in catalogue())


@pytest.mark.parametrize("name", aliases())
def test_an_alias_leads_to_a_promised_pair_and_says_what_the_grammar_cannot(name):
    alias = aliases()[name]
    assert alias.pair in catalogue()
    assert alias.side in {"pair", *BOTH}
    directory, _, stem = name.partition(":")
    assert f"{directory}:{re.sub(r'^(baseline|optimized)_|_(baseline|optimized)$', '', stem)}" != alias.pair


def test_the_pairs_of_a_folder(tree):
    assert [pair.name for pair in in_directory(tree, "ch7")] == ["add", "copy", "copy_wide"]
    assert [pair.name for pair in in_directory(tree, "labs/chat")] == ["09_end"]
    assert [pair.name for pair in in_directory(tree, "ch09")] == ["tiling"]


@pytest.mark.parametrize(
    ("name", "message"), [("ch1", "ch01 is planned and not written yet"), ("labs/chap", "expected one like labs/chat")]
)
def test_a_folder_that_is_not_there(tree, name, message):
    with pytest.raises(BenchmarkError, match=message):
        in_directory(tree, name)
