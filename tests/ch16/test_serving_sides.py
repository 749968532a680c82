"""Random traces against the sides of this chapter that serve: each request gets its tokens, and they are the model's."""

import random

import pytest
import torch

from common.python.child.sides.loader import load_side, load_workload
from common.python.project import PROJECT_ROOT
from tests.ch15.test_serving_sides import LONGEST, PROMPT, TARGET, WEIGHTS, Clients

SIDES = {
    "optimized_radix_attention": (
        {"slots": 3, "blocks": 4},
        {"slots": 2, "blocks": 9},
        {"slots": 4, "blocks": 13},
        {"slots": 4, "blocks": 40},
    ),
    "optimized_monitoring": ({"slots": 3},),
    "baseline_monitoring": ({"slots": 3},),
}
TRACES = 24  # of each shape


@pytest.mark.parametrize("side", SIDES)
def test_random_traces_are_answered(side):
    torch.set_num_threads(1)
    folder = PROJECT_ROOT / "ch16"
    loaded = load_side(folder / f"{side}.py", load_workload(folder / f"workload_{side.split('_', 1)[1]}.py"), None)
    rng, clients, reported = random.Random(side), Clients(), {}
    given = {"arrivals": clients, "emit": clients.emit, "report": lambda name, metric: reported.setdefault(name, []).append(metric.value)}
    for shape in SIDES[side]:
        model = {"weights": WEIGHTS, "config": TARGET, "device": torch.device("cpu")}
        serve = loaded.prepare({**given, **model}, {**shape, "prompt": PROMPT, "longest": LONGEST})
        for _ in range(TRACES):
            clients.begin(random.Random(rng.random()))
            serve()
            clients.require_right()
    if "radix" in side:
        hits, most = reported["hit_rate"], reported["hit_rate_of_trace"]
        assert max(hits) > 0.2
        assert sum(most) > 0.5 * sum(hits)


def test_figures_that_are_gathered_late_are_those_of_every_step():
    torch.set_num_threads(1)
    folder, seen = PROJECT_ROOT / "ch16", {}
    for side in ("baseline_monitoring", "optimized_monitoring"):
        loaded = load_side(folder / f"{side}.py", load_workload(folder / "workload_monitoring.py"), None)
        clients, reported = Clients(), {}
        given = {"arrivals": clients, "emit": clients.emit, "report": lambda name, metric, kept=reported: kept.update({name: metric.value})}
        model = {"weights": WEIGHTS, "config": TARGET, "device": torch.device("cpu")}
        serve = loaded.prepare({**given, **model}, {"slots": 3, "prompt": PROMPT, "longest": LONGEST})
        clients.begin(random.Random(5))
        serve()
        seen[side] = [reported[name] for name in ("page_lines", "surprisal_p95")]
    assert seen["baseline_monitoring"] == seen["optimized_monitoring"]
    assert seen["baseline_monitoring"][1] > 0
