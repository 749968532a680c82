"""Attention over packed documents that are short: how the host starts two kernels. The baseline is the compiled side of flex_attention."""
# baseline: labs/flexattention/optimized_flex_attention.py

import dataclasses

from workload_flex_attention import WORKLOAD as ATTENTION

# A step of the long sequence takes the GPU longer than the host. At an eighth of it the host is the longer one.
WORKLOAD = dataclasses.replace(ATTENTION, clock="launch", time_at={"heads": 16, "tokens": 1024, "doc_span": 256, "dim": 64})
