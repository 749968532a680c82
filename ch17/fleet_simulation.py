"""SIMULATED, not measured: this chapter's routers before fleets of 8 to 72 GPUs, an engine on each.

    ./setup.sh python ch17/fleet_simulation.py [--gpus 8 16 32 72] [--times llama3_8b_h100] [--json FILE] [--svg FILE]

The routers are the pairs' own code, and the limits are those of dynamo_config.yaml. What a step takes is data, fleet_service_times.json,
with its source. --measure FILE times steps on this machine instead, for --file FILE --times here. Loads are shares of what two engines
serve behind the pair's baseline, per engine. Compare routers by it, never machines: nothing here fails, and every engine is alike.
"""

import argparse
import json
import random
import statistics
import sys
import time
from dataclasses import replace
from itertools import count, product
from pathlib import Path

import baseline_dynamic_routing
import baseline_routing_static
import numpy as np
import optimized_dynamic_routing
import optimized_routing_static
import torch
from scipy.optimize import nnls
from shared_fleet_plot import drawn

from common.models.config import byte_lm
from common.models.decoder import init
from common.models.grow import grown_config
from common.python.command import Arguments, exit_with, finite_above_0
from common.python.errors import BenchmarkError, ExitCode
from common.python.measure.serving_figures import figures_of_traces
from common.python.results import ServedRequest
from common.python.storage import write_whole
from common.serving.engines import Load
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step
from common.simulation.fleet import ServiceTimes, Simulation, Wanted

TIMES = Path(__file__).with_name("fleet_service_times.json")
SLO_MS = (500.0, 20.0)  # of TTFT and TPOT: the pairs'
SAID = "SIMULATED, not measured"
ALONE = 500  # requests at once, from whose answers the saturation is known


class Halves:
    """A router between two engines before a fleet: it chooses a half by the mean load of an engine there; the half takes turns."""

    def __init__(self, choose):
        self._choose, self._turns = choose, (count(), count())

    def __call__(self, prompt_tokens, loads):
        middle = len(loads) // 2
        halves = loads[:middle], loads[middle:]
        chosen = self._choose(prompt_tokens, [mean_load(half) for half in halves])
        return chosen * middle + next(self._turns[chosen]) % len(halves[chosen])


def mean_load(loads):
    """What an engine of several has to do in the mean."""
    return Load(*(statistics.fmean(getattr(load, name) for load in loads) for name in ("waiting", "waiting_tokens", "running")))


# By pair: the load, as a share of what two engines serve behind the baseline, and both sides' routers.
PAIRS = {
    "routing_static": (0.9, lambda: Halves(baseline_routing_static.choose), lambda: Halves(optimized_routing_static.ByCost())),
    "dynamic_routing": (0.8, baseline_dynamic_routing.InTurn, optimized_dynamic_routing.by_config),
}


def trace(requests, prompt, answer, per_s, seed):
    """Requests of a Poisson process: prompts of 32 to `prompt` tokens, answers of `answer` / 4 to `answer`; all at once for a rate of 0."""
    rng, due_s, wanted = random.Random(seed), 0.0, []
    for _ in range(requests):
        due_s += rng.expovariate(per_s) if per_s else 0.0
        wanted.append(Wanted(due_s, rng.randint(32, prompt), rng.randint(max(1, answer // 4), answer)))
    return wanted


def served(router, wanted, gpus, slots, times):
    """What clients of a simulated fleet see."""
    answers = Simulation(router(), gpus, slots, times).serve(wanted)
    stamps = [tuple(round(1e6 * at) for at in answer.tokens_s) for answer in answers]
    return [
        ServedRequest(due_us=round(1e6 * each.due_s), prompt_tokens=each.prompt_tokens, tokens_us=tokens)
        for each, tokens in zip(wanted, stamps, strict=True)
    ]


def rows_of(chosen, times):
    """A row a pair and size of the fleet, with both sides' figures."""
    lengths = chosen.prompt, chosen.answer
    for name, (share, *routers) in PAIRS.items():
        closed = served(routers[0], trace(ALONE, *lengths, 0.0, chosen.seed), 2, chosen.slots, times)
        saturation = figures_of_traces([closed], *SLO_MS)["requests_per_s"] / 2
        for gpus in chosen.gpus:
            per_s, count_ = (chosen.load or share) * saturation * gpus, chosen.requests * gpus
            traces = [trace(count_, *lengths, per_s, f"{chosen.seed} {number}") for number in range(chosen.traces)]
            yield row_of(name, gpus, per_s, [[served(router, each, gpus, chosen.slots, times) for each in traces] for router in routers])


def row_of(name, gpus, per_s, sides):
    """The figures of both sides' traces."""
    baseline, optimized = (figures_of_traces(traces, *SLO_MS) for traces in sides)
    gain = baseline["ttft_ms.p95"] / optimized["ttft_ms.p95"]
    return {"pair": name, "gpus": gpus, "requests_per_s": per_s, "gain": gain, "baseline": baseline, "optimized": optimized}


def times_of(file, name):
    """The service times of that name in a file. Raises BenchmarkError."""
    try:
        times = ServiceTimes(**json.loads(file.read_text(encoding="utf-8"))[name])
        if not times.seconds(0, 1) > 0:
            raise BenchmarkError(f"{file}: found step_s + sequence_s of {times.seconds(0, 1)} for {name}; expected a step to take time")
        return times
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"{file}: cannot be read; expected service times as JSON") from error
    except (KeyError, TypeError) as error:
        fields = ", ".join(ServiceTimes.__annotations__)
        raise BenchmarkError(f"{file}: found no {name} with {fields}; expected one, as in {TIMES.name}") from error


def measured(width, repeats=5):
    """Service times of this machine: steps of byte_lm, `width` times as wide, fitted as linear in their prompt tokens and sequences."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = replace(grown_config(byte_lm(), width=width, layers=0), dtype=torch.float32)
    weights = init(config, torch.Generator(device).manual_seed(0))
    facts = [(1.0, prompt, decoding) for prompt, decoding in product((0, 64, 256), (0, 1, 4)) if prompt + decoding]
    caches = [KvBlocks(config, blocks=64 * decoding + 2 * prompt, device=device) for _, prompt, decoding in facts]
    chunk = torch.zeros(256, dtype=torch.int64, device=device)
    taken = [[] for _ in facts]
    for number in range(repeats + 1):  # in turn, so that a busy spell of the machine takes no kind of step alone
        for (_, prompt, decoding), blocks, seconds in zip(facts, caches, taken, strict=True):
            names = [f"decoding {place}" for place in range(decoding)]
            if number == 0:
                for name in names:
                    step(weights, config, blocks, [name], [chunk])
            batch = ({"prompt": chunk[:prompt]} if prompt else {}) | dict.fromkeys(names, chunk[:1])
            began = time.perf_counter()
            step(weights, config, blocks, list(batch), list(batch.values())).argmax(-1).tolist()
            seconds.append(time.perf_counter() - began)
            if prompt:
                blocks.release("prompt")
    seconds = [min(each[1:]) for each in taken]
    fitted, _ = nnls(np.array(facts) / np.array(seconds)[:, None], np.ones(len(seconds)))  # by relative errors
    where = torch.cuda.get_device_name() if device.type == "cuda" else "this CPU"
    source = f"measured on {where}: the fastest of {repeats} steps of byte_lm, {width} times as wide; 0.5 ms per message assumed"
    return {"step_s": fitted[0], "prompt_token_s": fitted[1], "sequence_s": fitted[2], "message_s": 5e-4, "source": source}


def gpus_of(text):
    """A fleet's size. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 2 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"found {text}; expected 2 to 1024 GPUs")
    return int(text)


def parser():
    """The command line."""
    made = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--gpus", type=gpus_of, nargs="+", default=[8, 16, 32, 72], help="sizes of fleets")
    made.add_argument("--file", type=Path, default=TIMES, help="of service times")
    made.add_argument("--times", default="llama3_8b_h100", help="whose times in that file")
    made.add_argument("--slots", type=int, default=4, help="sequences that an engine holds")
    made.add_argument("--requests", type=int, default=96, help="per GPU and trace")
    made.add_argument("--traces", type=int, default=2, help="whose figures are pooled")
    made.add_argument("--prompt", type=int, default=1024, help="tokens of the longest prompt")
    made.add_argument("--answer", type=int, default=64, help="tokens of the longest answer")
    made.add_argument("--load", type=finite_above_0, help="share of what the baseline can serve; default: each pair's own")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--json", type=Path, help="where to write all figures")
    made.add_argument("--svg", type=Path, help="where to draw TTFT")
    made.add_argument("--measure", type=Path, metavar="FILE", help="write this machine's service times there, and simulate nothing")
    made.add_argument("--width", type=int, default=1, choices=(1, 4, 16), help="with --measure: times as wide as byte_lm")
    return made


def main(arguments=None):
    """Simulate, print, and write what was asked for."""
    chosen = parser().parse_args(arguments)
    least = {"slots": 1, "requests": 1, "traces": 1, "prompt": 32, "answer": 1}
    try:
        for name, most in least.items():
            if getattr(chosen, name) < most:
                raise BenchmarkError(f"--{name}: found {getattr(chosen, name)}; expected at least {most}")
        if chosen.measure:
            write_whole(chosen.measure, json.dumps({"here": measured(chosen.width)}, indent=2) + "\n")
            print(f"{chosen.measure}: service times of this machine; simulate with --file {chosen.measure} --times here")
            return int(ExitCode.GOOD)
        times = times_of(chosen.file, chosen.times)
        print(f"{SAID}: TTFT and goodput before {chosen.times} on each GPU\n  service times: {times.source}")
        print(f"{'pair':<16}{'GPUs':>5}{'requests/s':>12}{'TTFT p95, ms':>22}{'gain':>8}{'goodput':>18}")
        rows = []
        for row in rows_of(chosen, times):
            rows.append(row)
            late = " to ".join(f"{row[side]['ttft_ms.p95']:.0f}" for side in ("baseline", "optimized"))
            good = " to ".join(f"{row[side]['goodput']:.0%}" for side in ("baseline", "optimized"))
            print(f"{row['pair']:<16}{row['gpus']:>5}{row['requests_per_s']:>12.0f}{late:>22}{row['gain']:>7.2f}x{good:>18}", flush=True)
        if chosen.json:
            facts = {"simulated": True, "what": SAID, "times": chosen.times, **vars(times), "slots": chosen.slots, "rows": rows}
            write_whole(chosen.json, json.dumps(facts, indent=2) + "\n")
        if chosen.svg:
            write_whole(chosen.svg, drawn(rows, f"{SAID}: {chosen.times}, an engine a GPU"))
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    exit_with(main)
