"""Four drafts per position, as a tree, share one check."""
# predicts: baseline tpot_ms 1.32 = 1e3 * (13.69e9 / dram_read + 0.9e-3 + 6 * 0.2e-3) / 4.81 on h100    (4.81 tokens, on a CPU)
# predicts: optimized tpot_ms 1.18 = 1e3 * (13.69e9 / dram_read + 1.1e-3 + 6 * 0.26e-3) / 5.87 on h100    (5.87 tokens)

from shared_speculation import server

DRAFTS, WIDTH = 6, 4


def prepare(weights, config, draft_weights, draft_config, slots, prompt, longest, arrivals, emit, report, device):
    model = (weights, config, draft_weights, draft_config)
    return server(*model, slots, prompt + longest, arrivals, emit, report, device, depth=DRAFTS, width=WIDTH)
