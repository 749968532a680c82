"""One CUDA graph drafts six tokens and checks them all."""
# predicts: baseline tpot_ms 4.97 = 1e3 * (13.69e9 / dram_read + 0.7e-3) on h100    (weights; 250 kernels of 2 us, 0.2 ms to answer)
# predicts: optimized tpot_ms 1.32 = 1e3 * (13.69e9 / dram_read + 0.9e-3 + 6 * 0.2e-3) / 4.81 on h100    (4.81 tokens per round, on a CPU)

from shared_speculation import server

DRAFTS = 6


def prepare(weights, config, draft_weights, draft_config, slots, prompt, longest, arrivals, emit, report, device):
    model = (weights, config, draft_weights, draft_config)
    return server(*model, slots, prompt + longest, arrivals, emit, report, device, depth=DRAFTS)
