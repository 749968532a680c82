"""A claim is proven only by what was seen, failed only by what was seen, and in between it is unchecked."""

from dataclasses import replace

import pytest

from common.python.pairs.claims import parse_claim
from common.python.processes.messages import Span
from common.python.prove.proofs import Seen, nothing, prove
from tests.support.probes import PLAIN, a_kernel, a_launch, needs_nvcc, probes

NOT_RUN = "which kernels a step launches is seen on a GPU"
TMA = ("UTMALDG.2D [UR8], [UR4]", *PLAIN)


def built(*kernels):
    """A library that nobody saw run."""
    return Seen(kernels, hidden=NOT_RUN)


def ran(*kernels, launches=None):
    """A library and what was seen to run of it: each kernel once, unless `launches` say otherwise."""
    return Seen(kernels, tuple(a_launch(each.name, call=i) for i, each in enumerate(kernels)) if launches is None else tuple(launches))


def verdict(text, optimized, baseline=None, *, proves=True):
    """State and detail of a claim; sides are what was seen on 90a, or by architecture."""
    by_architecture = [side if isinstance(side, dict) else {"90a": side} for side in (optimized, baseline or built(a_kernel("plain")))]
    proof = prove(parse_claim(text, separates=proves), "optimized", {"optimized": by_architecture[0], "baseline": by_architecture[1]})
    return proof.state, proof.detail


def state(*arguments, **options):
    return verdict(*arguments, **options)[0]


def test_a_technique_in_the_side_and_not_in_the_baseline_is_proven():
    assert verdict("tma_load_tile", built(a_kernel(code=TMA))) == (
        "proven",
        "1 instruction in gemm, built and not seen to run; baseline: none in plain (sm_90a)",
    )
    assert verdict("tma_load_tile", ran(a_kernel(code=TMA)))[1].startswith("1 instruction in gemm; baseline")


def test_a_technique_that_is_nowhere_is_not():
    assert verdict("tma_load_tile", built(a_kernel())) == ("failed", "none in gemm (sm_90a)")


def test_a_technique_that_the_baseline_has_too_is_not():
    found = verdict("tma_load_tile", built(a_kernel(code=TMA)), built(a_kernel("plain", TMA)))
    assert found == ("failed", "the same in the baseline: 1 instruction in plain (sm_90a)")
    assert state("tma_load_tile", built(a_kernel(code=TMA)), built(a_kernel("plain", TMA)), proves=False) == "proven"


def test_a_technique_in_a_kernel_that_never_runs_is_not():
    seen = ran(a_kernel("copy"), a_kernel("decoy", TMA), launches=[a_launch("copy")])
    assert verdict("tma_load_tile", seen) == ("failed", "only in decoy, which step does not launch; it launches copy (sm_90a)")
    assert state("tma_load_tile", built(a_kernel("copy"), a_kernel("decoy", TMA))) == "proven"


def test_the_kernels_that_run_are_known_by_their_mangled_name_too():
    seen = ran(a_kernel("copy(float*)", TMA), launches=[a_launch("_Z4copyPf")])
    assert state("tma_load_tile", seen) == "proven"


def test_every_architecture_must_show_it():
    both = {"90a": built(a_kernel(code=TMA)), "100a": built(a_kernel(code=TMA))}
    plain = {"90a": built(a_kernel()), "100a": built(a_kernel())}
    assert verdict("tma_load_tile", both, plain)[0] == "proven"
    assert verdict("tma_load_tile", {**both, "100a": built(a_kernel("new"))}, plain) == ("failed", "none in new (sm_100a)")


def test_a_technique_of_one_architecture_is_looked_for_on_that_alone():
    both = {"90a": built(a_kernel()), "100a": built(a_kernel(code=("LDTM.x16 R4, tmem[UR4]",)))}
    assert state("tcgen05_ld", both, {"90a": built(a_kernel())}) == "proven"
    assert verdict("tcgen05_ld", built(a_kernel())) == ("unchecked", "exists on sm_100a; the side was built for sm_90a")


def test_a_gb300_is_held_to_what_a_b200_has():
    loads, plain = built(a_kernel(code=("LDTM.x16 R4, tmem[UR4]",))), built(a_kernel())
    assert state("tcgen05_ld", {"100a": loads, "103a": loads}, {"100a": plain}) == "proven"
    assert state("tcgen05_ld", {"100a": loads, "103a": plain}, {"100a": plain}) == "failed"
    assert state("tcgen05_ld", {"103a": loads}, {"90a": loads, "100a": plain}) == "proven"  # and not held against Hopper's baseline


def test_a_kernel_can_be_named():
    seen = built(a_kernel("load_tile(float*)", TMA), a_kernel("store"))
    assert state("tma_load_tile in load_tile", seen) == "proven"
    assert verdict("tma_load_tile in store", seen) == ("failed", "none in store (sm_90a)")
    assert verdict("tma_load_tile in gemm", seen) == ("failed", "no kernel has 'gemm' in its name (sm_90a)")


def test_absence_more_and_fewer():
    two, one = built(a_kernel(code=("FFMA R1, R2, R3, R4",) * 2)), built(a_kernel(code=("FFMA R1, R2, R3, R4",)))
    assert state("not ffma", built(a_kernel()), one) == "proven"
    assert state("not ffma", one, two) == "failed"
    assert state("not ffma", built(a_kernel()), built(a_kernel())) == "failed"
    assert (state("more ffma", two, one), state("more ffma", one, one)) == ("proven", "failed")
    assert (state("fewer ffma", one, two), state("fewer ffma", two, two)) == ("proven", "failed")


def test_a_pattern_sees_an_instruction_with_its_operands():
    seen = built(a_kernel(code=("STG.E.128 [R2.64], R4",)))
    assert state(r"/^STG\.E.*R4$/", seen) == "proven"
    assert state(r"/^R4/", seen) == "failed"


def test_pytorchs_kernels_prove_nothing_about_machine_code():
    torch_kernels = Seen(launches=(a_launch("sgemm"),), no_code="no machine code of sgemm is at hand")
    assert verdict("tma_load_tile", ran(a_kernel(code=TMA)), torch_kernels)[0] == "unchecked"
    assert verdict("tma_load_tile", torch_kernels, proves=False) == ("unchecked", "no machine code of sgemm is at hand")
    assert state("not tma_load_tile", torch_kernels, proves=False) == "unchecked"


def test_what_a_side_claims_is_in_code_that_it_brings():
    mixed = Seen((a_kernel(),), (a_launch(), a_launch("sgemm")), no_code="no machine code of sgemm is at hand")
    assert state("tma_load_tile", mixed, proves=False) == "failed"


def test_of_kernels_with_one_name_the_one_that_ran_has_the_launchs_registers():
    tuned = (a_kernel(code=TMA, registers=40), a_kernel(registers=90))
    assert state("tma_load_tile", ran(*tuned, launches=[a_launch(registers=40)])) == "proven"
    assert state("tma_load_tile", ran(*tuned, launches=[a_launch(registers=90)])) == "failed"
    assert state("tma_load_tile", ran(*tuned, launches=[a_launch(registers=7)])) == "proven"  # neither: both count


AMOUNTS = {
    "registers <= 64": "proven",
    "registers > 40": "proven",
    "registers <= 40": "failed",
    "registers in idle <= 64": "unchecked",
    "spills == 0": "failed",
    "spills in first == 0": "proven",
    "launches == 3": "proven",
    "kernels == 4": "proven",
    "kernels in first == 3": "proven",
    "graph_nodes == 2": "proven",
    "graph_nodes in first == 1": "proven",
    "blocks == 32": "proven",
    "blocks in first < 24": "failed",
    "kernel second": "proven",
    "kernel third": "failed",
    "not kernel third": "proven",
    "grid <= 8": "proven",
    "block == 128": "proven",
    "block in second == 64": "failed",
    "shared_memory <= 1 KiB": "proven",
    "shared_memory < 1024": "failed",
    "cluster == 2": "unchecked",
    "overlap first copy == 0.5": "proven",
    "overlap first copy > 0.5": "failed",
    "overlap first nothing >= 0": "proven",
    "overlap first nothing > 0": "failed",
    "counter dram__bytes.sum <= 100": "proven",
    "counter unknown <= 100": "unchecked",
    "calls Synchronize == 2": "proven",
    "calls cudaGraphInstantiate == 0": "proven",
    "calls cudaMemcpyAsync == 0": "failed",
}


@pytest.mark.parametrize(("text", "expected"), AMOUNTS.items(), ids=AMOUNTS)
def test_amounts_are_those_of_what_ran(text, expected):
    launches = (
        a_launch("first", call=1),
        a_launch("first", call=2),
        a_launch("first", call=3, in_graph=True, shared_bytes=1024),
        a_launch("second", call=3, in_graph=True, cluster=2),
    )
    spans = [("first", 0, 10), ("first", 5, 20), ("copy HtoD", 15, 25), ("copy HtoD", 24, 25)]
    seen = Seen(
        (a_kernel("first", registers=40), a_kernel("second", registers=64, spill_bytes=8), a_kernel("idle", registers=255)),
        launches,
        tuple(Span(name=name, start_ns=start, end_ns=end) for name, start, end in spans),
        counters={"dram__bytes.sum": 100.0},
        calls={"cudaStreamSynchronize": 2, "cudaMemcpyAsync": 2},
    )
    assert state(text, seen, proves=False) == expected


OF_STREAMS = {
    "one after the other": ([(1, 0, 10), (2, 10, 20)], 0.0),
    "half of the shorter": ([(1, 0, 10), (2, 8, 12)], 0.5),
    "all of the shorter": ([(1, 0, 10), (2, 2, 6)], 1.0),
    "a third, of which nothing is hidden": ([(1, 0, 10), (2, 0, 10), (3, 10, 20)], 0.5),
    "three at once": ([(1, 0, 10), (2, 0, 10), (3, 0, 10)], 1.0),
    "in a stream itself": ([(1, 0, 10), (1, 5, 15)], 0.0),
}


@pytest.mark.parametrize(("spans", "share"), OF_STREAMS.values(), ids=OF_STREAMS)
def test_overlap_is_what_streams_hide_of_what_the_busiest_could(spans, share):
    seen = Seen(launches=(a_launch("a"),), spans=tuple(Span(name="a", stream=stream, start_ns=a, end_ns=b) for stream, a, b in spans))
    assert state(f"overlap == {share}", seen, proves=False) == "proven"
    assert state(f"overlap > {share}", seen, proves=False) == "failed"


def test_overlap_separates_two_streams_from_one():
    def ran_on(*streams):
        spans = tuple(Span(name="a", stream=stream, start_ns=5 * i, end_ns=5 * i + 10) for i, stream in enumerate(streams))
        return {"90a": Seen(launches=(a_launch("a"),), spans=spans)}

    claim = parse_claim("overlap >= 0.5", separates=True)
    proof = prove(claim, "optimized", {"baseline": ran_on(1, 1), "optimized": ran_on(1, 2)})
    assert (proof.state, "2 streams hide 50 %" in proof.detail) == ("proven", True)
    proof = prove(claim, "optimized", {"baseline": ran_on(1, 2), "optimized": ran_on(1, 2)})
    assert (proof.state, "the same in the baseline" in proof.detail) == ("failed", True)
    proof = prove(claim, "optimized", {"baseline": ran_on(1, 1), "optimized": ran_on(1, 1)})
    assert (proof.state, "all runs on one stream" in proof.detail) == ("failed", True)


@pytest.mark.parametrize(
    ("text", "worse"),
    {
        "counter dram__bytes.sum < 0.4 x baseline": {"counters": {"dram__bytes.sum": 50.0}},
        "launches < 0.2 x baseline": {"launches": tuple(a_launch(call=call) for call in range(9))},
        "kernel gemm": {"launches": (a_launch("other"),)},
        "calls cudaStreamSynchronize == 0": {"calls": {"cudaStreamSynchronize": 1}},
    }.items(),
)
def test_what_a_run_tells_is_decided_by_the_architecture_that_ran(text, worse):
    """Triton and torch.compile are compiled ahead for two architectures; this machine runs one, and nobody waits for the other."""
    good = Seen((a_kernel(),), (a_launch(),), counters={"dram__bytes.sum": 30.0}, calls={"cudaLaunchKernel": 1})
    base = Seen(
        (a_kernel("other"),),
        tuple(a_launch("other", call=call) for call in range(10)),
        counters={"dram__bytes.sum": 100.0},
        calls={"cudaStreamSynchronize": 1},
    )
    ahead = Seen((a_kernel(),), hidden="its kernels are seen on GPUs", no_code="its kernels are seen on GPUs")
    claim = parse_claim(text, separates=True)
    for seen, expected in ((good, "proven"), (replace(good, **worse), "failed")):
        evidence = {"baseline": {"90a": base}, "optimized": {"90a": seen, "100a": ahead}}
        assert prove(claim, "optimized", evidence).state == expected
    assert prove(claim, "optimized", {"baseline": {"90a": base}, "optimized": {"100a": ahead}}).state == "unchecked"


def test_machine_code_has_to_be_there_on_every_architecture():
    """A run on one architecture does not excuse the code of another."""
    ran = Seen((a_kernel(registers=40),), (a_launch(),))
    ahead = Seen((a_kernel(registers=80),), hidden=NOT_RUN)
    claim = parse_claim("registers <= 64", separates=False)
    assert prove(claim, "optimized", {"baseline": {}, "optimized": {"90a": ran, "100a": ahead}}).state == "failed"


def test_a_comparison_with_the_baseline_needs_both():
    few, many = ran(a_kernel(), launches=[a_launch()]), ran(a_kernel(), launches=[a_launch(call=i) for i in range(10)])
    assert state("launches < 0.2 x baseline", few, many) == "proven"
    assert state("launches < 0.05 x baseline", few, many) == "failed"
    assert state("launches < baseline", few, built(a_kernel())) == "unchecked"
    assert verdict("launches == 1", few, many) == ("proven", "1 launch of gemm; baseline: 10 launches of gemm (sm_90a)")
    assert verdict("launches == 1", few, few)[0] == "failed"
    assert verdict("launches == 1", few, nothing("unseen")) == ("unchecked", "1 launch of gemm; baseline: unseen")
    assert state("launches == 1", many, nothing("unseen")) == "failed"


def test_a_lower_bound_can_refute_and_cannot_confirm():
    """A Triton side that also calls PyTorch: its own two launches are known, others are not."""
    partly = Seen(
        (a_kernel(),), (a_launch(call=1), a_launch(call=2)), hidden="step also calls aten.mul", no_code="step also calls aten.mul"
    )
    assert state("launches == 1", partly, proves=False) == "failed"
    assert state("launches == 2", partly, proves=False) == "unchecked"
    assert state("launches >= 2", partly, proves=False) == "proven"
    assert state("registers <= 64", partly, proves=False) == "unchecked"
    assert state("registers in gemm <= 64", partly, proves=False) == "proven"


@pytest.mark.parametrize(("launches", "expected"), [(2, "proven"), (3, "failed")])
def test_a_run_outweighs_what_is_known_in_part_of_another_architecture(launches, expected):
    """A Triton side that also calls PyTorch ran here, and was compiled ahead for another GPU, where PyTorch's launches are unknown."""
    seen = Seen((a_kernel(),), tuple(a_launch(call=call) for call in range(launches)))
    ahead = Seen((a_kernel(),), (a_launch(),), hidden="step also calls aten.zero_", no_code="step also calls aten.zero_")
    claim = parse_claim("launches <= 2", separates=False)
    assert prove(claim, "optimized", {"baseline": {}, "optimized": {"90a": seen, "100a": ahead}}).state == expected


def test_without_a_gpu_launches_are_unchecked_unless_the_library_has_no_such_kernel():
    assert verdict("launches == 1", built(a_kernel()), proves=False) == ("unchecked", NOT_RUN)
    assert state("kernel gemm", built(a_kernel()), proves=False) == "unchecked"
    assert state("kernel tf32", built(a_kernel()), proves=False) == "failed"
    assert state("grid == 8", built(a_kernel()), proves=False) == "unchecked"
    assert state("overlap a b > 0.5", built(a_kernel()), proves=False) == "unchecked"
    assert state("overlap > 0.5", built(a_kernel()), proves=False) == "unchecked"
    assert state("counter a < 1", built(a_kernel()), proves=False) == "unchecked"
    assert state("calls cudaFree == 0", built(a_kernel()), proves=False) == "unchecked"


def test_half_a_row_proves_nothing_against_a_baseline():
    proof = prove(parse_claim("tma_load_tile", separates=True), "optimized", {"optimized": {"90a": built(a_kernel(code=TMA))}})
    assert (proof.state, "the baseline is not part of this row" in proof.detail) == ("unchecked", True)


@needs_nvcc
@pytest.mark.parametrize("architecture", ["90a", "100a"])
@pytest.mark.parametrize(
    ("probe", "claims"),
    {
        "copy_tile": "tma_load_tile mbarrier_init mbarrier_expect_tx mbarrier_try_wait",
        "bf16_math": "bf16x2_math",
        "warp_sum": "shfl",
        "cp_async": "cp_async_16 cp_async_commit cp_async_wait",
        "bulk_store": "bulk_copy_s2g bulk_commit_wait",
        "cluster_load": "cluster_arrive cluster_wait dsmem_generic_ld",
        "asleep": "nanosleep",
    }.items(),
)
def test_a_probe_shows_its_techniques(probe, claims, architecture):
    for claim in claims.split():
        assert verdict(claim, {architecture: built(probes(architecture)[probe])}, proves=False)[0] == "proven", claim


HOPPER = ["wgmma_f16_bf16", "wgmma_arrive", "wgmma_wait", "setmaxnreg_inc"]
BLACKWELL = ["tma_load_tile", "tcgen05_alloc", "tcgen05_mma_f16_tf32", "tcgen05_commit", "tcgen05_ld", "tcgen05_dealloc"]


@needs_nvcc
def test_tensor_cores_are_proven_without_a_gpu_that_has_them():
    kernels = {architecture: probes(architecture) for architecture in ("90a", "100a")}
    for claim in HOPPER:
        assert state(claim, {name: built(found["hopper"]) for name, found in kernels.items()}, proves=False) == "proven", claim
    for claim in BLACKWELL:
        assert state(f"{claim} in blackwell", {"100a": built(*kernels["100a"].values())}, proves=False) == "proven", claim
    assert state("fma_f32x2", {"100a": built(kernels["100a"]["wide"])}, proves=False) == "proven"
    assert state("tcgen05_mma_f16_tf32", {"100a": built(kernels["100a"]["hopper"])}, proves=False) == "failed"


TRAPS = [
    # The compiler's own use of an instruction is no evidence of the technique.
    ("100a", "blackwell", "nanosleep"),
    ("100a", "blackwell", "redux_int"),
    ("100a", "blackwell", "atom_shared"),
    ("100a", "blackwell", "elect"),
    ("100a", "blackwell", "vote"),
    ("100a", "blackwell", "cp_async_wait"),
    ("90a", "hopper", "cp_async_wait"),
    ("90a", "bulk_store", "cp_async_wait"),
    ("90a", "generic_load", "dsmem_generic_ld"),
    ("90a", "copy_tile", "elect"),
]


@needs_nvcc
@pytest.mark.parametrize(("architecture", "probe", "technique"), TRAPS)
def test_a_trap_leaves_a_claim_unchecked(architecture, probe, technique):
    found, detail = verdict(technique, {architecture: built(probes(architecture)[probe])}, proves=False)
    assert found == "unchecked"
    assert "which may mean something else: " in detail


@needs_nvcc
@pytest.mark.parametrize("architecture", ["90a", "100a"])
@pytest.mark.parametrize(("probe", "technique"), [("constants", "bf16x2_math"), ("arrive", "mbarrier_expect_tx"), ("arrive", "nanosleep")])
def test_a_trap_that_the_pattern_avoids(probe, technique, architecture):
    assert verdict(technique, {architecture: built(probes(architecture)[probe])}, proves=False)[0] == "failed"


@needs_nvcc
def test_the_traps_are_really_there():
    constants = {name: probes(name)["constants"].instructions for name in ("90a", "100a")}
    assert any(text.startswith("HFMA2.MMA R") for text in constants["90a"])
    assert any(text.startswith("HFMA2 R") for text in constants["100a"])
    assert any(text.startswith("SYNCS.ARRIVE.TRANS64.A1T0") for text in probes("90a")["arrive"].instructions)
