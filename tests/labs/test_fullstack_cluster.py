"""labs/fullstack_cluster:09_end_to_end: its claim of concatenations by what PyTorch dispatches, and a training that moves no weight."""

import copy

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from common.python.child.sides.inputs import Rand, leaves
from common.python.pairs.claims import read_claims
from common.python.pairs.directives import read_directives
from common.python.processes.messages import Launch
from common.python.prove.proofs import Seen, prove
from tests.pairs.wrong_answers import cases_of
from tests.support.chapters import modules_of
from tests.support.teeth import ROOT

LAB = ROOT / "labs/fullstack_cluster"
SIDE = LAB / "optimized_09_end_to_end.py"
SIZES = {"width": 32, "sequences": 1, "batch": 1, "context": 16, "heads": 4, "kv_heads": 2, "dim": 8, "rows": 64, "inner": 64}
NUMBERS = ("layers", "tokens")  # which decide how often something is concatenated


class Concatenations(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function.overloadpacket is torch.ops.aten.cat
        return function(*args, **(kwargs or {}))


@pytest.fixture
def concatenated(monkeypatch, tmp_path):
    """How often each side's step concatenates, with as many layers and tokens as are timed, and all else small."""
    with modules_of(ROOT / "ch20", monkeypatch), modules_of(LAB, monkeypatch):
        from shared_chapter20 import job
        from workload_09_end_to_end import WORKLOAD

        small = {name: value if name.endswith(NUMBERS) else SIZES[name.split("_", 1)[1]] for name, value in WORKLOAD.time_at.items()}

        def count(kind):
            given = WORKLOAD.inputs(Rand(0, torch.device("cpu"), tmp_path), **small) | small
            step = job(kind, given)
            step()
            with Concatenations() as seen:
                step()
            return seen.count

        return {kind: count(kind) for kind in ("baseline", "optimized")}


def launched(count):
    sizes = {"grid": (1, 1, 1), "block": (1, 1, 1), "cluster": 1, "shared_bytes": 0, "registers": None, "occupancy_percent": None}
    return Seen(launches=tuple(Launch(kernel="CatArrayBatchedCopy", call=i, in_graph=True, **sizes) for i in range(count)))


def proof(baseline, optimized):
    (claim,) = (each for each in read_claims(SIDE, read_directives(SIDE)) if "CatArray" in each.text)
    return prove(claim, "optimized", {"baseline": {"90a": launched(baseline)}, "optimized": {"90a": launched(optimized)}}).state


def test_a_training_step_concatenates_on_both_sides_and_the_cache_on_one(concatenated):
    assert concatenated == {"baseline": 36, "optimized": 20}
    assert proof(**concatenated) == "proven"


def test_a_cache_that_is_made_anew_for_some_tokens_is_refused():
    assert proof(36, 22) == "failed"


@pytest.fixture
def left_by_training(monkeypatch, tmp_path):
    """A check case, and what a job leaves there whose training stage writes its weights, or writes all but them."""
    with modules_of(ROOT / "ch20", monkeypatch), modules_of(LAB, monkeypatch):
        from shared_chapter20 import job
        from workload_09_end_to_end import WORKLOAD

        (case,) = cases_of(WORKLOAD, WORKLOAD.check_at[:1], tmp_path)

        def left(moves):
            given = copy.deepcopy(case.values)
            weights = given["training_weights"]
            step, first = job("baseline", given | case.shape), [weight.clone() for weight in weights]
            for _ in range(WORKLOAD.steps):
                returned = step()
                if not moves:
                    for weight, old in zip(weights, first, strict=True):
                        weight.data.copy_(old)
            state = [leaf.detach() for name, leaf in leaves(given) if WORKLOAD.may_change(name)]
            return (*(each.detach() for each in returned), *state)

        return case, left


def test_a_training_stage_that_leaves_its_weights_alone_is_refused(left_by_training):
    case, left = left_by_training
    assert case.refuses(left(moves=False), "optimized")


def test_a_training_stage_that_moves_its_weights_is_taken(left_by_training):
    case, left = left_by_training
    assert not case.refuses(left(moves=True), "optimized")
