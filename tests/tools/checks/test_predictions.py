"""Every equation of a tree is worked out; a bad one is a sentence with its file and line, and exit 1."""

import pytest

from tools.checks.predictions import main

WORKLOAD = '"""X."""\nWORKLOAD = Workload(time_at={"n": 1 << 20})\n'


@pytest.fixture
def tree(tmp_path):
    """A tree whose pairs say in their optimized sides what a test gives."""

    def write(**said):
        folder = tmp_path / "ch07"
        folder.mkdir()
        for name, line in said.items():
            (folder / f"workload_{name}.py").write_text(WORKLOAD)
            (folder / f"baseline_{name}.cu").write_text("// Baseline.\n")
            (folder / f"optimized_{name}.cu").write_text(f"// Idea.\n{line}\n")
        return tmp_path

    return write


def test_the_equations_of_this_tree_hold(capsys):
    assert main([]) == 0, capsys.readouterr().out


def test_pairs_are_counted_by_how_they_predict(tree, capsys):
    root = tree(
        equal="// predicts: optimized peak_bytes 8 MiB = 8 * n",
        guessing="// guess: 2x",
        expecting="// expects: 2x, half of the bytes",
        silent="",
    )
    assert main([], root) == 0
    assert capsys.readouterr().out == "1 equations hold; 1 pairs guess, 1 have `expects:` alone, 1 predict nothing; 0 are wrong\n"


def test_a_bad_line_of_each_pair_is_told(tree, capsys):
    root = tree(
        arithmetic="// predicts: optimized peak_bytes 9 MiB = 8 * n",
        unknown="// predicts: optimized 1 ms = n / dram_latency",
        misspelt="// predict: optimized 1 ms = 1e-3",
        honest="// expects: 2x",
    )
    assert main([], root) == 1
    lines = capsys.readouterr().out.splitlines()
    files = [line.split(": ")[0].rpartition("/")[2] for line in lines[:3]]
    assert files == [f"optimized_{name}.cu:2" for name in ("arithmetic", "misspelt", "unknown")]
    assert "found 9.437 MB = 8 * n, which is 8.389 MB on h200; expected two sides within 2 %" in lines[0]
    assert lines[-1].endswith("1 have `expects:` alone, 0 predict nothing; 3 are wrong")


def test_shapes_that_a_workload_does_not_write_out_are_read_by_loading_it(tree, capsys):
    root = tree(loaded="// predicts: optimized peak_bytes 8 KiB = 8 * n")
    (root / "ch07" / "workload_loaded.py").write_text(
        '"""X."""\nfrom common import Spec, Workload\n\nSHAPES = [{"n": 1024}]\n'
        "WORKLOAD = Workload(inputs=lambda rand, n: {}, outputs=lambda n: {},"
        " reference=lambda: None, time_at=SHAPES[0], check_at=({'n': 1},), work=lambda n: {}, rtol=0, atol=0)\n"
    )
    assert main([], root) == 0, capsys.readouterr().out
