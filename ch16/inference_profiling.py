"""Where an engine's time goes: a prompt and decode steps of the byte model under torch.profiler, with a range for each phase.

./setup.sh python ch16/inference_profiling.py [--width 1] [--layers 4] [--prompt 128] [--steps 8] [--trace FILE]

Prints, for prefill and decode, the host's time and, on a GPU, the kernels' time: a decode step whose kernels take less than the host
is host-bound. --trace writes a Chrome trace. The ranges `prefill` and `decode` are NVTX ranges too: `nsys profile -t cuda,nvtx` shows them.
"""

import argparse

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from common.models.config import byte_lm
from common.models.decoder import init
from common.models.grow import grown_config
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

PHASES = ("prefill", "decode")


class Phase:
    """A range of the profiler's and of NVTX."""

    def __init__(self, name, on_gpu):
        self._name, self._on_gpu, self._range = name, on_gpu, record_function(name)

    def __enter__(self):
        if self._on_gpu:
            torch.cuda.nvtx.range_push(self._name)
        self._range.__enter__()

    def __exit__(self, *error):
        self._range.__exit__(*error)
        if self._on_gpu:
            torch.cuda.nvtx.range_pop()


def profiled(width, layers, prompt, steps, device):
    """The profile of one prompt and its decode steps, after one of each to warm up."""
    config = grown_config(byte_lm(), width=width, layers=layers - byte_lm().layers)
    weights = init(config, torch.Generator(device).manual_seed(0))
    blocks = KvBlocks(config, blocks=2 * -(-(prompt + steps) // 16), device=device)
    on_gpu = device.type == "cuda"

    def serve(name, count):
        last = torch.arange(prompt, device=device) % config.vocabulary
        for number in range(count + 1):
            with Phase(PHASES[number > 0], on_gpu):
                last = step(weights, config, blocks, [name], [last]).argmax(-1)
        blocks.release(name)

    serve("warm", 1)
    with profile(activities=[ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * on_gpu]) as found:
        serve("profiled", steps)
        if on_gpu:
            torch.cuda.synchronize()
    return found


def phases(found):
    """By phase: how often, the host's time and the kernels' time in ms, all of them together."""
    averages = {event.key: event for event in found.key_averages() if event.key in PHASES and event.cpu_time_total}
    return {name: (averages[name].count, averages[name].cpu_time_total / 1e3, averages[name].device_time_total / 1e3) for name in PHASES}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=1, choices=(1, 4, 16), help="times as wide as byte_lm")
    parser.add_argument("--layers", type=int, default=4, help="at least byte_lm's 4")
    parser.add_argument("--prompt", type=int, default=128, help="tokens")
    parser.add_argument("--steps", type=int, default=8, help="decode steps")
    parser.add_argument("--trace", help="where to write a Chrome trace")
    chosen = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if chosen.layers < byte_lm().layers or min(chosen.prompt, chosen.steps) < 1:
        parser.error(f"found {chosen.layers} layers; expected at least {byte_lm().layers}, and at least one token and one step")
    found = profiled(chosen.width, chosen.layers, chosen.prompt, chosen.steps, device)
    print(f"{'phase':<10}{'calls':>6}{'host ms':>10}{'kernel ms':>11}")
    for name, (count, host, kernels) in phases(found).items():
        print(f"{name:<10}{count:>6}{host:>10.2f}{kernels:>11.2f}")
    if chosen.trace:
        found.export_chrome_trace(chosen.trace)


if __name__ == "__main__":
    main()
