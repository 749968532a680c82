"""A language model of bytes, of 3 million weights, serves four requests at a time; one of 0.3 million may draft for it.

Both were trained on Python's standard library. At the timed shape the larger one is grown to 6.8 billion weights, the smaller one is not:
its drafts cost less than those of a real draft model.
"""

from shared_speculation import SHAPES, inputs, traffic

from common import Serving, Slo, Workload
from common.models.byte_server import ATOL, trained_logits

WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=ATOL, slo=Slo(ttft_ms=1000.0, tpot_ms=5.0)),
    **SHAPES,
    constants=("weights", "draft_weights"),
    goal="tpot_ms",
)
