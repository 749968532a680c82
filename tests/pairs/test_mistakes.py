"""Mistakes that a tolerance derived from an error's deviation still refuses at one check shape; the right answer passes."""

import pytest
import torch

from common.python.child.sides.compare import compare
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from tests.pairs.wrong_answers import cases_of
from tests.support.teeth import CPU, ROOT

MIXTURES = ("ch16/workload_gpt_oss_120b_inference.py", "labs/ultimate_moe_inference/workload_layer1_basics.py")
HEAD = "labs/fast_nanochat/workload_fast_nanochat_warp_specialized.py"
FP8_TRAINING = "ch19/workload_fp8_training.py"
DISTRIBUTED_TRAINING = "labs/distributed_training/workload_distributed_training.py"


def with_scales(values, change):
    """The inputs with `change` made to the scales of all experts' matrices."""
    packed = [{name: [blocks, change(scales), bias] for name, (blocks, scales, bias) in layer.items()} for layer in values["packed"]]
    return values | {"packed": packed}


WRONG_MIXTURES = {
    "the next expert": lambda values: values | {"chosen": (values["chosen"] + 1) % 8},
    "one token's last expert": lambda values: values | {"chosen": last_expert_changed(values["chosen"])},
    "the neighbour's scale": lambda values: with_scales(values, lambda scales: scales.roll(1, -1)),
    "a power of two off": lambda values: with_scales(values, lambda scales: scales + 1),
    "keys of the position before": lambda values: values | {"keys": values["keys"].roll(1, 3)},
    "the layers' caches swapped": lambda values: values | {"values": values["values"].flip(0)},
}
WRONG_HEADS = {
    "the row before": lambda values: values | {"weights": values["weights"].roll(1, 0)},
    "an element before": lambda values: values | {"x": values["x"].roll(1, 0)},
    "the last product dropped": lambda values: values | {"x": torch.cat((values["x"][:-1], torch.zeros_like(values["x"][-1:])))},
}


def last_expert_changed(chosen):
    """Experts of which only those in the last slot of the first layer's first token are others: one that the token has not."""
    other = chosen.clone()
    other[0, 0, -1] = next(expert for expert in range(8) if expert not in chosen[0, 0].tolist())
    return other


def case_of(path, folder, position):
    """The inputs and the right answer at the check shape of that position, and the workload's tolerance."""
    workload = load_workload(ROOT / path)
    (case,) = cases_of(workload, [workload.check_at[position]], folder)
    return case, workload.tolerance("baseline")


def refused(found, case, tolerance):
    return any(compare("", *both, tolerance)[1] for both in zip(found, case.right, strict=True))


@pytest.mark.parametrize("path", MIXTURES)
def test_mistakes_of_a_mixture_are_refused(path, tmp_path):
    case, tolerance = case_of(path, tmp_path, 0)
    assert not refused(tuple(right.to(torch.bfloat16) for right in case.right), case, tolerance)
    taken = [label for label, make in WRONG_MIXTURES.items() if not refused(case.answer(make(case.values)), case, tolerance)]
    assert taken == []
    one_layer = type(case)(case.workload, case.shape | {"layers": 1}, case.values, case.right)
    assert refused(one_layer.answer(case.values), case, tolerance)


@pytest.mark.parametrize("position", [2, 3])
def test_mistakes_of_the_head_are_refused(position, tmp_path):
    case, tolerance = case_of(HEAD, tmp_path, position)
    summed = case.values["weights"].float() @ case.values["x"].float()
    assert not refused((summed,), case, tolerance)
    assert [label for label, make in WRONG_HEADS.items() if not refused(case.answer(make(case.values)), case, tolerance)] == []
    assert refused((summed.to(torch.bfloat16),), case, tolerance)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_mistakes_of_gradients_are_refused(position, tmp_path):
    workload = load_workload(ROOT / FP8_TRAINING)
    case, _ = case_of(FP8_TRAINING, tmp_path, position)
    tolerance = workload.tolerance("optimized")
    loss, *gradients = case.right
    assert not refused((loss, *(each.to(torch.bfloat16) for each in gradients)), case, tolerance)
    q, k, *others = gradients
    assert refused((loss, k, q, *others), case, tolerance)
    for nth in range(len(gradients)):
        without = (*gradients[:nth], torch.zeros_like(gradients[nth]), *gradients[nth + 1 :])
        assert refused((loss, *without), case, tolerance)


def test_a_scale_off_by_more_than_rounding_is_refused(tmp_path):
    workload = load_workload(ROOT / "labs/one_kernel_many_languages/workload_one_kernel_many_languages.py")
    (case,) = cases_of(workload, [workload.check_at[2]], tmp_path)
    y, scale = case.right
    y = y.float().to(torch.float8_e4m3fn)
    assert not case.refuses((y, scale * (1 + 2.0**-8)), "optimized")
    assert case.refuses((y, scale * 1.02), "optimized")
    assert case.refuses((y, scale.float().to(torch.float8_e4m3fn)), "optimized")


def in_e4m3(values, dim):
    """`values` rounded to e4m3 by the largest of them along `dim`, and the scales to multiply by."""
    scale = values.abs().amax(dim, keepdim=True) / 448
    return (values / scale).to(torch.float8_e4m3fn).double(), scale


def test_mistakes_of_scales_are_refused(tmp_path):
    workload = load_workload(ROOT / "ch13/workload_fp8_per_channel.py")
    (case,) = cases_of(workload, [workload.check_at[0]], tmp_path)
    x, w = (case.values[name].double() for name in "xw")

    def is_refused(x, w):
        found = torch.nn.functional.rms_norm((x @ w.T).to(torch.bfloat16), (len(w),))
        return refused((found,), case, workload.tolerance("optimized"))

    rows, scales = in_e4m3(x, 1)
    channels, scales_of_channels = in_e4m3(w, 1)
    whole, scale = in_e4m3(x, (0, 1))
    assert not is_refused(rows * scales, channels * scales_of_channels)
    assert not is_refused(rows, channels * scales_of_channels)  # the norm cancels a token's scale
    assert is_refused(whole * scale, channels * scales_of_channels)  # a spike spoils all tokens
    assert is_refused(rows * scales, channels)  # a channel's scale is left out
    assert is_refused(rows * scales, channels * scales_of_channels.roll(1, 0))  # the channel before's


class Replicas:
    """Each rank's own gradients at a check shape of distributed_training, and what rank 0 has after they travelled as e4m3 blocks."""

    def __init__(self, position, ranks, folder):
        self.workload = load_workload(ROOT / DISTRIBUTED_TRAINING)
        self.shape, self.ranks = self.workload.check_at[position], ranks
        self.inputs = [Inputs(self.workload, self.shape, 1, CPU, folder, (rank, ranks)) for rank in range(ranks)]
        self.x = [inputs.values["x"].double() for inputs in self.inputs]
        self.right = self.averaged(self.x)
        self.parts = [self.averaged([x if rank == peer else torch.zeros_like(x) for rank, x in enumerate(self.x)]) for peer in range(ranks)]

    def averaged(self, xs):
        """Rank 0's loss, and the mean of all ranks' gradients where rank by rank `xs` are the micro-batches; a rank of zeros adds none."""

        def shards(peer):
            layers = [{name: weight.double() for name, weight in layer.items()} for layer in self.inputs[peer].values["weights"]]
            return {"x": xs[peer], "weights": layers}

        return self.workload.reference(shards, self.ranks, 0, self.shape["micro"], self.shape["loss_scale"])

    def reduced(self, change=lambda rank, scales: scales):
        """The right loss, and the mean of e4m3 blocks, of whose scales `change` makes others."""

        def mean(nth):
            total = 0
            for rank, part in enumerate(self.parts):
                values, scales = in_e4m3(part[nth].to(torch.bfloat16).view(-1, 128).double(), 1)
                total = total + values * change(rank, scales)
            return total.to(torch.bfloat16).view_as(self.right[nth])

        return (self.right[0], *(mean(nth) for nth in range(1, len(self.right))))

    def refuses(self, found):
        specs = self.inputs[0].answers().values()
        tolerances = (self.workload.tolerance("optimized", spec) for spec in specs)
        return any(compare("", *each)[1] for each in zip(found, self.right, tolerances, strict=True))


def of_last(change):
    """`change` made to the last rank's scales alone."""
    return lambda own: lambda rank, scales: change(scales) if rank == own.ranks - 1 else scales


def first_block(scales, times):
    return torch.cat((scales[:1] * times, scales[1:]))


WRONG_SCALES = {
    "a rank is left out": of_last(torch.zeros_like),
    "a rank's scales are half": of_last(lambda scales: scales / 2),
    "a rank's scales are double": of_last(lambda scales: scales * 2),
    "a block's scale is double": of_last(lambda scales: first_block(scales, 2)),
    "a rank's scales are those of the block before": of_last(lambda scales: scales.roll(1, 0)),
    "a sum, not a mean": lambda own: lambda rank, scales: own.ranks * scales,
}


@pytest.mark.parametrize(("position", "ranks"), [(0, 2), (1, 2), (2, 2), (0, 4)])
def test_mistakes_of_a_reduction_in_e4m3_are_refused(position, ranks, tmp_path):
    own = Replicas(position, ranks, tmp_path)
    assert not own.refuses(own.reduced())
    assert [label for label, change in WRONG_SCALES.items() if not own.refuses(own.reduced(change(own)))] == []
    if own.shape["micro"] > 1:
        without_last = own.averaged([torch.cat((x[:-1], torch.zeros_like(x[-1:]))) for x in own.x])
        assert own.refuses((own.right[0], *without_last[1:]))
        assert own.refuses((without_last[0], *own.right[1:]))
