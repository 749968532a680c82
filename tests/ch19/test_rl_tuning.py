"""ch19:rl_tuning: the bandit finds the better arm and says what it lost."""

import random

import pytest

from common.serving.bandit import Bandit


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
