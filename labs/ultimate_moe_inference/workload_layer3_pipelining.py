"""A decode step of gpt-oss-20b's layers: how scores become an answer. The baseline is the layer before."""
# baseline: labs/ultimate_moe_inference/optimized_layer2_memory.py

from shared_workload import decoding

WORKLOAD = decoding()
