"""A claim means what the grammar says; what it cannot read is an error that names the line and what may have been meant."""

import re

import pytest

from common.python.build.nvcc import architectures_for
from common.python.errors import BenchmarkError
from common.python.pairs.claims import AMOUNTS, parse_claim, read_claims, techniques
from common.python.pairs.directives import read_directives
from common.python.pairs.discovery import discover, with_rungs
from common.python.project import PROJECT_ROOT

# Text, then what it compares: kind, names or technique or kernel, relation, bound, whether that is a multiple of the baseline's.
CLAIMS = {
    "bar_sync": ("instructions", "bar_sync", "", ">", 0, False),
    "bar_sync in gemm": ("instructions", "bar_sync", "gemm", ">", 0, False),
    "not spill_or_local": ("instructions", "spill_or_local", "", "==", 0, False),
    "more ffma": ("instructions", "ffma", "", ">", 1, True),
    "fewer bar_sync in gemm": ("instructions", "bar_sync", "gemm", "<", 1, True),
    r"/\bHGMMA\b/": ("instructions", r"/\bHGMMA\b/", "", ">", 0, False),
    r"not /LDG.*R2 in it/ in gemm": ("instructions", "/LDG.*R2 in it/", "gemm", "==", 0, False),
    "kernel tf32": ("kernels", None, "tf32", ">", 0, False),
    "not kernel sgemm": ("kernels", None, "sgemm", "==", 0, False),
    "launches == 1": ("launches", None, "", "==", 1, False),
    "launches < 0.1 x baseline": ("launches", None, "", "<", 0.1, True),
    "kernels in gemm >= 2": ("kernels", None, "gemm", ">=", 2, False),
    "graph_nodes > 4": ("graph_nodes", None, "", ">", 4, False),
    "registers <= 64": ("registers", None, "", "<=", 64, False),
    "spills < baseline": ("spills", None, "", "<", 1, True),
    "shared_memory <= 100 KiB": ("shared_memory", None, "", "<=", 102400, False),
    "block in a::b == 128": ("block", None, "a::b", "==", 128, False),
}


@pytest.mark.parametrize(("text", "expected"), CLAIMS.items(), ids=CLAIMS)
def test_a_claim_says_what_is_compared(text, expected):
    claim = parse_claim(text, separates=True)
    technique = claim.measure.technique
    assert (
        claim.measure.kind,
        technique.name if technique else None,
        claim.measure.kernel,
        claim.relation,
        claim.bound,
        claim.relative,
    ) == expected
    assert (claim.text, claim.separates) == (text, True)


def test_counters_calls_and_overlaps_have_names():
    counter = parse_claim("counter dram__bytes.sum < 0.5 x baseline", separates=True)
    assert (counter.measure.kind, counter.measure.names, counter.bound, counter.relative) == ("counter", ("dram__bytes.sum",), 0.5, True)
    overlap = parse_claim("overlap HtoD gemm >= 0.5", separates=False)
    calls = parse_claim("calls cudaStreamSynchronize == 0", separates=True)
    assert (calls.measure.kind, calls.measure.names, calls.relation, calls.bound) == ("calls", ("cudaStreamSynchronize",), "==", 0)
    assert (overlap.measure.names, overlap.relation, overlap.bound, overlap.relative) == (("HtoD", "gemm"), ">=", 0.5, False)
    any_streams = parse_claim("overlap >= 0.5", separates=True)
    assert (any_streams.measure.kind, any_streams.measure.names, any_streams.bound) == ("overlap", (), 0.5)


def test_space_between_words_does_not_matter():
    assert parse_claim("launches   ==  1", separates=False).bound == 1


def error_of(tmp_path, line, name="optimized_a.cu"):
    path = tmp_path / name
    path.write_text(f"// Optimized: an idea.\n\n{line}\n")
    with pytest.raises(BenchmarkError) as caught:
        read_claims(path, read_directives(path))
    return str(caught.value)


UNREADABLE = {
    "proves: tma_laod_tile": "found `proves: tma_laod_tile`; expected tma_load_tile or",
    "has: not nanosleeep": "found `has: not nanosleeep`; expected nanosleep",
    "proves: zzz": "expected a technique of techniques.tsv, a /pattern/ or one of kernel,",
    "proves: registers <=64": "expected a claim such as `registers <= 64`",
    "proves: registers 64": "expected a claim such as `registers <= 64`",
    "proves: lauches == 1": "expected launches",
    "proves: shared_memory <= 100 KB": "expected a claim such as `shared_memory <= 100 KiB`",
    "proves: overlap a >= 0.5": "expected a claim such as `overlap >= 0.5`",
    "proves: kernel": "expected a claim such as `kernel gemm`",
    "proves: counter < 0.5 x baseline": "expected a claim such as `counter dram__bytes.sum < 0.5 x baseline`",
    "has: /(/": "a pattern with missing ), unterminated subpattern at position 0; expected a regular expression",
    "has: more ffma": "expected `proves:` for what is compared with the baseline",
    "has: launches < baseline": "expected `proves:` for what is compared with the baseline",
    "proves: bar_sync, ldmatrix": "expected ldmatrix or bar_sync",
    "proves: tensor_cores": "expected wgmma_f16_bf16 or mma_sync_f16_bf16 or tcgen05_mma_f16_tf32",
    "has: tensor memory": "expected tcgen05_alloc or tcgen05_ld",
    "has: not multicast": "expected tma_multicast or tcgen05_commit_multicast",
    "proves: cp.async": "expected cp_async_16",
    "proves: HGMMA": "expected wgmma_f16_bf16",
}


@pytest.mark.parametrize(("line", "expected"), UNREADABLE.items(), ids=UNREADABLE)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path, line, expected):
    error = error_of(tmp_path, f"// {line}")
    assert error.startswith(f"optimized_a.cu:3: found `{line}`")
    assert expected in error


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("baseline_a.py", "# proves: launches == 1"),
        ("library_a.py", "# proves: launches == 1"),
        ("workload_a.py", "# has: launches == 1"),
    ],
)
def test_a_claim_stands_in_the_side_that_keeps_it(tmp_path, name, line):
    assert f"found `{line[2:]}` in a {name.partition('_')[0]}; expected " in (error := error_of(tmp_path, line, name))
    assert "in an optimized side" in error


def test_a_baseline_may_say_what_it_has(tmp_path):
    path = tmp_path / "baseline_a.cu"
    path.write_text("// Baseline: plain.\n// has: bar_sync\n")
    assert [claim.text for claim in read_claims(path, read_directives(path))] == ["bar_sync"]


def test_what_separates_comes_first_in_file_order(tmp_path):
    path = tmp_path / "optimized_a.cu"
    path.write_text("// Optimized: an idea.\n// has: shfl\n// proves: bar_sync\n// proves: launches == 1\n")
    claims = read_claims(path, read_directives(path))
    assert [(claim.text, claim.separates) for claim in claims] == [("bar_sync", True), ("launches == 1", True), ("shfl", False)]


def test_the_table_is_whole():
    rows = techniques()
    assert len(rows) > 110
    known = {name for capability in ((9, 0), (10, 0)) for name in architectures_for((), capability)}
    for row in rows.values():
        assert re.fullmatch(r"[a-z][a-z0-9_]+", row.name)
        assert row.architectures
        assert set(row.architectures) <= known
        assert {row.beside, *row.unless} - {""} <= set(rows)
        assert row.trap or not (row.beside or row.unless), f"{row.name} has a condition and does not say why"
    assert not set(rows) & {*AMOUNTS, "kernel", "overlap", "counter", "calls", "not", "more", "fewer"}


def test_no_row_matches_the_instruction_that_loads_a_constant():
    for row in techniques().values():
        assert not row.pattern.search("HFMA2 R9, -RZ, RZ, 2.125, 0")
        assert not row.pattern.search("HFMA2.MMA R9, -RZ, RZ, 2.125, 0")


def test_every_claim_of_this_project_can_be_read():
    sides = {side for pair in discover(PROJECT_ROOT).pairs for side in with_rungs(pair, PROJECT_ROOT).sides.values()}
    sides |= set((PROJECT_ROOT / "common" / "python" / "templates" / "pair").glob("optimized.*"))
    claims = [claim for side in sides for claim in read_claims(side, read_directives(side))]
    assert any(claim.separates for claim in claims)
