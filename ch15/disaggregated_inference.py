"""Demo: one stream of requests to both engines of ch15:disaggregated_inference, and what each request waits for.

    ./setup.sh python ch15/disaggregated_inference.py --requests 12 --per-second 6
    ./setup.sh python ch15/disaggregated_inference.py --capacity-factors 0.5,1,1.25,2

Prints TTFT and ITL of both engines, and checks every token against the model. The engines' model has no experts; --capacity-factors runs
the layer of experts of ch15:expert_parallelism instead, and says what each factor drops and takes. Exit 1 where an answer is wrong.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import baseline_disaggregated_inference as colocated
import optimized_disaggregated_inference as disaggregated
import torch
from shared_capacity import capacity_of, queue, taken

from common.models.byte_server import grown_inputs, prompts, trained_logits
from common.python.child.sides.alone import run_alone, script_device
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from common.python.pairs.serving import Request
from common.tensor_files import read_tensors

FOLDER = Path(__file__).parent
ASSETS = FOLDER.parent / "common/models/assets"

# The service's configuration: what the flags change, then what both engines get.
CONFIG = {"requests": 24, "per_second": 20.0, "prompt": 640, "longest": 64, "seed": 0}
SERVED = {"slots": 8, "budget": 64, "decode_sms": 32}


class Drawn:
    """What `grown_inputs` asks for: normal values and the trained weights."""

    def __init__(self, device):
        self._device = device
        self._generator = torch.Generator(device).manual_seed(0)

    def normal(self, *shape, dtype, mean, std):
        return torch.empty(shape, dtype=dtype, device=self._device).normal_(mean, std, generator=self._generator)

    def asset(self, name):
        return read_tensors((ASSETS / f"{name}.safetensors").read_bytes(), self._device)


class Clients:
    """Requests of a Poisson process, and when their tokens were there. On a GPU an event per call says when."""

    def __init__(self, options, device):
        rng = random.Random(options.seed)
        self._on_gpu = device.type == "cuda"
        lengths = [rng.randint(options.prompt * 4 // 5, options.prompt) for _ in range(options.requests)]
        self._all = [Request(i, list(prompts(rng, length)), options.longest) for i, length in enumerate(lengths)]
        self._wanted = [rng.randint(options.longest // 4, options.longest) for _ in self._all]
        gaps = [0.0, *(rng.expovariate(options.per_second) for _ in self._all[1:])]
        self._due = [sum(gaps[: i + 1]) for i in range(len(gaps))]
        self._calls = []  # requests, tokens, and when
        self._counts = [0] * len(self._all)
        self._handed = 0

    def begin(self):
        self._began = self._now()
        self._clock = time.monotonic()

    def _now(self):
        if not self._on_gpu:
            return time.monotonic()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def poll(self):
        first, passed = self._handed, time.monotonic() - self._clock
        self._handed = sum(due <= passed for due in self._due)
        return self._all[first : self._handed]

    def wait(self):
        while not (found := self.poll()) and self._handed < len(self._all):
            time.sleep(1e-4)
        return found

    def emit(self, requests, tokens, logits):
        del logits
        self._calls.append(([request.id for request in requests], tokens, self._now()))
        for request in requests:
            self._counts[request.id] += 1
        return {request.id for request in requests if self._counts[request.id] == self._wanted[request.id]}

    def answers(self):
        """Of each request its prompt, its tokens, and their times in ms after it was due."""
        said = [(request.prompt, [], []) for request in self._all]
        for ids, tokens, when in self._calls:
            passed = self._began.elapsed_time(when) if self._on_gpu else 1e3 * (when - self._began)
            for i, token in zip(ids, tokens.tolist(), strict=True):
                said[i][1].append(token)
                said[i][2].append(passed - 1e3 * self._due[i])
        return said


def served(engine, options, inputs, device):
    """The answers of an engine, which serves the trace twice: the first time loads what it needs."""
    for _ in range(2):
        clients = Clients(options, device)
        given = {"prompt": options.prompt, "longest": options.longest, "arrivals": clients, "emit": clients.emit, "device": device}
        names = engine.prepare.__code__.co_varnames[: engine.prepare.__code__.co_argcount]
        serve = engine.prepare(**{name: value for name, value in {**inputs, **SERVED, **given}.items() if name in names})
        clients.begin()
        serve()
        if device.type == "cuda":
            torch.cuda.synchronize()
    return clients.answers()


def wrong(answers, inputs, device):
    """How many tokens are not what the model says behind those before them, but for ties."""
    count = 0
    for prompt, said, _ in answers:
        logits = trained_logits(**inputs, tokens=torch.tensor([*prompt, *said[:-1]], device=device), first=len(prompt) - 1)
        below = logits.amax(-1) - logits.gather(-1, torch.tensor(said, device=device)[:, None])[:, 0]
        count += int((below > 5e-4 * logits.std(-1)).sum())
    return count


def percentile(values, share):
    return statistics.quantiles(values, n=100, method="inclusive")[round(100 * share) - 1]


def sweep(factors):
    """What a capacity factor drops, and what the sparse layer takes with it."""
    device = script_device()
    workload = load_workload(FOLDER / "workload_expert_parallelism.py")
    shape = next(iter(workload.timed_shapes.values())) if device.type == "cuda" else workload.cpu_at
    tokens, experts, top = (shape[name] for name in ("tokens", "experts", "top"))
    with tempfile.TemporaryDirectory() as folder:
        chosen = Inputs(workload, shape, 0, device, Path(folder)).values["chosen"]
    lengths = queue(chosen, experts)[1]
    print(f"{tokens} tokens choose {top} of {experts} experts each on {device.type}")
    print(f"{'factor':>7}{'capacity':>10}{'dropped':>9}{'ms':>9}{'error / tolerance':>19}")
    failed = False
    for factor in factors:
        capacity = capacity_of(tokens, experts, top, factor)
        dropped = taken(lengths, capacity)[1].sum().item() / (tokens * top)
        ran = run_alone(FOLDER / "optimized_expert_parallelism.py", {**shape, "capacity_factor": factor}, device)
        print(f"{factor:>7g}{capacity:>10}{100 * dropped:>8.1f}%{ran.milliseconds:>9.3f}{ran.error:>19.2f}")
        failed |= not ran.error <= 1
    return 1 if failed else 0


def main(arguments=None):
    """Serve, print and check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=CONFIG["requests"])
    parser.add_argument("--per-second", type=float, default=CONFIG["per_second"])
    parser.add_argument("--prompt", type=int, default=CONFIG["prompt"], help="tokens of the longest prompt")
    parser.add_argument("--longest", type=int, default=CONFIG["longest"], help="tokens of the longest answer")
    parser.add_argument("--width", type=int, default=0, help="1, 4 or 16 times byte_lm's; default: 16 on a GPU, 1 on a CPU")
    parser.add_argument("--seed", type=int, default=CONFIG["seed"])
    parser.add_argument("--capacity-factors", help="numbers above 0 with commas between: sweep these, and serve nothing")
    options = parser.parse_args(arguments)
    if min(options.requests, options.prompt, options.longest) < 1 or options.per_second <= 0:
        parser.error("found a size or a rate of 0 or less; expected --requests, --prompt and --longest of at least 1, --per-second above 0")
    if options.capacity_factors:
        try:
            factors = [float(factor) for factor in options.capacity_factors.split(",")]
        except ValueError:
            factors = [0.0]
        if min(factors) <= 0:
            parser.error(f"found --capacity-factors {options.capacity_factors}; expected numbers above 0 with commas between, like 1,1.25")
        return sweep(factors)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    inputs = grown_inputs(Drawn(device), options.width or (16 if device.type == "cuda" else 1), 0, dtype=torch.float32)
    print(f"{options.requests} requests at {options.per_second:g} per second on {device.type}; times in ms")
    print(f"{'engine':<15}{'TTFT p50':>10}{'TTFT p95':>10}{'ITL p50':>10}{'ITL p95':>10}")
    failed = 0
    for name, engine in (("colocated", colocated), ("disaggregated", disaggregated)):
        answers = served(engine, options, inputs, device)
        first = [times[0] for _, _, times in answers]
        later = [b - a for _, _, times in answers for a, b in pairwise(times)]
        figures = [percentile(values, share) for values in (first, later) for share in (0.5, 0.95)]
        print(f"{name:<15}" + "".join(f"{figure:>10.1f}" for figure in figures))
        failed += wrong(answers, inputs, device)
    print("all tokens are the model's" if not failed else f"{failed} tokens are not the model's")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
