"""A decode step of gpt-oss-20b's layers: which operators share a kernel. The baseline is the layer before."""
# baseline: labs/ultimate_moe_inference/optimized_layer4_graphs.py

from shared_workload import decoding

WORKLOAD = decoding()
