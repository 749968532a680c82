"""Prompts run apart, so decode steps replay one CUDA graph."""
# predicts: baseline tpot_ms 5.17 = 1e3 * (666 * 2 * launch + 0.3e-3) on h100  (666 operations of two bare launches, and a plan: assumed)
# predicts: optimized tpot_ms 2.38 = 1e3 * (6.03e9 / dram_read + 0.5e-3) on h100  (a step reads all weights; small kernels 0.5 ms: assumed)

import torch

from common.serving.decode_step import DecodeStep
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

BLOCK = 16  # tokens


def replayed(run, device):
    """`run`, as a graph that was captured once; on a CPU it runs as it is."""
    if device.type == "cpu":
        return run
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        run()  # what a first call loads must not be captured
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    blocks = KvBlocks(config, blocks=1 + slots * -(-(prompt + longest) // BLOCK), block_tokens=BLOCK, device=device)
    decode = DecodeStep(weights, config, blocks, slots, prompt + longest)
    decode_all = replayed(decode.run, device)

    def serve():
        waiting, running, rows = arrivals.wait(), {}, None  # `running` are requests by slot
        while waiting or running:
            free = [slot for slot in range(slots) if slot not in running]
            new, waiting = dict(zip(free, waiting, strict=False)), waiting[len(free) :]
            done = set()
            if new:  # prefill: all new prompts in a step of their own
                requests = list(new.values())
                for request in requests:
                    blocks.reserve(request.id, prompt + longest)
                prompts = [torch.tensor(request.prompt, device=device) for request in requests]
                logits = step(weights, config, blocks, [request.id for request in requests], prompts)
                done |= emit(requests, logits.argmax(-1), logits)
                for slot, request, token in zip(new, requests, logits.argmax(-1), strict=True):
                    decode.enter(slot, request.id, token)
            elif running:  # decode: a token for each slot
                decode_all()
                done |= emit(list(running.values()), decode.tokens[rows], decode.logits[rows])
            running |= new
            for slot in [slot for slot, request in running.items() if request.id in done]:
                decode.leave(slot)
                blocks.release(running.pop(slot).id)
            if new or done:
                rows = torch.tensor(list(running), device=device, dtype=torch.int64)
            waiting += arrivals.poll() if waiting or running else arrivals.wait()

    return serve
