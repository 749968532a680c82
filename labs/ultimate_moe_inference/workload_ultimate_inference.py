"""A decode step of gpt-oss-20b's layers, from eager code like transformers' to all that the lab has: a layer is a step of the ladder."""
# reason: the baseline waits for the device once per expert, and launches its kernels one by one

from shared_workload import decoding

WORKLOAD = decoding(
    ladder=(
        "labs/ultimate_moe_inference/optimized_layer1_basics.py",
        "labs/ultimate_moe_inference/optimized_layer2_memory.py",
        "labs/ultimate_moe_inference/optimized_layer3_pipelining.py",
        "labs/ultimate_moe_inference/optimized_layer4_graphs.py",
        "labs/ultimate_moe_inference/optimized_layer5_compile.py",
    )
)
