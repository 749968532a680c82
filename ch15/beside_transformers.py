"""The optimized side of ch15:continuous_batching beside transformers' own continuous batching: the same weights, the same traces.

    ./setup.sh python ch15/beside_transformers.py --seconds 60 --json artifacts/beside_transformers.json

Both engines answer each trace in one process, in an order that turns round from trace to trace, once with `--slots` sequences at a time
and once with all requests at a time. Every request comes at once and says how many tokens it wants; no token ends an answer. A time is from
the first request handed over until the last token is on the host. transformers' engine is its ContinuousBatchingManager, because
`generate_batch` gives all requests one length; its attention is the one that it chooses, unless --attention names another. --graphs adds
it with CUDA graphs, which it leaves off where attention needs a mask. Both do without cuDNN's attention, which is planned for each shape
anew, and shapes change at every step. --cudnn gives it back to transformers. Exit 1 where a length or a token is wrong. What --json
writes, committed beside this file as beside_transformers_<gpu>.json, becomes a table of the README.
"""

import argparse
import gc
import importlib.metadata
import json
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import torch

from common.models.byte_server import ATOL, grown_inputs, trained_logits
from common.models.in_transformers import common_fields, dense_names, plain_names
from common.python.child.sides.inputs import Rand
from common.python.child.sides.loader import load_side, load_workload
from common.python.errors import BenchmarkError
from common.python.gate.statistics import geometric_interval
from common.python.machine.description import describe_machine
from common.python.pairs.serving import Request
from common.python.pairs.traces import draw_trace
from common.python.project import PROJECT_ROOT

FOLDER = Path(__file__).parent
SIZES = {"requests": 1, "prompt": 4, "longest": 2, "mean": 2, "slots": 1, "more_layers": 0}  # the least of each
BATCH_TOKENS = 256, 8192  # transformers' own least and most of a step
BLOCK = 256  # tokens: transformers' own
GRAPH_TOKENS, GRAPH_KEYS = 16, 1024  # what its CUDA graphs are padded to


class Ours:
    """The optimized side, `limit` sequences at a time."""

    name = "ours"

    def __init__(self, inputs, shape, limit, device):
        self.limit = limit
        workload = load_workload(FOLDER / "workload_continuous_batching.py")
        side = load_side(FOLDER / "optimized_continuous_batching.py", workload, None)
        given = {"arrivals": self, "emit": self._emit, "report": lambda *_: None, "device": device}
        self._serve = side.prepare({**inputs, **given}, {**shape, "slots": limit})

    def poll(self):
        """All requests, once."""
        handed, self._waiting = self._waiting, []
        return handed

    wait = poll

    def _emit(self, requests, tokens, logits):
        del logits
        self._calls.append(([request.id for request in requests], tokens))
        for request in requests:
            self._left[request.id] -= 1
        return {request.id for request in requests if not self._left[request.id]}

    def answers(self, trace):
        """The tokens of every request of `trace`."""
        self._waiting = [Request(i, list(planned.prompt), planned.output_tokens) for i, planned in enumerate(trace)]
        self._left, self._calls = [planned.output_tokens for planned in trace], []
        self._serve()
        said = [[] for _ in trace]
        tokens = iter(torch.cat([tokens for _, tokens in self._calls]).tolist())
        for ids, _ in self._calls:
            for i in ids:
                said[i].append(next(tokens))
        return said


class Theirs:
    """transformers' ContinuousBatchingManager, at most `limit` requests a step. Its thread waits between traces."""

    def __init__(self, model, shape, limit, graphs):
        from transformers import ContinuousBatchingConfig, GenerationConfig

        self.name = "transformers, graphs" if graphs else "transformers"
        self.limit = limit
        requests, prompt = shape["requests"], shape["prompt"]
        padded = {"use_cuda_graph": True, "q_padding_interval_size": GRAPH_TOKENS, "kv_padding_interval_size": GRAPH_KEYS}
        settings = ContinuousBatchingConfig(
            block_size=BLOCK,
            num_blocks=2 * requests * -(-(prompt + shape["longest"] + 1) // BLOCK),  # half of them would hold all requests at once
            max_batch_tokens=max(BATCH_TOKENS[0], min(BATCH_TOKENS[1], requests * prompt)),
            max_requests_per_batch=limit,
            **(padded if graphs else {}),
        )
        greedy = GenerationConfig(do_sample=False, eos_token_id=-1, max_new_tokens=shape["longest"])
        self._manager = model.init_continuous_batching(greedy, settings)
        self._manager.warmup()
        self._manager.start()
        chosen = self._manager.continuous_batching_config
        names = ("block_size", "num_blocks", "max_batch_tokens", "max_requests_per_batch", "use_cuda_graph", "use_async_batching")
        attention = {"attention": model.config._attn_implementation, "cudnn": torch.backends.cuda.cudnn_sdp_enabled()}
        self.settings = {**attention, **{name: vars(chosen)[name] for name in names}}

    def answers(self, trace):
        """The tokens of every request of `trace`."""
        ids = [self._manager.add_request(list(planned.prompt), max_new_tokens=planned.output_tokens) for planned in trace]
        found = {}
        while len(found) < len(trace):
            result = self._manager.get_result(timeout=1)
            if result is None and not self._manager.is_running():
                raise BenchmarkError(f"{self.name}: found its thread ended; expected it to answer {len(trace)} requests")
            if result is not None and result.error:
                raise BenchmarkError(f"{self.name}: found {result.error!r}; expected an answer of each request")
            if result is not None and result.is_finished():
                found[result.request_id] = result.generated_tokens
        return [found[i] for i in ids]

    def close(self):
        """End the thread."""
        self._manager.stop(block=True, timeout=10, hard_stop=True)


def twin(weights, config, attention, device):
    """transformers' Llama with these weights."""
    import transformers

    rotation = {"rope_type": "default", "rope_theta": config.rotary.theta}
    fields = {**common_fields(config), "head_dim": config.head_dim, "rope_parameters": rotation}
    try:
        with torch.device(device):
            settings = transformers.LlamaConfig(**fields)
            model = transformers.AutoModelForCausalLM.from_config(settings, dtype=config.dtype, attn_implementation=attention)
    except (ValueError, ImportError) as error:
        why = str(error).partition(". ")[0]
        raise BenchmarkError(f"found --attention {attention}; expected one that transformers has here, which says: {why}") from error
    model.load_state_dict(plain_names(weights, config) | dense_names(weights, config), strict=True)
    return model.eval()


def finish(device):
    """Wait for the GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(engine, trace, device):
    """What `engine` answers, and in how many seconds. Raises BenchmarkError where a length is not the one asked for."""
    finish(device)
    began = time.perf_counter()
    answers = engine.answers(trace)
    finish(device)
    seconds = time.perf_counter() - began
    for i, (planned, said) in enumerate(zip(trace, answers, strict=True)):
        if len(said) != planned.output_tokens:
            found = f"found {len(said)} tokens for request {i}"
            raise BenchmarkError(f"{engine.name}, {engine.limit} at a time: {found}; expected {planned.output_tokens}, as it asked")
    return answers, seconds


def wrong(trace, answers, inputs, device):
    """How many tokens the model would not say behind those before them, within the pair's own tolerance."""
    count = 0
    for planned, said in zip(trace, answers, strict=True):
        logits = trained_logits(**inputs, tokens=torch.tensor([*planned.prompt, *said[:-1]], device=device), first=len(planned.prompt) - 1)
        below = logits.amax(-1) - logits.gather(-1, torch.tensor(said, device=device)[:, None])[:, 0]
        count += int((below > ATOL * logits.std(-1)).sum())
    return count


def rounds(engines, draw, options, device):
    """A dict a trace, after one that warms up: its seed, its tokens, and the seconds of every engine. Then its trace and all answers."""
    until, rows, trace, answers = 0.0, [], (), []
    for number in range(options.rounds + 1):
        if len(rows) >= 2 and time.monotonic() > until:
            break
        trace = draw(options.seed + number)
        order = list(range(len(engines)))
        gc.collect()  # so that it seldom comes within a time
        ran = {i: timed(engines[i], trace, device) for i in (order[::-1] if number % 2 else order)}
        answers = [ran[i][0] for i in order]
        if number:
            tokens = sum(planned.output_tokens for planned in trace)
            rows.append({"seed": options.seed + number, "tokens": tokens, "seconds": [ran[i][1] for i in order]})
        else:
            until = time.monotonic() + options.seconds
    return rows, trace, answers


def compared(engines, rows, answers):
    """Each engine of transformers beside ours with the same limit, and with `--slots` alone: ratios, and the share of equal answers."""
    table = []
    for mine, engine in enumerate(engines):
        for other, beside in enumerate(engines):
            if not isinstance(engine, Ours) or isinstance(beside, Ours) or engine.limit > beside.limit:
                continue
            ratio = geometric_interval([row["seconds"][other] / row["seconds"][mine] for row in rows])
            row = {"ours_at_once": engine.limit, "engine": beside.name, "at_once": beside.limit}
            row |= {"ratio": ratio.estimate, "low": ratio.low, "high": ratio.high}
            row["same_answers"] = statistics.fmean(a == b for a, b in zip(answers[mine], answers[other], strict=True))
            table.append(row)
    return table


def show(report):
    """Print what `--json` writes."""
    for name in ("hardware", "dtype", "shape", "versions"):
        print(f"{name}: {report[name]}")
    for row in report["engines"]:
        if row["settings"]:
            print(f"{row['engine']}, {row['at_once']} at a time: {row['settings']}")
    print(f"\n{'engine':<22}{'at a time':>10}{'tokens/s':>11}{'wrong tokens':>14}")
    for row in report["engines"]:
        print(f"{row['engine']:<22}{row['at_once']:>10}{row['tokens_per_s']:>11.1f}{row['wrong_tokens']:>14}")
    print(f"\nour throughput over theirs, {len(report['rounds'])} traces\n{'ours':>6}  {'beside':<22}{'at a time':>10}", end="")
    print(f"{'ratio':>8}{'95 % interval':>18}{'same answers':>14}")
    for row in report["compared"]:
        interval = f"{row['low']:.3f} to {row['high']:.3f}"
        print(f"{row['ours_at_once']:>6}  {row['engine']:<22}{row['at_once']:>10}{row['ratio']:>8.3f}{interval:>18}", end="")
        print(f"{100 * row['same_answers']:>12.1f} %")


def origin():
    """Which commit serves, with which driver, and when."""
    machine = describe_machine(PROJECT_ROOT)
    told = {"commit": machine.project.commit, "dirty": machine.project.dirty} if machine.project else {}
    if machine.gpus:
        told["driver"] = machine.gpus[0].driver
    return told | {"date": datetime.now(UTC).isoformat(timespec="seconds")}


def measured(shape, options, device):
    """Build both models, serve the traces, and say all that was found."""
    serving = load_workload(FOLDER / "workload_continuous_batching.py").serving
    traffic = serving.traffic_at({**shape, "arrival_poisson": 0.0})
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    with tempfile.TemporaryDirectory() as folder:
        inputs = grown_inputs(Rand(options.seed, device, Path(folder)), shape["width"], shape["more_layers"], dtype=dtype)
    model = twin(**inputs, attention=options.attention, device=device)
    limits = sorted({min(shape["slots"], shape["requests"]), shape["requests"]})
    engines = [Ours(inputs, shape, limit, device) for limit in limits]
    try:
        variants = (False, True)[: 1 + options.graphs]
        engines.extend(Theirs(model, shape, limit, graphs) for graphs in variants for limit in limits)
        rows, trace, answers = rounds(engines, lambda seed: draw_trace(traffic, serving.vocabulary, seed, 0.0), options, device)
    finally:
        for engine in engines:
            if isinstance(engine, Theirs):
                engine.close()
    told = []
    for i, engine in enumerate(engines):
        row = {"engine": engine.name, "at_once": engine.limit, "settings": engine.settings if isinstance(engine, Theirs) else {}}
        row["tokens_per_s"] = geometric_interval([each["tokens"] / each["seconds"][i] for each in rows]).estimate
        told.append({**row, "wrong_tokens": wrong(trace, answers[i], inputs, device)})
    return {
        "hardware": torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads",
        "dtype": str(dtype).removeprefix("torch."),
        "shape": shape,
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "transformers")},
        "engines": told,
        "rounds": rows,
        "compared": compared(engines, rows, answers),
        "origin": origin(),
    }


def parsed(arguments, device):
    """The flags, and the shape that they give. Ends with a sentence where one is of no use."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    workload = load_workload(FOLDER / "workload_continuous_batching.py")
    default = next(iter(workload.timed_shapes.values())) if device.type == "cuda" else workload.cpu_at
    parser.add_argument("--width", type=int, choices=(1, 4, 16), default=default["width"], help="times as wide as byte_lm")
    for name, least in SIZES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default[name], help=f"at least {least}")
    parser.add_argument("--rounds", type=int, default=10, help="traces, at least 2, after one that warms up")
    parser.add_argument("--seconds", type=float, default=60.0, help="begin no third trace or later one behind this many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--attention", default="sdpa", help="transformers' name of its attention; sdpa lets it take a better one")
    parser.add_argument("--cudnn", action="store_true", help="let transformers' attention be cuDNN's, as torch does by itself")
    parser.add_argument("--graphs", action="store_true", help="also time transformers with CUDA graphs; needs a GPU")
    parser.add_argument("--json", type=Path, help="also write what is printed to this file")
    options = parser.parse_args(arguments)
    shape = {name: vars(options)[name] for name in ("width", *SIZES)}
    for name, least in {**SIZES, "rounds": 2}.items():
        if vars(options)[name] < least:
            parser.error(f"found --{name.replace('_', '-')} {vars(options)[name]}; expected at least {least}")
    if options.seconds <= 0 or (options.graphs and device.type != "cuda"):
        parser.error(f"found --seconds {options.seconds:g} on {device.type}; expected more than 0, and a GPU for --graphs")
    if options.json and not options.json.parent.is_dir():
        parser.error(f"found no folder {options.json.parent}; expected --json to name a file in one that is there")
    try:
        from transformers import ContinuousBatchingConfig  # noqa: F401
    except ImportError:
        parser.error("found no transformers with continuous batching; expected 5.17 or newer: ./setup.sh pip install transformers")
    return options, shape


def main(arguments=None):
    """Serve, compare and print."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    options, shape = parsed(arguments, device)
    torch.backends.cuda.enable_cudnn_sdp(options.cudnn)
    try:
        report = measured(shape, options, device)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    show(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
        print(f"wrote {options.json}")
    return 1 if any(row["wrong_tokens"] for row in report["engines"]) else 0


if __name__ == "__main__":
    sys.exit(main())
