"""A decode step of gpt-oss-20b's layers: who starts the experts' kernels. The baseline is the layer before."""
# baseline: labs/ultimate_moe_inference/baseline_ultimate_inference.py
# reason: the baseline waits for the device once per expert, and launches its kernels one by one

from shared_workload import decoding

WORKLOAD = decoding()
