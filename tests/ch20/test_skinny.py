"""ch20:autotuning: offsets of the product have 32 bits, so larger matrices are refused."""

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
