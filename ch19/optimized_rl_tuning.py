"""Optimized: a bandit picks a step's budget by what it gave."""
# guess: 2x, in output_tokens_per_s: 960 steps for prompts become about 300, and a third of the steps try other budgets

import torch

from common import Metric
from common.serving.bandit import Bandit
from common.serving.batching import Batcher

BUDGETS = (16, 64, 256, 1024)


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    engine = Batcher(weights, config, slots, prompt + longest, device)
    bandit = Bandit(len(BUDGETS))  # it keeps what it learned from one trace to the next

    def choose(decoding):
        return BUDGETS[bandit.play()]

    def learn(tokens):
        if device.type == "cuda":
            torch.cuda.current_stream().synchronize()  # or a step would seem to take as long as its launches
        bandit.learn(tokens)

    def serve():
        engine.serve(arrivals, emit, choose, learn)
        means = bandit.means()
        report("regret", Metric(100 * bandit.regret(), "%", "lower"))
        report("best_budget", Metric(BUDGETS[means.index(max(means))], "tokens", "higher"))

    return serve
