"""ch20:autotuning: offsets of the product have 32 bits, so larger matrices are refused; and what the search may choose from."""

import pytest
import torch

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

SKINNY = import_file(ROOT / "ch20/shared_skinny.py")


def test_a_product_too_large_for_its_offsets_is_refused():
    a, b = (torch.empty(rows, 1 << 16, dtype=torch.bfloat16, device="meta") for rows in (16, 1 << 15))
    with pytest.raises(ValueError, match="expected matrices of less than 2"):
        SKINNY.product(a, b, SKINNY.SPACE[0])
    assert SKINNY.product(a, b[1:], SKINNY.SPACE[0])


def test_the_default_is_one_of_the_candidates():
    assert SKINNY.DEFAULT in SKINNY.SPACE
    assert len(SKINNY.SPACE) == len(set(SKINNY.SPACE)) == 16  # as the chapter's page says
