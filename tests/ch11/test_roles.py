"""Chapter 11's warp roles, emulated: a pipeline step that is left out is found, and the kernel as it is passes.

A missing `producer_acquire` is not found here: the emulated storer empties a stage before the next tile is computed.
"""

import shutil

import pytest

from common.python.session.session import BUILD_CACHE
from tests.emulation.emulate import check_side
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch11"
PAIR = "warp_specialized_two_pipelines_multistream"
SHAPE = {"points": 4100, "degree": 5}  # five tiles: each stage is used again

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")

WITHOUT = {
    "the wait for a loaded tile": ("            from.consumer_wait();\n", "no barrier in between|are outside"),
    "the wait for a computed tile": ("            pipeline.consumer_wait();\n", "no barrier in between|are outside"),
    "the release of a loaded tile": ("            from.consumer_release();\n", "waits for a stage of a pipeline that nobody empties"),
    "the commit of a computed tile": ("            to.producer_commit();\n", "waits for a stage of a pipeline that nobody fills"),
}


def check(folder, left_out):
    shutil.copytree(CHAPTER, folder / "ch11", ignore=shutil.ignore_patterns("*.py", "*.md", "*.json"))
    header = folder / "ch11" / "shared_two_pipelines.cuh"
    text = header.read_text()
    assert text.count(left_out) == 1 or not left_out
    header.write_text(text.replace(left_out, "") if left_out else text)
    side = folder / "ch11" / f"optimized_{PAIR}.cu"
    assert check_side(CHAPTER / f"workload_{PAIR}.py", side, [SHAPE], cache=BUILD_CACHE) == []


def test_the_kernel_as_it_is_passes(tmp_path):
    check(tmp_path, "")


@pytest.mark.parametrize("what", WITHOUT)
def test_a_step_that_is_left_out_is_found(what, tmp_path):
    line, found = WITHOUT[what]
    with pytest.raises(AssertionError, match=found):
        check(tmp_path, line)
