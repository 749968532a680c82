"""labs/ultimate_moe_inference:layer1_basics claims that grouped products run, by the name of their kernel in PyTorch's library."""

import pytest

from common.python.pairs.claims import read_claims
from common.python.pairs.directives import read_directives
from common.python.prove.proofs import Seen, prove
from tests.support.probes import a_launch
from tests.support.teeth import ROOT

SIDE = ROOT / "labs/ultimate_moe_inference/optimized_layer1_basics.py"
(CLAIM,) = [claim for claim in read_claims(SIDE, read_directives(SIDE)) if claim.measure.kind == "kernels"]
GROUPED = (
    "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::GemmUniversal"
    "<cutlass::gemm::GroupProblemShape<cute::tuple<int, int, int> >, Mainloop, Epilogue> > >(Params)"
)
PREPARED = "void at::cuda::detail::prepare_grouped_gemm_data<cutlass::bfloat16_t, cutlass::bfloat16_t>(cutlass::bfloat16_t*)"
DENSE = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"


def seen(*names):
    return {"90a": Seen((), tuple(a_launch(name, call=i) for i, name in enumerate(names)))}


@pytest.mark.parametrize(
    ("optimized", "baseline", "state"),
    [
        ((PREPARED, GROUPED), (DENSE,), "proven"),
        ((DENSE, DENSE), (DENSE,), "failed"),  # a loop over experts, as where PyTorch has no grouped kernel
        ((PREPARED, DENSE), (DENSE,), "failed"),  # arguments of grouped products without these
        ((PREPARED, GROUPED), (PREPARED, GROUPED), "failed"),  # nothing that separates the sides
    ],
)
def test_only_a_grouped_product_proves_it(optimized, baseline, state):
    assert prove(CLAIM, "optimized", {"optimized": seen(*optimized), "baseline": seen(*baseline)}).state == state
