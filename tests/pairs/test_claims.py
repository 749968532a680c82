"""What the sides of a pair claim of their machine code is in it, and what the optimized side proves by it is not in the baseline's.

The libraries are those of a run: they lie in its build cache, under a hash of all that went into them. Claims of launches, graphs,
counters and overlaps are settled on a GPU alone, and must not be refuted here.
"""

import pytest

from common.python.errors import BenchmarkError
from common.python.session.planning import uses_triton
from tests.pairs.planted import BASELINE, IN_PYTHON, OPTIMIZED, planted
from tests.pairs.proofs import read_pair
from tests.pairs.tree import pairs_of
from tests.support.cuda_sides import skip_without_tools

# What these pairs change, no machine code and no trace shows.
PROVES_NOTHING = {
    "ch03:huge_pages",  # which pages memory has
    "ch03:moe",  # which CPUs a process may use
    "ch03:numa_unaware",  # and on which node
    "ch04:nccl_config",  # which communicator an all-reduce runs in
    "ch05:dataloader",  # which process decodes
    "ch05:gpudirect_storage",  # which way a file's bytes take to the device
    "ch05:gpudirect_storage_compat",
    "ch05:io_uring",  # how many reads are in flight
    "ch05:sequential_io",  # how the host reads a file
    "ch05:storage_cpu",  # and when
    "ch13:custom_allocator",  # and how free memory is joined
    "ch13:dataloader",  # which process counts words
    "ch13:fp8_per_channel",  # how many scales a product has
    "ch13:fp8_per_channel_in_norm",  # nor that nobody applies them
    "ch14:dynamic_shapes",  # for which sizes something is compiled
    "ch14:regional_compile",  # what is compiled at once
    "ch15:continuous_batching",  # when a request starts
    "ch15:disaggregated_inference",  # nor is any step traced that serves requests: on which SMs a prompt runs
    "ch15:inference_monolithic",  # what a graph holds
    "ch15:kv_cache_management",  # which memory a request holds
    "ch15:load_balancing",  # which rank has which expert
    "ch15:wide_ep",  # nor how many ranks share them out: from four on both sides send
    "ch18:scheduling",  # how many tokens of a prompt a step takes
    "ch15:prefix_caching",  # which tokens of a prompt are computed
    "ch15:speculative_decoding",  # how many tokens a step computes
    "ch16:monitoring",  # nor are those of these two
    "ch16:radix_attention",
    "ch16:gptq",  # to which code a weight is rounded
    "ch19:nvfp4_training",  # and in which basis
    "ch19:mxfp8_moe",  # to which power of two a scale is
    "ch19:kv_offload_grace",  # in which memory blocks lie
    "ch19:custom_allocator_retry",  # how a batch's size is found
    "ch19:rl_tuning",  # how many tokens a step takes
    "ch19:rl_tuning_fixed",
    "ch17:dynamic_routing",  # which engine answers
    "ch17:early_rejection",  # which requests start
    "ch17:prefill_decode_disagg",  # nor which one goes on with it
    "ch17:routing_static",
    "ch18:multi_draft_speculative",  # how many drafts a step checks
    "ch18:speculative_decoding",  # how many tokens a round says
    "labs/speculative_decode:speculative_decode",  # nor who drafts them
}


def marks_of(pair):
    """A CUDA or Triton side that nobody built yet takes seconds to compile; CUTLASS and the pipelines of chapter 10 take minutes."""
    if not any(file.suffix == ".cu" or uses_triton(file) for file in pair.sides.values()):
        return ()
    return (pytest.mark.slow, pytest.mark.timeout(900))


PAIRS = [pair for pair in pairs_of() if pair.target not in PROVES_NOTHING]


@pytest.mark.parametrize("pair", [pytest.param(pair, id=pair.target, marks=marks_of(pair)) for pair in PAIRS])
def test_claims_hold_in_machine_code(pair, harness):
    skip_without_tools()
    assert not list(read_pair(pair, harness.compile).wrong())


def test_every_exception_is_a_pair_of_the_tree():
    assert {pair.target for pair in pairs_of()} >= PROVES_NOTHING


def wrong_in(folder, harness, **sides):
    skip_without_tools()
    return list(read_pair(planted(folder, **sides), harness.compile, folder).wrong())


def claiming(*claims):
    """The optimized side of the planted pair with other claims."""
    return OPTIMIZED.replace("// proves: more /FADD/\n", "".join(f"// {claim}\n" for claim in claims))


def test_claims_that_hold_are_not_refused(tmp_path, harness):
    assert wrong_in(tmp_path, harness, optimized=claiming("proves: more /FADD/", "has: spills == 0", "proves: launches == 1")) == []


WRONG = {
    "what the baseline has too": ("proves: /FADD/", "optimized: `/FADD/` is failed: the same in the baseline: "),
    "what is not there": ("proves: /HGMMA/", "optimized: `/HGMMA/` is failed: none in sum"),
    "what is there and is denied": ("proves: not /FADD/", "optimized: `not /FADD/` is failed: "),
    "as much as in the baseline": ("proves: fewer /LDG/", "optimized: `fewer /LDG/` is failed: "),
    "fewer registers than any code has": ("proves: registers < 2", "optimized: `registers < 2` is failed: "),
    "a kernel that is not there": ("proves: kernel gemm", "optimized: `kernel gemm` is failed: no kernel of the library has 'gemm'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_claim_that_is_wrong_is_refused(wrong, tmp_path, harness):
    claim, message = WRONG[wrong]
    (found,) = wrong_in(tmp_path, harness, optimized=claiming(claim))
    assert found.startswith(message)


def test_what_a_baseline_has_must_be_there(tmp_path, harness):
    (found,) = wrong_in(tmp_path, harness, baseline=f"// has: /HGMMA/\n{BASELINE}")
    assert found.startswith("baseline: `/HGMMA/` is failed: ")


def test_a_side_that_proves_nothing_is_refused(tmp_path, harness):
    assert wrong_in(tmp_path, harness, optimized=claiming("has: /FADD/")) == ["the optimized side proves nothing"]


def test_what_is_proved_against_pytorch_must_be_in_the_machine_code(tmp_path, harness):
    claims = claiming("proves: /FADD/", "proves: /HGMMA/")
    (found,) = wrong_in(tmp_path, harness, baseline=IN_PYTHON, optimized=claims)
    assert found.startswith("optimized: `/HGMMA/` is failed: ")


def test_a_claim_that_is_not_in_the_grammar_is_an_error(tmp_path, harness):
    with pytest.raises(BenchmarkError, match="found `proves: /FADD`"):
        wrong_in(tmp_path, harness, optimized=claiming("proves: /FADD"))
