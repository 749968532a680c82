"""The work of workload_gpu_input.py. The baseline is its optimized side, so that the ratio is of the engine over SMs."""
# baseline: ch05/optimized_gpu_input.py
# needs: package cramjam

from workload_gpu_input import WORKLOAD as ON_SMS

WORKLOAD = ON_SMS
