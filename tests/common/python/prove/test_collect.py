"""A technique named is a technique shown: what is not so is UNPROVEN, exit 4, and without a GPU what can be known is known."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python import benchmark_harness
from common.python.pairs.claims import parse_claim
from common.python.pairs.directives import Directives
from common.python.processes.messages import Observed, Span
from common.python.project import PROJECT_ROOT
from common.python.prove.collect import findings, watch_evidence
from common.python.prove.proofs import Seen, prove
from common.python.settings import Settings
from tests.support.commands import OPTIMIZED, benchmark, benchmark_here, write_pair
from tests.support.plans import WITH_GPU, a_plan
from tests.support.probes import CASES, a_kernel, a_launch, needs_nvcc


def rows_of(folder):
    """The rows that the run in `folder` left, by the name behind the colon."""
    return {row["target"].partition(":")[2]: row for row in json.loads((folder / "metrics.json").read_text())["rows"]}


def proofs_of(row, side="optimized"):
    return {proof["claim"]: (proof["state"], proof["detail"]) for proof in row["proofs"] if proof["side"] == side}


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    """How `verify` of all cases on a CPU ended, and its rows."""
    folder = tmp_path_factory.mktemp("verified")
    finished = benchmark_here("verify", "--root", CASES, "--device", "cpu", "--artifacts-dir", folder / "run", scratch=folder)
    return finished, rows_of(folder / "run")


@needs_nvcc
def test_a_run_with_a_wrong_claim_exits_4(verified):
    finished, rows = verified
    assert finished.code == 4
    assert {name: row["status"] for name, row in rows.items()} == {
        "copy_absent": "UNPROVEN",
        "copy_idle": "SKIPPED",
        "copy_spilled": "SKIPPED",
        "copy_tile": "SKIPPED",
        "product": "PASSED",
        "twice": "UNPROVEN",
    }


@needs_nvcc
def test_a_technique_that_is_not_there_is_unproven(verified):
    row = verified[1]["copy_absent"]
    assert row["reason"] == "optimized_copy_absent.cu: found none in copy (sm_90a, sm_100a); expected `tma_load_tile`"
    assert proofs_of(row)["tma_load_tile"][0] == "failed"


@needs_nvcc
def test_a_technique_that_the_baseline_has_too_is_unproven(verified):
    row = verified[1]["twice"]
    assert row["reason"] == (
        "optimized_twice.cu: found the same in the baseline: 1 instruction in copy_tile (sm_90a, sm_100a); expected `tma_load_tile`"
    )
    # The borrowed baseline's own claims against its own baseline are none of this row's; what it has is.
    assert "tma_load_tile in copy_tile" not in proofs_of(row, "baseline")
    assert proofs_of(row, "baseline")["mbarrier_expect_tx"][0] == "proven"


@needs_nvcc
def test_the_control_is_proven_for_hopper_and_blackwell_without_a_gpu(verified):
    row = verified[1]["copy_tile"]
    proofs = proofs_of(row)
    assert proofs.pop("launches == 1") == ("unchecked", "which kernels a step launches is seen on a GPU")
    assert {state for state, _ in proofs.values()} == {"proven"}
    assert proofs["tma_load_tile in copy_tile"][1].endswith("(sm_90a, sm_100a)")
    kernels = {kernel["architecture"]: kernel for kernel in row["sides"]["optimized"]["kernels"]}
    assert set(kernels) == {"90a", "100a"}
    assert all(kernel["shared_bytes"] >= 4096 and kernel["launches"] is None for kernel in kernels.values())


@needs_nvcc
def test_registers_that_spill_are_a_finding(verified):
    row = verified[1]["copy_spilled"]
    spilled = {kernel["architecture"]: kernel["spill_bytes"] for kernel in row["sides"]["optimized"]["kernels"]}
    for architecture in ("90a", "100a"):
        expected = f"copy on sm_{architecture} spills {spilled[architecture]} bytes of registers; expected none in an optimized side"
        assert f"optimized_copy_spilled.cu: {expected}" in row["notes"]
        assert spilled[architecture] > 0
    assert not any("spills" in note for note in verified[1]["copy_tile"]["notes"])


def test_a_side_that_does_what_the_baseline_does_is_a_finding():
    plan = SimpleNamespace(file=lambda side: Path(f"{side}_a.cu"))
    seen = Seen((a_kernel("copy"), a_kernel("other", registers=9)), (a_launch("copy"),))
    same = replace(seen, kernels=(a_kernel("copy", registers=8),))
    for optimized, found in (
        (same, True),
        (replace(seen, launches=(a_launch("copy", in_graph=True),)), False),  # a graph's replay costs the host less
        (replace(seen, launches=(a_launch("copy", block=(64, 1, 1)),)), False),
        (replace(seen, kernels=(a_kernel("copy", code=("EXIT",)),)), False),
        (replace(seen, launches=(), hidden="not run"), False),
    ):
        notes = list(findings(plan, {"baseline": {"90a": seen}, "optimized": {"90a": optimized}}))
        assert [note.startswith("optimized_a.cu: its launches and their machine code are the baseline's") for note in notes] == [
            True
        ] * found


@pytest.mark.parametrize(
    ("spans", "found"),
    [
        ([("copy", 7), ("other", 7)], True),
        ([("copy", 7), ("other", 7), ("Memcpy PtoP", 7)], False),  # one side may stage it, the other not
        ([("copy", 7), ("other", 13)], False),  # one side may run them together
    ],
)
def test_sides_that_copy_or_use_streams_are_no_such_finding(spans, found):
    plan = SimpleNamespace(file=lambda side: Path(f"{side}_a.cu"))
    work = tuple(Span(name=name, start_ns=0, end_ns=1, stream=stream) for name, stream in spans)
    seen = Seen((a_kernel("copy"), a_kernel("other")), (a_launch("copy"), a_launch("other")), work)
    assert bool(list(findings(plan, {"baseline": {"90a": seen}, "optimized": {"90a": seen}}))) == found


def bring_cubin(side):
    """Put a cubin of a lab, whose kernel loads 16 bytes at a time, beside the side, under its name."""
    cubin = PROJECT_ROOT / "labs/one_kernel_many_languages/optimized_one_kernel_many_languages_cutile.sm_90a.cubin"
    shutil.copy(cubin, side.with_suffix(".sm_90a.cubin"))


@needs_nvcc
@pytest.mark.parametrize(
    ("claim", "brings", "code", "state", "detail"),
    [
        ("ld_128bit", True, 0, "proven", "8 instructions in quantized_norm, built and not seen to run (sm_90a)"),
        ("tma_load_tile", True, 4, "failed", "none in quantized_norm (sm_90a)"),
        ("ld_128bit", False, 0, "unchecked", "what PyTorch launches is seen on a GPU"),
    ],
)
def test_a_python_side_is_held_to_the_cubins_that_it_brings(claim, brings, code, state, detail, tmp_path):
    write_pair(tmp_path, optimized=OPTIMIZED.replace("\n", f"\n# has: {claim}\n", 1))
    if brings:
        bring_cubin(tmp_path / "demo/optimized_double.py")
    where = ["--root", tmp_path, "--device", "cpu", "--artifacts-dir", tmp_path / "run"]
    finished = benchmark_here("verify", *where, scratch=tmp_path)
    proof = proofs_of(rows_of(tmp_path / "run")["double"])[claim]
    assert (finished.code, proof) == (code, (state, detail))


@needs_nvcc
@pytest.mark.parametrize(
    ("launched", "no_code"),
    [(("quantized_norm",), ""), (("quantized_norm", "elementwise_kernel"), "no machine code of elementwise_kernel is at hand")],
)
def test_what_a_watched_step_launches_is_looked_for_in_the_cubins_too(launched, no_code, tmp_path):
    """A kernel of PyTorch's that it launches besides is not: nothing is said of its code."""
    plan = a_plan(tmp_path, sides=("optimized",))
    bring_cubin(plan.file("optimized"))
    observed = Observed(nonce="", launches=[a_launch(name) for name in launched], spans=[], cubins=[], missed="")
    idle = dict.fromkeys(("finish_load", "begin", "begin_close"), lambda *_: None)
    worker = SimpleNamespace(finish=lambda *_: observed, **idle)
    session = SimpleNamespace(new_seed=lambda: 1, limit_s=lambda _: 1.0, tell=lambda _: None)
    evidence = {"optimized": {}}
    watch_evidence(plan, session, WITH_GPU, evidence, {"optimized": worker})
    seen = evidence["optimized"]["90a"]
    assert ([kernel.name for kernel in seen.launched_kernels], seen.no_code) == (["quantized_norm"], no_code)


def test_a_triton_side_is_proven_ahead_of_time_and_checked_in_the_interpreter(verified):
    row = verified[1]["product"]
    proofs = proofs_of(row)
    assert proofs.pop("kernel product_of_tiles") == (
        "unchecked",
        "1 kernel of product_of_tiles; baseline: what PyTorch launches is seen on a GPU",
    )
    assert {state for state, _ in proofs.values()} == {"proven"}
    assert proofs["tcgen05_mma_f16_tf32"][1].endswith("(sm_100a)")
    kernels = {kernel["architecture"]: kernel for kernel in row["sides"]["optimized"]["kernels"]}
    assert {name: kernel["launches"] for name, kernel in kernels.items()} == {"90a": 1, "100a": 1}
    assert all(kernel["shared_bytes"] >= 64 << 10 for kernel in kernels.values())


@needs_nvcc
def test_nothing_but_proofs_is_good(tmp_path):
    """Where no side can run, `verify` has still done its work."""
    where = ["--root", CASES, "--targets", "evidence_cases:copy_tile", "--device", "cpu"]
    assert benchmark_here("verify", *where, "--artifacts-dir", tmp_path / "run", scratch=tmp_path).code == 0


def test_a_claim_that_cannot_be_read_is_an_error_before_anything_runs(tmp_path):
    write_pair(tmp_path, optimized=OPTIMIZED.replace("\n", "\n# proves: tma_load_tilee\n", 1))
    finished = benchmark_here("verify", "--root", tmp_path, scratch=tmp_path)
    assert finished.code == 1
    assert finished.error.startswith("demo/optimized_double.py:2: found `proves: tma_load_tilee`; expected tma_load_tile")


@pytest.mark.gpu
@needs_nvcc
def test_a_technique_in_a_kernel_that_never_runs_is_unproven(tmp_path):
    finished = benchmark(
        "verify", "--root", CASES, "--targets", "evidence_cases:copy_idle", "--artifacts-dir", tmp_path / "run", scratch=tmp_path
    )
    row = rows_of(tmp_path / "run")["copy_idle"]
    assert (finished.code, row["status"]) == (4, "UNPROVEN")
    assert "only in copy_tile, which step does not launch; it launches copy" in row["reason"]


@pytest.mark.gpu
@needs_nvcc
@pytest.mark.parametrize("case", ["copy_tile", "product"])
def test_on_a_gpu_every_claim_of_the_controls_is_proven(tmp_path, case):
    finished = benchmark(
        "verify", "--root", CASES, "--targets", f"evidence_cases:{case}", "--artifacts-dir", tmp_path / "run", scratch=tmp_path
    )
    row = rows_of(tmp_path / "run")[case]
    assert (finished.code, row["status"]) == (0, "PASSED"), row["reason"]
    assert {state for state, _ in proofs_of(row).values()} <= {"proven"}, row["proofs"]
    watched = [kernel for kernel in row["sides"]["optimized"]["kernels"] if kernel["occupancy_percent"] is not None]
    assert [kernel["launches"] for kernel in watched] == [1]


def test_what_a_borrowed_step_of_a_ladder_proves_against_its_own_baseline_is_no_claim_of_the_row(tmp_path):
    sides = {
        "baseline": tmp_path / "optimized_other.cu",
        "naive": tmp_path / "optimized_transpose_naive.cu",
        "other": tmp_path / "optimized_other.cu",
        "optimized": tmp_path / "optimized_transpose_swizzled.cu",
    }
    plan = a_plan(tmp_path, sides=tuple(sides))
    pair = replace(plan.selection.pair, sides=sides)
    claiming = Directives(proves=("tma_load_tile",), has=("ldmatrix",))
    plan = replace(plan, selection=replace(plan.selection, pair=pair), side_directives=dict.fromkeys(sides, claiming))
    claimed = {side: [claim.separates for claim in claims] for side, claims in plan.claims.items()}
    assert claimed == {"baseline": [False], "naive": [True, False], "other": [False], "optimized": [True, False]}


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({}, ("failed", "3 dram__bytes.sum; baseline: 2 dram__bytes.sum")),
        ({"kwargs": {"n": "2048"}}, ("unchecked", "it is about the workload's own shape, and --kwargs chose another")),
        ({"sweep": {"n": ("8", "16")}}, ("unchecked", "it is about the workload's own shape, and --sweep chose another")),
    ],
)
def test_flags_that_choose_a_shape_leave_claims_on_counters_open(monkeypatch, choices, expected):
    counted = {"baseline": {"dram__bytes.sum": 2.0}, "optimized": {"dram__bytes.sum": 3.0}}
    monkeypatch.setattr("common.python.benchmark_harness.profile_row", lambda *_: SimpleNamespace(counters=counted))
    row = SimpleNamespace(plan=None, evidence={side: {"90a": Seen()} for side in counted})
    benchmark_harness.profile(row, SimpleNamespace(settings=Settings(**choices)), WITH_GPU)
    proof = prove(parse_claim("counter dram__bytes.sum < 1 x baseline", separates=True), "optimized", row.evidence)
    assert (proof.state, proof.detail.removesuffix(" (sm_90a)")) == expected
