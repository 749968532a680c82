"""Forward pass in bfloat16 of six of the 22 layers of a decoder with 1.1 billion weights, of TinyLlama's sizes, on 4 x 2048 tokens."""

from shared_decoding import inputs, outputs, reference, work

from common import Workload

WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    constants=("weights",),
    time_at={"layers": 6, "batch": 4, "tokens": 2048, "width": 2048, "heads": 32, "hidden": 5632},
    cpu_at=None,  # 5e12 operations
    check_at=(
        {"layers": 1, "batch": 2, "tokens": 3, "width": 32, "heads": 2, "hidden": 48},
        {"layers": 2, "batch": 1, "tokens": 17, "width": 64, "heads": 1, "hidden": 96},
    ),
    work=work,
    clock="launch",
    rtol=2**-6,  # bfloat16 rounds what each operator writes, and the layers carry that on in the residual stream:
    atol=0.08,  # as in model_eager, whose twelve layers are off by up to 0.05 more than rtol allows
)
