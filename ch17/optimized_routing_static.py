"""Requests leave a busy home engine, by cost with hysteresis."""
# guess: 1.71x, as fleet_simulation.py has it for two engines on one GPU
# allows: processes

from shared_router import routed

LONG = 256  # tokens: the home engine of longer prompts is the second
DECODE = 128  # a running answer's cost in tokens of a prompt: half of what dynamic_routing derives for answers twice as long


def cost(load):
    """The work ahead of a new request at an engine, in tokens of a prompt."""
    return load.waiting_tokens + DECODE * (load.waiting + load.running)


class ByCost:
    """A class of prompts stays at its home engine until that is dearer than the other by `leave` tokens, and away until by `back`."""

    def __init__(self, leave=256, back=0):
        self.leave, self.back = leave, back
        self.away = [False, False]

    def __call__(self, prompt_tokens, loads):
        home = int(prompt_tokens > LONG)
        dearer = cost(loads[home]) - cost(loads[1 - home])
        self.away[home] = dearer > (self.back if self.away[home] else self.leave)
        return 1 - home if self.away[home] else home


def prepare(weights, config, prompt, longest, slots, arrivals, emit, report, device):
    return routed(ByCost(), weights, config, 2, slots, prompt + longest, arrivals, emit, report, device)
