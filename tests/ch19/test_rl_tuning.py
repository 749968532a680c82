"""ch19:rl_tuning: the bandit finds the better arm and says what it lost; and why it gains nothing over the baseline's budget.

Where every step takes as long as any other, the number of steps is the time. They are counted here without a model.
"""

import random
from statistics import mean

import pytest

from common.python.child.sides.loader import import_file
from common.serving.bandit import Bandit
from common.serving.batching import plan
from tests.support.teeth import ROOT

DEFAULT = import_file(ROOT / "ch19/baseline_rl_tuning.py").DEFAULT
BUDGETS = import_file(ROOT / "ch19/optimized_rl_tuning.py").BUDGETS
SHAPE = import_file(ROOT / "ch19/workload_rl_tuning.py").WORKLOAD.time_at


def played(rewards, pulls, noise=0.1, **options):
    """A bandit after `pulls` of arms with the mean `rewards`, which may be a function of the pull."""
    now = [0.0]
    bandit, rng, arms = Bandit(4, plays=2, clock=lambda: now[0], **options), random.Random(1), []
    for pull in range(pulls):
        for _ in range(2):
            arm = bandit.play()
            now[0] += 3.0
            bandit.learn((rewards(pull) if callable(rewards) else rewards)[arm] * rng.uniform(1 - noise, 1 + noise) * 3.0)
        arms.append(arm)
    return bandit, arms


def test_every_arm_is_pulled_once_and_then_mostly_the_best():
    bandit, arms = played((1.0, 3.0, 8.0, 5.0), 300)
    assert arms[:4] == [0, 1, 2, 3]
    assert arms.count(2) > 200
    assert bandit.means()[2] == pytest.approx(8.0, rel=0.05)


def test_regret_is_the_share_lost_to_the_best_arm():
    bandit, arms = played((1.0, 3.0, 8.0, 5.0), 50, noise=0.0)
    lost = sum(8.0 - (1.0, 3.0, 8.0, 5.0)[arm] for arm in arms)
    assert bandit.regret() == pytest.approx(lost / (8.0 * 50))
    assert Bandit(4).regret() == 0.0


def test_what_was_learned_long_ago_is_forgotten():
    _, arms = played(lambda pull: (8.0, 1.0, 1.0, 1.0) if pull < 150 else (1.0, 1.0, 1.0, 8.0), 600, forget=0.97)
    assert arms[60:150].count(0) > 45
    assert arms[450:].count(3) > 75


def steps(seed, budget, stepped=lambda tokens: None):
    """How many steps a trace of the timed shape takes, all of whose requests come at once."""
    rng, count = random.Random(seed), 0
    drawn = {name: [rng.randint(SHAPE[name] // 4, SHAPE[name]) for _ in range(SHAPE["requests"])] for name in ("prompt", "longest")}
    waiting = [[prompt, answer] for prompt, answer in zip(drawn["prompt"], drawn["longest"], strict=True)]
    running = []
    while waiting or running:
        free = SHAPE["slots"] - len(running)
        running, waiting = running + waiting[:free], waiting[free:]
        counts = plan([left for left, _ in running], budget())
        for request, taken in zip(running, counts, strict=True):
            request[0] -= taken
            if not request[0]:  # a token is said, and has to be computed next
                request[:] = 1, request[1] - 1
        running = [request for request in running if request[1]]
        count += 1
        stepped(sum(counts))
    return count


def test_no_budget_saves_many_steps_over_the_default_and_a_small_one_costs_many():
    default = mean(steps(seed, lambda: DEFAULT) for seed in range(4))
    assert 0.9 * default < mean(steps(seed, lambda: None) for seed in range(4)) <= default
    assert mean(steps(seed, lambda: 64) for seed in range(4)) > 3 * default


def test_a_bandit_that_learned_is_near_the_default():
    now = [0.0]
    bandit = Bandit(len(BUDGETS), clock=lambda: now[0])

    def stepped(tokens):
        now[0] += 1.0
        bandit.learn(tokens)

    tuned = [steps(seed, lambda: BUDGETS[bandit.play()], stepped) for seed in range(12)][4:]
    default = mean(steps(seed, lambda: DEFAULT) for seed in range(4, 12))
    assert 0.93 * default < mean(tuned) < 1.07 * default
