"""Optimized: a bandit tunes a step's budget; a default is as good."""
# guess: 1x, in output_tokens_per_s: a finding, for answers set the number of steps with the default's budget as with the bandit's best

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
        report("best_budget", Metric(BUDGETS[means.index(max(means))], "tokens", "neither"))

    return serve
