"""The model's e4m3 weights draft: slower than bf16 alone."""
# predicts: baseline tpot_ms 4.97 = 1e3 * (13.69e9 / dram_read + 0.7e-3) on h100    (weights; 250 kernels of 2 us, 0.2 ms to answer)
# predicts: optimized tpot_ms 3.54 = 1e3 * (4 * (7.25e9 / dram_read + 0.8e-3) + 13.69e9 / dram_read + 0.9e-3) / 4.92 on h100  (4.92 tokens)

from shared_self_draft import server

DRAFTS = 4


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    return server(weights, config, slots, prompt + longest, arrivals, emit, report, device, drafts=DRAFTS)
