"""A new request's whole prompt is computed in one step; the sequences that decode wait for that step."""

from shared_scheduler import server


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    return server(weights, config, slots, prompt + longest, None, arrivals, emit, report, device)
