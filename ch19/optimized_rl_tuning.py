"""Optimized: a bandit picks a step's budget by what it gave."""
# guess: 2x, in output_tokens_per_s: 960 steps for prompts become about 300, and a third of the steps try other budgets

from shared_knobs import BUDGETS, server

from common import Metric
from common.serving.bandit import Bandit


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    bandit = Bandit(len(BUDGETS))  # it keeps what it learned from one trace to the next
    serve = server(weights, config, slots, prompt + longest, lambda: BUDGETS[bandit.play()], bandit.learn, arrivals, emit, device)

    def served():
        serve()
        means = bandit.means()
        report("regret", Metric(100 * bandit.regret(), "%", "lower"))
        report("best_budget", Metric(BUDGETS[means.index(max(means))], "tokens", "higher"))

    return served
