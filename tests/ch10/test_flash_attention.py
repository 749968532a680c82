"""ch10:flash_attention: a wrong weighting is noticed, and the backend that is forced is the one named."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from common.python.child.sides.loader import import_file, load_workload
from common.python.pairs.claims import read_claims
from common.python.pairs.directives import read_directives
from common.python.processes.messages import Launch
from common.python.prove.proofs import Seen, prove
from tests.support.teeth import ROOT, assert_accepts

CHAPTER = ROOT / "ch10"
WORKLOAD = load_workload(CHAPTER / "workload_flash_attention.py")
FORCED = {"optimized_flash_attention.py": SDPBackend.FLASH_ATTENTION, "optimized_flash_attention_cudnn.py": SDPBackend.CUDNN_ATTENTION}
# Names as public profiles of H100s and H200s print them; no profile of these sides is kept here. What they launch, a run on a GPU proves.
SEEN = {
    "baseline": ["nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT", "void (anonymous namespace)::cunn_SoftMaxForwardSmem<8, float>()"],
    "optimized_flash_attention.py": ["void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4> >()"],
    "optimized_flash_attention_cudnn.py": [
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0"
    ],
}


@pytest.mark.parametrize("dropped", [torch.zeros_like, lambda x: -x], ids=["uniform weights", "opposite scores"])
def test_a_wrong_weighting_of_the_values_is_noticed(monkeypatch, dropped):
    attend = scaled_dot_product_attention
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", lambda q, k, v: attend(dropped(q), k, v))
    with pytest.raises(AssertionError, match="library_flash_attention"):
        assert_accepts(WORKLOAD, "ch10/library_flash_attention.py", WORKLOAD.check_at[2])


@pytest.mark.parametrize("file", FORCED)
def test_one_backend_is_allowed_and_it_is_the_one_named(monkeypatch, file):
    """A backend that cannot take the inputs raises; what it may not fall back to is the whole point of forcing it."""
    allowed = []
    module = import_file(CHAPTER / file)
    monkeypatch.setattr(module, "scaled_dot_product_attention", lambda *_: allowed.append(torch.nn.attention._cur_sdpa_kernel_backends()))
    q = torch.zeros(1, 1, 2, 64, dtype=torch.bfloat16)
    with sdpa_kernel([SDPBackend.MATH]):
        module.prepare(q, q, q)()
    assert allowed == [[FORCED[file]]]


def seen(side):
    """What a trace tells of the side: kernels' names, and launches of a shape that no claim is about."""
    shape = {"in_graph": False, "grid": (1, 1, 1), "block": (128, 1, 1), "cluster": None, "shared_bytes": 0}
    launches = [Launch(kernel=name, call=i, registers=None, occupancy_percent=None, **shape) for i, name in enumerate(SEEN[side])]
    return {"90a": Seen(launches=tuple(launches))}


@pytest.mark.parametrize("file", FORCED)
def test_kernel_names_separate_each_side_from_the_others(file):
    (claim,) = (each for each in read_claims(CHAPTER / file, read_directives(CHAPTER / file)) if each.measure.kind != "counter")
    for other in FORCED:
        proof = prove(claim, "optimized", {"optimized": seen(other), "baseline": seen("baseline")})
        assert proof.state == ("proven" if other == file else "failed")
