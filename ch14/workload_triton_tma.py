"""A matrix product in Triton: tiles loaded by pointers, by tensor descriptors, and by descriptors with a program an SM."""
# needs: tma

from dataclasses import replace

from workload_triton_persistent import WORKLOAD as PERSISTENT

WORKLOAD = replace(PERSISTENT, ladder=("tiles",))
