"""How soon an 8-layer decoder in bfloat16 is compiled: from a fresh process with empty compile caches to its first right answer."""

from shared_decoding import inputs, outputs, reference, work

from common import Workload

WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    constants=("weights",),
    time_at={"layers": 8, "batch": 1, "tokens": 1024, "width": 768, "heads": 12, "hidden": 2048},
    cpu_at=None,  # a CPU's kernels take a C++ compiler 20 s in each of the fresh processes, of either side
    check_at=(
        {"layers": 1, "batch": 2, "tokens": 3, "width": 32, "heads": 2, "hidden": 48},
        {"layers": 2, "batch": 1, "tokens": 17, "width": 64, "heads": 1, "hidden": 96},
    ),
    work=work,
    goal="setup",
    rtol=2**-6,  # bfloat16 rounds what each operator writes, and 8 layers carry that on in the residual stream:
    atol=0.08,  # on a CPU 12 layers' 400 000 values are off by up to 0.05 more than rtol allows, of values near 1.1
)
