"""The inputs that both sides serve, and the server: a model that may draft for itself with feed-forwards in e4m3."""

from common import Metric, Traffic
from common.models.byte_server import arrivals_at, grown_inputs, prompts
from common.models.e4m3 import FeedForward
from common.serving.slot_cache import Model
from common.serving.speculation import Clients, Size
from common.serving.speculation import server as serving


def server(weights, config, slots, capacity, arrivals, emit, report, device, *, drafts):
    """A step that serves a trace in rounds of `drafts` drafts and one check; without drafts a round is a token."""
    model = Model(weights, config)
    draft = model._replace(feed=FeedForward(weights, config)) if drafts else model
    clients = Clients(arrivals, emit, lambda tokens: report("tokens_per_round", Metric(tokens, "tokens", "higher")))
    return serving(model, draft, Size(slots, capacity, drafts), clients, device)


def inputs(rand, width, more_layers, intermediate, **_):
    return grown_inputs(rand, width, more_layers, intermediate)


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 2, prompt), "output_tokens": (longest // 2, longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=prompts)
