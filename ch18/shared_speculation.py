"""A server that decodes in rounds of speculation, and the inputs of the pairs that compare their trees."""

import torch
from shared_rounds import Rounds

from common import Metric, Traffic
from common.models.byte_server import arrivals_at, grown_inputs, prompts
from common.models.config import byte_lm_draft


def server(weights, config, draft_weights, draft_config, slots, capacity, arrivals, emit, report, device, *, depth, width=1):
    """A step that serves a trace with trees of `depth` levels of `width` drafts."""
    rounds = Rounds((weights, config), (draft_weights, draft_config), slots, capacity, depth, width, torch.device(device))

    def serve():
        waiting, running, emitted, steps = arrivals.wait(), {}, 0, 0
        while waiting or running:
            for slot in [slot for slot in range(slots) if slot not in running][: len(waiting)]:
                request = running[slot] = waiting.pop(0)
                logits = rounds.admit(slot, torch.tensor(request.prompt, device=device))
                if emit([request], logits.argmax(-1), logits):
                    rounds.release(slot)
                    del running[slot]
            if running:
                tokens, counts, logits = rounds.next()
                tokens, counts = torch.cat((tokens, counts[:, None]), 1).cpu().split((depth + 1, 1), 1)
                emitted, steps = emitted + int(counts.sum()), steps + len(running)
                for position in range(depth + 1):  # a token at a time, for an answer may be complete before its last accepted one
                    some = [slot for slot in running if position < counts[slot]]
                    done = emit([running[slot] for slot in some], tokens[some, position].tolist(), logits[some, position]) if some else ()
                    for slot in [slot for slot in some if running[slot].id in done]:
                        rounds.release(slot)
                        del running[slot]
            waiting += arrivals.poll() if waiting or running else arrivals.wait()
        report("tokens_per_round", Metric(emitted / max(steps, 1), "tokens", "higher"))

    return serve


def inputs(rand, width, more_layers, intermediate, **_):
    target = grown_inputs(rand, width, more_layers, intermediate)
    return {**target, "draft_config": byte_lm_draft(), "draft_weights": rand.asset("byte_lm_draft")}


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 2, prompt), "output_tokens": (longest // 2, longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=prompts)


LARGE = {"width": 16, "more_layers": 4, "intermediate": 65536}
SMALL = {"width": 1, "more_layers": 0, "intermediate": 704}
SHAPES = {
    "time_at": {"requests": 16, "prompt": 48, "longest": 128, "slots": 4, "arrival_poisson": 0.0, **LARGE},
    "cpu_at": {"requests": 6, "prompt": 32, "longest": 64, "slots": 2, "arrival_poisson": 0.0, **SMALL},
    "check_at": (
        {"requests": 5, "prompt": 40, "longest": 14, "slots": 2, "arrival_poisson": 0.0, **SMALL},
        {"requests": 6, "prompt": 33, "longest": 9, "slots": 4, "arrival_poisson": 0.0, **SMALL, "width": 4},
    ),
}
