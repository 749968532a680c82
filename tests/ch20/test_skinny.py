"""ch20:autotuning: offsets of the product have 32 bits, so larger matrices are refused; and what the search may choose from."""

import pytest
import torch

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

SKINNY, LAUNCHES = (import_file(ROOT / f"ch20/shared_{name}.py") for name in ("skinny", "launches"))


def test_a_product_too_large_for_its_offsets_is_refused():
    a, b = (torch.empty(rows, 1 << 16, dtype=torch.bfloat16, device="meta") for rows in (16, 1 << 15))
    with pytest.raises(ValueError, match="expected matrices of less than 2"):
        SKINNY.product(a, b, None, LAUNCHES.SPACE[0])
    assert SKINNY.product(a, b[1:], None, LAUNCHES.SPACE[0])


def test_the_default_is_one_of_the_candidates():
    assert LAUNCHES.DEFAULT in LAUNCHES.SPACE
    assert len(LAUNCHES.SPACE) == len(set(LAUNCHES.SPACE)) == 64  # as the chapter's page says
