"""nanochat's head through stages, on the CPU: right however late the copies are, and none of the waits can be left out."""

import itertools
import re

import pytest
import torch

from tests.ch10.emulated import LAZINESS, build, skip_without_compiler
from tests.support.teeth import ROOT

pytestmark = pytest.mark.slow

LAB = ROOT / "labs/fast_nanochat"
SIDES = ("optimized_fast_nanochat_double_buffer_tma.cu", "optimized_fast_nanochat_warp_specialized.cu")
SHAPES = ((1, 8), (97, 72), (203, 24), (512, 8))  # rows, hidden: fewer rows than blocks, last steps of all lengths, stages used again


@pytest.fixture(scope="module", params=SIDES)
def side(request, tmp_path_factory):
    skip_without_compiler()
    return request.param, build(request.param, tmp_path_factory.mktemp("head"), LAB)


def is_right(library, rows, hidden, **how):
    generator = torch.Generator().manual_seed(1)
    x, weights = (torch.randint(-8, 8, shape, generator=generator).to(torch.bfloat16) for shape in ((hidden,), (rows, hidden)))
    logits = torch.full((rows,), torch.nan)
    library.launch(x, weights, logits, hidden, rows, **how)
    return torch.equal(logits, weights.float() @ x.float())


@pytest.mark.parametrize("laziness", LAZINESS)
@pytest.mark.parametrize(("rows", "hidden"), SHAPES)
def test_logits_are_right_however_late_copies_are(side, rows, hidden, laziness):
    assert all(is_right(side[1], rows, hidden, laziness=laziness, seed=seed) for seed in range(4))


def waits(name):
    lines = (LAB / name).read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if re.search(r"\bbarrier_wait\(|__syncthreads\(", line)]


@pytest.mark.parametrize("name", SIDES)
def test_all_that_waits_was_found(name):
    assert len(waits(name)) == 3


@pytest.mark.parametrize("nth", range(3))
def test_nothing_that_waits_can_be_left_out(side, nth):
    name, library = side
    skipped = f"{name}:{waits(name)[nth]}"
    for laziness, seed, rows in itertools.product(LAZINESS, range(4), (128, 512)):  # a stage used once, and several times
        try:
            if not is_right(library, rows, 8, laziness=laziness, seed=seed, skipped=skipped):
                return
        except RuntimeError:
            return
    pytest.fail(f"right without {skipped}")
