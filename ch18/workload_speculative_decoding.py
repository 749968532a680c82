"""A language model of bytes serves four requests at a time; the optimized side may use a model of a tenth of its size to draft.

Both were trained on Python's standard library. At the timed shape the larger one is grown to 6.8 billion weights.
"""

from shared_speculation import workload

WORKLOAD = workload()
