"""The server and the inputs of the pairs that compare trees of drafts."""

from common import Metric, Traffic
from common.models.byte_server import arrivals_at, grown_inputs, prompts
from common.models.config import byte_lm_draft
from common.serving.slot_cache import Model
from common.serving.speculation import Clients, Size
from common.serving.speculation import server as serving


def server(weights, config, draft_weights, draft_config, slots, capacity, arrivals, emit, report, device, *, depth, width=1):
    """A step that serves a trace with trees of `depth` levels of `width` drafts."""
    size = Size(slots, capacity, depth, width)
    clients = Clients(arrivals, emit, lambda tokens: report("tokens_per_round", Metric(tokens, "tokens", "higher")))
    return serving(Model(weights, config), Model(draft_weights, draft_config), size, clients, device)


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
