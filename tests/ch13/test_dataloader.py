"""ch13:dataloader: a document's counts, and that an epoch asks for every document once, in the order of its beginning."""

import numpy as np
import torch

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

shared = import_file(ROOT / "ch13/shared_documents.py")


def test_words_are_counted_by_their_hash_and_a_byte_s_upper_bits_do_not_matter():
    document = np.frombuffer(b"\x01\x02\x00\x01\x02\x00\x03", dtype=np.uint8)
    found = shared.counts(document, 97)
    assert np.isclose(sorted(found[found > 0]), [3**-0.5, 2 * 3**-0.5]).all()
    assert (shared.counts(document | 0x60, 97) == found).all()


def test_an_epoch_follows_the_order_that_its_tensor_holds_when_it_begins(tmp_path):
    file = tmp_path / "documents"
    file.write_bytes(bytes(range(1, 1 + 5 * 4)))
    order = torch.tensor([4, 0, 2, 1, 3])
    loader = shared.loader_of(file, order, 4, 8, 2)
    assert torch.cat([numbers for _, numbers in loader]).tolist() == [4, 0, 2, 1, 3]
    order.copy_(torch.arange(5))
    assert torch.cat([numbers for _, numbers in loader]).tolist() == [0, 1, 2, 3, 4]
