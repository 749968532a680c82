"""What there is to run, and what may be claimed, by the text of files alone."""

import json

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.claims import techniques
from common.python.pairs.discovery import discover
from common.python.project import PROJECT_ROOT
from common.python.run.listing import about_words, listed, listed_techniques
from tests.support.commands import OPTIMIZED, write_pair
from tools.cli.benchmark_cli import run_command_line

CUDA = "// Optimized: a kernel.\n{}LAUNCH(float* y, cudaStream_t stream) {{ return cudaSuccess; }}\n"
NEEDS = OPTIMIZED.replace('"""\n', '"""\n# needs: {}\n', 1)


def the_one(root, *, gpu):
    (found,) = listed(discover(root).pairs, gpu=gpu, root=root)
    return found


def test_a_pair_is_listed_with_its_idea(tmp_path):
    found = the_one(write_pair(tmp_path), gpu=False)
    assert (found.pair.target, found.idea, found.needs, found.lacks) == ("demo:double", "a product.", (), "")


@pytest.mark.parametrize(
    ("optimized", "without", "with_gpu"),
    [
        (OPTIMIZED, "", ""),
        (CUDA.format(""), "needs a GPU", ""),
        (CUDA.format("// needs: wgmma, tma\n"), "needs a GPU with wgmma, tma", "needs wgmma, tma"),
        (NEEDS.format("fp8"), "needs a GPU with fp8", "needs fp8"),
        (NEEDS.format("gpus 2"), "needs a GPU with gpus 2", "needs gpus 2"),
        (NEEDS.format("numa 2"), "", ""),
    ],
)
def test_what_a_machine_lacks_is_told_by_file_names_and_needs(tmp_path, optimized, without, with_gpu):
    write_pair(tmp_path, optimized=optimized)
    assert (the_one(tmp_path, gpu=False).lacks, the_one(tmp_path, gpu=True).lacks) == (without, with_gpu)


@pytest.mark.parametrize("library", [NEEDS.format("gpus 1, wgmma"), CUDA.format("")])
def test_what_a_library_needs_is_nothing_that_a_pair_lacks(tmp_path, library):
    write_pair(tmp_path, library=library)
    found = the_one(tmp_path, gpu=False)
    assert (found.needs, found.lacks) == ((), "")


TRITON = OPTIMIZED.replace('"""\n', '"""\nimport triton\n', 1)


@pytest.mark.parametrize(
    ("files", "without"),
    [
        ({}, "timed here"),
        ({"cpu_at": "None"}, "checked here, timed on a GPU"),
        ({"goal": '"energy"'}, "checked here, timed on a GPU"),
        ({"ranks": "(4096, 8192)"}, "checked here, timed on a GPU"),
        ({"optimized": TRITON}, "checked here, timed on a GPU"),
        ({"optimized": CUDA.format("")}, "needs a GPU"),
    ],
)
def test_it_is_told_whether_a_pair_is_timed_here_or_only_checked(tmp_path, files, without):
    write_pair(tmp_path, **files)
    assert (the_one(tmp_path, gpu=False).here, the_one(tmp_path, gpu=True).here) == (without, "timed here")


@pytest.mark.parametrize(("kernels", "here"), [("import triton\n", "checked here, timed on a GPU"), ("import math\n", "timed here")])
def test_a_pair_whose_kernels_are_of_its_project_is_only_checked(tmp_path, kernels, here):
    write_pair(tmp_path, optimized=OPTIMIZED.replace('"""\n', '"""\nfrom ops import tri\n', 1))
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops/__init__.py").write_text("from .rows import tri\n")
    (tmp_path / "ops/rows.py").write_text(kernels)
    assert the_one(tmp_path, gpu=False).here == here


@pytest.mark.parametrize(("shape", "told"), [('{"n": 512}', "timed here"), ("None", "checked here, timed on a GPU")])
def test_what_a_workload_takes_from_a_file_beside_it_counts(tmp_path, shape, told):
    workload = write_pair(tmp_path) / "demo/workload_double.py"
    (tmp_path / "demo/shared_double.py").write_text(f"cpu_at={shape}\n")
    workload.write_text("import shared_double\n" + workload.read_text().replace('    cpu_at={"n": 512},\n', ""))
    assert the_one(tmp_path, gpu=False).here == told


def test_a_side_that_is_no_python_is_told_with_its_line(tmp_path):
    write_pair(tmp_path, optimized=OPTIMIZED + "x = (\n")
    assert the_one(tmp_path, gpu=True).here == "optimized_double.py:6: '(' was never closed"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], ["ch01:early", "ch02:late"]),
        (["early"], ["ch01:early"]),
        (["ch02"], ["ch02:late"]),
        (["Queries"], ["ch01:early"]),
        (["attn"], ["ch01:early"]),  # the field's other word
        (["a", "product"], ["ch02:late"]),
        (["a product"], ["ch02:late"]),
    ],
)
def test_targets_are_found_by_words_of_their_names_and_ideas(tmp_path, words, found):
    write_pair(tmp_path, "ch01:early", optimized=OPTIMIZED.replace("a product", "attention of queries"))
    write_pair(tmp_path, "ch02:late")
    assert [each.pair.target for each in about_words(words, listed(discover(tmp_path).pairs, gpu=False))] == found


def test_words_of_no_target_are_one_sentence(tmp_path):
    everything = listed(discover(write_pair(tmp_path)).pairs, gpu=False)
    with pytest.raises(BenchmarkError, match=r"^'flash gordon': found no target and no idea with it; expected other words"):
        about_words(["flash", "gordon"], everything)


@pytest.mark.slow
def test_a_run_without_a_gpu_does_with_every_target_of_the_project_what_its_list_says(capsys):
    assert run_command_line(["run", "--dry-run", "--json", "--device", "cpu"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    told = {each.pair.target: each.here for each in listed(discover(PROJECT_ROOT).pairs, gpu=False)}
    checked = {row["target"]: "timed here" if row["timed"] else "checked here, timed on a GPU" for row in rows if not row["skip"]}
    assert checked == {target: here for target, here in told.items() if target in checked}
    assert {target for target in told if told[target].startswith("needs")} <= {row["target"] for row in rows if row["skip"]}


def test_a_file_that_cannot_be_read_costs_its_idea_alone(tmp_path):
    (write_pair(tmp_path) / "demo/optimized_double.py").write_bytes(b"\xff\xfe")
    assert (the_one(tmp_path, gpu=False).idea, the_one(tmp_path, gpu=False).lacks) == ("", "")


def test_every_technique_is_listed_with_the_first_target_that_claims_it(tmp_path):
    claims = OPTIMIZED.replace('"""\n', '"""\n# proves: wgmma_tf32 in gemm\n# has: not bar_sync\n# proves: registers <= 4\n', 1)
    write_pair(tmp_path, "ch02:late", optimized=claims)
    write_pair(tmp_path, "ch01:early", optimized=claims.replace("# has: not bar_sync\n", ""))
    found = {each.name: each for each in listed_techniques(discover(tmp_path))}
    assert list(found) == list(techniques())
    assert (found["wgmma_tf32"].first, found["bar_sync"].first, found["tma_store"].first) == ("ch01:early", "ch02:late", "")
    assert found["wgmma_tf32"].instruction == techniques()["wgmma_tf32"].pattern.pattern
    assert found["wgmma_tf32"].architectures == ("90a",)
