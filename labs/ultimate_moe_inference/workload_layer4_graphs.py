"""A decode step of gpt-oss-20b's layers: how the host starts kernels. The baseline is the layer before."""
# baseline: labs/ultimate_moe_inference/optimized_layer3_pipelining.py

from shared_workload import decoding

WORKLOAD = decoding()
