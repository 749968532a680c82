"""The engine with the least work ahead takes the request."""
# guess: 1.01x, as fleet_simulation.py has it for four engines on one GPU: less than one request waits in the mean
# allows: processes

from pathlib import Path

import yaml
from shared_router import routed

CONFIG = Path(__file__).with_name("dynamo_config.yaml")
DECODE = 256  # an answer's cost in tokens of a prompt: 40 steps * 0.21 ms / 0.0292 ms = 288 by fleet_service_times.json; a power of two


def choose(prompt_tokens, loads, prefill_len_threshold=256, queue_max=10):
    """The engine with the least work ahead; a long prompt counts the answers that its prefill would hold up twice.

    An engine with `queue_max` requests that wait for a first token takes none while another has fewer.
    """
    weight = 2 if prompt_tokens > prefill_len_threshold else 1
    open_engines = [engine for engine, load in enumerate(loads) if load.waiting < queue_max] or range(len(loads))

    def work(engine):
        load = loads[engine]
        return load.waiting_tokens + DECODE * (load.waiting + weight * load.running)

    return min(open_engines, key=work)


def by_config():
    """`choose` with the limits of the file."""
    limits = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["router"]
    return lambda prompt_tokens, loads: choose(prompt_tokens, loads, **limits)


def prepare(weights, config, prompt, longest, engines, slots, arrivals, emit, report, device):
    return routed(by_config(), weights, config, engines, slots, prompt + longest, arrivals, emit, report, device)
