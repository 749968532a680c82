"""Fetch the vectors of some tokens from an embedding that is stored a feature a row: y[i, f] = embedding[f, token[i]], in float32.

Expected 4.5x, and 12.1x on an H200 (2026-11-22). 36 bytes a float were counted, against 8; but memory gives 64 at a time, two sectors, of
which 4 bytes are used, and 68 against 8 are 8.5x. And the next float lies 128 KB away, in another page of the DRAM, which is opened for 64
bytes: 68 bytes a float are 2.6 TB/s, 61 % of what a copy moves, where the optimized side moves 86 %; 8.5 x 86 / 61 are 12. That is an
explanation: a profile confirms its first part if dram__bytes_read.sum of the baseline is 4.3 GB, and refutes it if 2.1, a sector a float.
"""

import torch

from common import Spec, Workload


def inputs(rand, features, vocabulary, tokens):
    return {"embedding": rand.normal(features, vocabulary), "token": rand.permutation(vocabulary)[:tokens]}


def work(features, vocabulary, tokens):
    return {"dram_read": 4 * features * tokens + 8 * tokens, "dram_write": 4 * features * tokens}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda features, vocabulary, tokens: {"y": Spec((tokens, features), torch.float32)},
    reference=lambda embedding, token: embedding.T[token],
    time_at={"features": 4096, "vocabulary": 32000, "tokens": 16384},  # 256 MiB fetched of 500: more than four times an L2 of 60 MB
    cpu_at={"features": 1024, "vocabulary": 16000, "tokens": 8192},  # 32 MiB of 62
    check_at=(
        {"features": 1, "vocabulary": 2, "tokens": 1},
        {"features": 33, "vocabulary": 65, "tokens": 65},
        {"features": 128, "vocabulary": 500, "tokens": 77},
    ),
    work=work,
    constants=("embedding",),  # a weight: it may be stored another way
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
