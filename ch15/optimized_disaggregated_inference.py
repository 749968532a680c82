"""Prompts run on SMs of their own and hand their blocks over."""
# predicts: baseline itl_ms.p95 3.59 = 1e3 * (budget * 1.51e9 / fp32_matmul + 1.7e-3) on h100  (a step with a chunk in it)
# predicts: optimized itl_ms.p95 2.62 = 1e3 * (3.02e9 / 1.3e12 + 0.3e-3)  (32 SMs read all weights at 1.3 TB/s: assumed)

import torch

from common.serving.kv_blocks import KvBlocks
from common.serving.lanes import split_sms
from common.serving.step import step
from common.serving.transfer import push

BLOCK = 16  # tokens


def prepare(weights, config, slots, prompt, longest, decode_sms, arrivals, emit, device):
    decode, prefill = split_sms(device, decode_sms)
    prompts = KvBlocks(config, blocks=-(-prompt // BLOCK), block_tokens=BLOCK, device=device)
    answers = KvBlocks(config, blocks=slots * -(-(prompt + longest) // BLOCK), block_tokens=BLOCK, device=device)

    def start(request, freed):
        """Queue the prompt's forward, its first token, and the push of its blocks to the decode pool, once these are `freed`."""
        with prefill:
            logits = step(weights, config, prompts, [request.id], [torch.tensor(request.prompt, device=device)])
            done = emit([request], token := logits.argmax(-1), logits)
            prefill.follow(freed)
            push(prompts, answers, request.id)
            prompts.release(request.id)
            return request, token, done, prefill.mark()

    def decode_one(running, last):
        with decode:
            logits = step(weights, config, answers, [request.id for request in running], [last[request.id] for request in running])
            tokens = logits.argmax(-1)
            last |= {request.id: token for request, token in zip(running, tokens.split(1), strict=True)}
            return emit(running, tokens, logits)

    def serve():
        for lane in (decode, prefill):
            lane.follow_caller()
        waiting, running, last, started, freed, queued = arrivals.wait(), [], {}, None, decode.mark(), decode.mark()
        while waiting or running or started:
            if waiting and not started and answers.reserve(waiting[0].id, prompt + longest):
                started = start(waiting.pop(0), freed)
            done = set()
            if started and (not running or started[3].is_reached()):
                request, token, done, pushed = started
                pushed.wait()
                decode.follow(pushed)
                running, started, last[request.id] = [*running, request], None, decode.borrow(token)
            elif running:
                done = decode_one(running, last)
                queued.wait()  # for the step before: a prompt that is done would wait for all steps that are queued ahead
                queued = decode.mark()
            for request_id in done:
                answers.release(request_id)
                freed = decode.mark()
            running = [request for request in running if request.id not in done]
            waiting += arrivals.poll() if waiting or running or started else arrivals.wait()

    return serve
