"""A decode step of gpt-oss-20b's layers: where keys and values lie. The baseline is the layer before."""
# baseline: labs/ultimate_moe_inference/optimized_layer1_basics.py

from shared_workload import decoding

WORKLOAD = decoding()
