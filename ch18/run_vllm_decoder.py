"""Continue prompts with a paged, continuously batched decoder: ours and byte_lm by default, or vLLM where that is installed.

    ./setup.sh python ch18/run_vllm_decoder.py --max-tokens 256
    ./setup.sh python ch18/run_vllm_decoder.py --engine vllm --model MODEL --max-tokens 256

Our engine is that of ch18:scheduling: decoding first, then chunks of prompts, up to --budget tokens a step. Prints what was said, the
time to the first token, and tokens per second. Tokens of our engine are checked against the model; exit 1 where one is wrong.
"""

import argparse
import importlib
import importlib.util
import sys
import time
from pathlib import Path

import torch

from common.models.byte_server import trained_logits
from common.models.config import byte_lm
from common.python.pairs.serving import Request
from common.serving.batching import Batcher
from common.tensor_files import read_tensors

WEIGHTS = Path(__file__).parents[1] / "common/models/assets/byte_lm.safetensors"
PROMPTS = ("def main():\n", "import os\nimport ", "class Reader:\n    def ")


class Client:
    """Requests that are all there at the start, and the tokens they get. Times are the host's, taken once a step's tokens are on it."""

    def __init__(self, prompts, most_tokens):
        self._requests = [Request(i, list(prompt.encode()), most_tokens) for i, prompt in enumerate(prompts)]
        self.said = {request.id: [] for request in self._requests}
        self.first = {}

    def wait(self):
        """All requests, then none."""
        if self._requests:
            self._began = time.perf_counter()
        requests, self._requests = self._requests, []
        return requests

    poll = wait

    def emit(self, requests, tokens, logits):
        del logits
        values, now = tokens.tolist(), time.perf_counter() - self._began
        for request, token in zip(requests, values, strict=True):
            self.said[request.id].append(token)
            self.first.setdefault(request.id, now)
        self.took = now
        return {request.id for request in requests if len(self.said[request.id]) == request.most_tokens}


def ours(prompts, most_tokens, slots, budget):
    """Serve by our engine; how many tokens are not the model's."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config, weights = byte_lm(), read_tensors(WEIGHTS.read_bytes(), device)
    longest = max(len(prompt.encode()) for prompt in prompts) + most_tokens
    for count in (1, most_tokens):  # the first time loads what it needs
        client = Client(prompts, count)
        Batcher(weights, config, slots, longest, device).serve(client, client.emit, lambda decoding: max(budget - decoding, 1))
    wrong = 0
    for number, prompt in enumerate(prompts):
        said = client.said[number]
        tokens = torch.tensor([*prompt.encode(), *said[:-1]], device=device)
        logits = trained_logits(weights, config, tokens, len(prompt.encode()) - 1)
        below = logits.amax(-1) - logits.gather(-1, torch.tensor(said, device=device)[:, None])[:, 0]
        wrong += int((below > 5e-4 * logits.std(-1)).sum())
        print(f"--- prompt {number}, first token after {1e3 * client.first[number]:.1f} ms\n{prompt}{bytes(said).decode(errors='replace')}")
    count = sum(map(len, client.said.values()))
    print(f"ours on {device.type}: {count} tokens in {client.took:.3f} s, {count / client.took:.1f} tokens/s; {wrong} are not the model's")
    return wrong


def vllm(prompts, most_tokens, slots, model):
    """Serve by vLLM, greedily."""
    module = importlib.import_module("vllm")
    engine = module.LLM(model=model, max_num_seqs=slots, enable_chunked_prefill=True)
    greedy = module.SamplingParams(temperature=0.0, max_tokens=most_tokens, ignore_eos=True)
    engine.generate(prompts, greedy)  # compiles and captures
    began = time.perf_counter()
    answers = engine.generate(prompts, greedy)
    took = time.perf_counter() - began
    for answer in answers:
        print(f"---\n{answer.prompt}{answer.outputs[0].text}")
    count = sum(len(answer.outputs[0].token_ids) for answer in answers)
    print(f"vllm: {count} tokens in {took:.3f} s, {count / took:.1f} tokens/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-tokens", type=int, default=64, help="tokens of each answer")
    parser.add_argument("--prompt", action="append", help="may be given several times; default: three of Python")
    parser.add_argument("--slots", type=int, default=8, help="sequences at a time")
    parser.add_argument("--budget", type=int, default=256, help="most tokens a step, of our engine")
    parser.add_argument("--engine", choices=("ours", "vllm"), default="ours")
    parser.add_argument("--model", help="what vLLM loads: a folder, or a name that it knows")
    chosen = parser.parse_args()
    prompts = chosen.prompt or list(PROMPTS)
    for flag, found in (("--max-tokens", chosen.max_tokens), ("--slots", chosen.slots), ("--budget", chosen.budget)):
        if found < 1:
            parser.error(f"found {flag} {found}; expected at least 1")
    if not all(prompts):
        parser.error("found an empty --prompt; expected at least one character")
    if chosen.engine == "ours":
        return 1 if ours(prompts, chosen.max_tokens, chosen.slots, chosen.budget) else 0
    if importlib.util.find_spec("vllm") is None:
        parser.error("found no module vllm; expected it for --engine vllm (--engine ours needs nothing)")
    if not chosen.model:
        parser.error("found no --model; expected one for --engine vllm")
    vllm(prompts, chosen.max_tokens, chosen.slots, chosen.model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
