"""SIMULATED, not measured: this chapter's routers before fleets of 8 to 72 GPUs, an engine on each.

    ./setup.sh python ch17/fleet_simulation.py [--gpus 8 16 32 72] [--times llama3_8b_h100] [--shapes] [--json FILE] [--svg FILE]

The routers are the pairs' own code, and the limits are those of dynamo_config.yaml. What a step takes is data, fleet_service_times.json,
with its source. --measure FILE times steps on this machine instead, for --file FILE --times here. Loads are shares of what two engines
serve behind the pair's baseline, per engine. Compare routers by it, never machines: nothing here fails, and every engine is alike.
--shapes takes prompts, answers, slots and requests per engine of each pair's timed shape, and simulates them also with all engines on
one GPU, as the pairs run. What --json then writes, committed as fleet_simulated_<times>.json, stands in the README beside the pairs' rows.
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
from common.python.child.sides.loader import load_workload
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


def served(router, wanted, engines, slots, times, is_shared=False):
    """What clients of a simulated fleet see."""
    answers = Simulation(router(), engines, slots, times, is_shared=is_shared).serve(wanted)
    stamps = [tuple(round(1e6 * at) for at in answer.tokens_s) for answer in answers]
    return [
        ServedRequest(due_us=round(1e6 * each.due_s), prompt_tokens=each.prompt_tokens, tokens_us=tokens)
        for each, tokens in zip(wanted, stamps, strict=True)
    ]


def rows_of(chosen, times):
    """A row a pair and size of the fleet, with both sides' figures: a GPU an engine, and with --shapes also one GPU for all."""
    for (name, (share, *routers)), is_shared in product(PAIRS.items(), (False, True)[: 1 + chosen.shapes]):
        shape = shape_of(name) if chosen.shapes else vars(chosen)
        lengths, of_fleet = (shape["prompt"], shape["answer"]), (shape["slots"], times, is_shared)
        for engines in chosen.gpus:
            alike = engines if is_shared else 2  # engines with GPUs of their own serve as many requests each, however many they are
            closed = served(routers[0], trace(ALONE, *lengths, 0.0, chosen.seed), alike, *of_fleet)
            saturation = figures_of_traces([closed], *SLO_MS)["requests_per_s"] / alike
            per_s, count_ = (chosen.load or share) * saturation * engines, shape["requests"] * engines
            traces = [trace(count_, *lengths, per_s, f"{chosen.seed} {number}") for number in range(chosen.traces)]
            sides = [[served(router, each, engines, *of_fleet) for each in traces] for router in routers]
            yield row_of(name, engines, 1 if is_shared else engines, per_s, sides)


def shape_of(name):
    """The pair's timed shape in the words of the flags; two engines where the shape names no number."""
    timed = next(iter(load_workload(TIMES.with_name(f"workload_{name}.py")).timed_shapes.values()))
    per_engine = timed["requests"] // timed.get("engines", 2)
    return {"prompt": timed["prompt"], "answer": timed["longest"], "slots": timed["slots"], "requests": per_engine}


def row_of(name, engines, gpus, per_s, sides):
    """The figures of both sides' traces."""
    baseline, optimized = (figures_of_traces(traces, *SLO_MS) for traces in sides)
    gain = baseline["ttft_ms.p95"] / optimized["ttft_ms.p95"]
    return {
        "pair": name,
        "engines": engines,
        "gpus": gpus,
        "requests_per_s": per_s,
        "gain": gain,
        "baseline": baseline,
        "optimized": optimized,
    }


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
    made.add_argument("--shapes", action="store_true", help="the pairs' own requests, slots, prompts and answers")
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
        print(f"{'pair':<16}{'engines':>8}{'GPUs':>5}{'requests/s':>12}{'TTFT p95, ms':>22}{'gain':>8}{'goodput':>18}")
        rows = []
        for row in rows_of(chosen, times):
            rows.append(row)
            late = " to ".join(f"{row[side]['ttft_ms.p95']:.0f}" for side in ("baseline", "optimized"))
            good = " to ".join(f"{row[side]['goodput']:.0%}" for side in ("baseline", "optimized"))
            who = f"{row['pair']:<16}{row['engines']:>8}{row['gpus']:>5}"
            print(f"{who}{row['requests_per_s']:>12.0f}{late:>22}{row['gain']:>7.2f}x{good:>18}", flush=True)
        if chosen.json:
            of_pairs = {"shapes": {name: shape_of(name) for name in PAIRS}} if chosen.shapes else {"slots": chosen.slots}
            facts = {"simulated": True, "what": SAID, "times": chosen.times, **vars(times), **of_pairs, "traces": chosen.traces}
            write_whole(chosen.json, json.dumps(facts | {"rows": rows}, indent=2) + "\n")
        if chosen.svg:
            write_whole(
                chosen.svg, drawn([row for row in rows if row["gpus"] == row["engines"]], f"{SAID}: {chosen.times}, an engine a GPU")
            )
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    return int(ExitCode.GOOD)


if __name__ == "__main__":
    exit_with(main)
