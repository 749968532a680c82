"""What there is to run, and what may be claimed, by the text of files alone."""

import pytest

from common.python.pairs.claims import techniques
from common.python.pairs.discovery import discover
from common.python.run.listing import listed, listed_techniques
from tests.support.commands import OPTIMIZED, write_pair

CUDA = "// Optimized: a kernel.\n{}LAUNCH(float* y, cudaStream_t stream) {{ return cudaSuccess; }}\n"
NEEDS = OPTIMIZED.replace('"""\n', '"""\n# needs: {}\n', 1)


def the_one(root, *, gpu):
    (found,) = listed(discover(root).pairs, gpu=gpu)
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
