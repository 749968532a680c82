"""An urgent request beside bulk work, as shared_urgent.py states it: SMs of its own against a stream of its own.

The baseline is that of `stream_priority`: two streams of one priority.
"""
# baseline: ch11/baseline_stream_priority.cu

from shared_urgent import URGENT

WORKLOAD = URGENT
