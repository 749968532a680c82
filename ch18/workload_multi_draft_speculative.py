"""A language model of bytes serves four requests at a time, with drafts from a model of a tenth of its size.

Both were trained on Python's standard library. At the timed shape the larger one is grown to 6.8 billion weights.
"""
# baseline: ch18/optimized_speculative_decoding.py

from shared_speculation import workload

WORKLOAD = workload()
