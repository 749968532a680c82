"""Chapter 12's pairs: sides differ in their idea alone, and what their answers rest on holds."""

import heapq
import itertools
import re

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from common.python.child.sides.loader import import_file, load_workload
from tests.support.cuda_sides import kernels_of, values_at
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch12"
SMS = 132  # of a Hopper


def side(name):
    return (CHAPTER / name).read_text()


def kernels(text):
    """The body of each kernel and device function of a source, by name."""
    text = re.sub(r"__launch_bounds__\(\w+\)", "", text)
    found = re.finditer(r"^__(?:global|device)__ [^(]*?\b(\w+)\([^{;]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    return {match[1]: match[2] for match in found}


DIFFERENT = {  # the kernels in which the idea is; all others are the same in both sides
    "cuda_graphs_conditional": {"decide"},
    "cuda_graphs_router": {"route"},
    "dynamic_parallelism": {"begin", "expand"},
    "work_queue": {"walk"},
    "batch_atomics": {"compact"},
    "programmatic_dependent_launch": {"layer"},
    "graph_parameters": set(),
}


@pytest.mark.parametrize("pair", DIFFERENT)
def test_sides_share_every_kernel_but_those_of_the_idea(pair):
    baseline, optimized = (kernels(side(f"{role}_{pair}.cu")) for role in ("baseline", "optimized"))
    shared = baseline.keys() - DIFFERENT[pair]
    assert {name: optimized[name] for name in shared} == {name: baseline[name] for name in shared}
    assert baseline.keys() <= optimized.keys()
    assert all(baseline[name] != optimized[name] for name in DIFFERENT[pair])
    constants = [re.findall(r"^constexpr .*", side(f"{role}_{pair}.cu"), re.MULTILINE) for role in ("baseline", "optimized")]
    assert constants[0] == constants[1]


DIFFERENT_IN_STEPS = {  # the kernels in which a step differs from the baseline
    "cuda_graphs_conditional_eight_rounds": {"begin", "decide"},
    "cuda_graphs_router_all_layers": {"layer"},
    "dynamic_parallelism_fixed_grid": {"expand"},
    "work_queue_block_per_task": set(),
}


@pytest.mark.parametrize("name", DIFFERENT_IN_STEPS)
def test_a_step_changes_the_kernels_of_its_idea_alone(name):
    (pair,) = (pair for pair in DIFFERENT if name.startswith(f"{pair}_"))
    baseline, step = (kernels(side(file)) for file in (f"baseline_{pair}.cu", f"optimized_{name}.cu"))
    assert load_workload(CHAPTER / f"workload_{pair}.py").ladder == (name.removeprefix(f"{pair}_"),)
    assert baseline.keys() == step.keys()
    assert {kernel for kernel, body in baseline.items() if step[kernel] != body} == DIFFERENT_IN_STEPS[name]


@pytest.mark.parametrize("graphs", [1, 2, 3])
def test_eight_rounds_counts_up_to_the_first_that_changes_nothing(graphs):
    """`decide`, read as Python, for every number of rounds that this many graphs have."""
    body = kernels(side("optimized_cuda_graphs_conditional_eight_rounds.cu"))["decide"].replace("*", "").replace(";", "")
    for needed in range(8 * (graphs - 1) + 1, 8 * graphs + 1):
        flags, launched = {"again": 1, "rounds": 0}, 0
        while flags["again"]:
            launched += 1
            for done in range(8 * (launched - 1) + 1, 8 * launched + 1):
                flags["changed"] = int(done < needed)
                exec("\n".join(line.strip() for line in body.splitlines()), flags)
        assert (flags["rounds"], launched) == (needed, graphs)


@pytest.mark.parametrize("architecture", ["90a", "100a"])
def test_the_condition_is_set_by_a_call_on_the_device(architecture):
    names = ("optimized_cuda_graphs_conditional", "optimized_cuda_graphs_conditional_eight_rounds")
    found = [kernel for name in names for kernel in kernels_of(CHAPTER / f"{name}.cu", architecture) if "decide" in kernel.name]
    assert [sum("CALL.ABS.NOINC" in text for text in kernel.instructions) for kernel in found] == [1, 0]


@pytest.mark.parametrize("architecture", ["90a", "100a"])
def test_weights_are_loaded_before_the_wait_and_activations_behind_it(architecture):
    (layer,) = kernels_of(CHAPTER / "optimized_programmatic_dependent_launch.cu", architecture)
    found = [text.split()[0] for text in layer.instructions if text.startswith(("ACQBULK", "PREEXIT", "LDG"))]
    assert [name.partition(".")[0] for name in found] == ["PREEXIT", *8 * ["LDG"], "ACQBULK", *8 * ["LDG"]]


def test_the_rounds_of_a_grid_depend_on_its_values():
    workload = load_workload(CHAPTER / "workload_cuda_graphs_conditional.py")
    generator = torch.Generator().manual_seed(1)
    rounds = {int(workload.reference(torch.rand(40, 67, generator=generator), 40, 67)[1]) for _ in range(8)}
    assert len(rounds) > 2


def test_every_expert_is_chosen_and_counted():
    workload = load_workload(CHAPTER / "workload_cuda_graphs_router.py")
    _, counts = workload.reference(**values_at(workload, {"tokens": 64, "dim": 64}))
    assert int(counts.sum()) == 64
    assert all(counts > 0)


def test_a_search_fits_the_levels_that_launches_may_be_nested():
    workload = load_workload(CHAPTER / "workload_dynamic_parallelism.py")
    levels = int(re.search(r"LEVELS = (\d+)", side("optimized_dynamic_parallelism.cu"))[1])
    for seed in range(5):
        edge = torch.randint(0, 1 << 16, (1 << 16, 4), generator=torch.Generator().manual_seed(seed))
        assert 10 < int(workload.reference(edge, 1 << 16).max()) + 2 < levels
    for shape in workload.check_at:
        assert int(workload.reference(values_at(workload, shape)["edge"], shape["nodes"]).max()) + 2 < levels


def test_a_queue_leaves_five_percent_of_imbalance_and_gains_although_each_ticket_costs_six_steps():
    workload = load_workload(CHAPTER / "workload_work_queue.py")
    steps = values_at(workload, workload.time_at)["steps"].tolist()
    mean, fixed = sum(steps) / SMS, max(sum(steps[block::SMS]) for block in range(SMS))
    assert queued(steps, ticket=0) < 1.07 * mean
    assert fixed > 1.2 * queued(steps, ticket=6)


def test_two_blocks_at_an_sm_leave_nine_percent_of_imbalance():
    workload = load_workload(CHAPTER / "workload_work_queue.py")
    steps = values_at(workload, workload.time_at)["steps"].tolist()
    assert 1.07 < shared_by_two(steps) / (sum(steps) / SMS) < 1.11


def shared_by_two(steps):
    """Steps until the last SM is done, if each halves its speed between two tasks, of which it takes the next when one ends."""
    waiting = iter(steps)
    running = [[next(waiting), next(waiting)] for _ in range(SMS)]
    ends = [(2 * min(two), sm) for sm, two in enumerate(running)]
    heapq.heapify(ends)
    while ends:
        now, sm = heapq.heappop(ends)
        done = min(running[sm])
        running[sm] = [left - done for left in running[sm] if left > done] + [
            step for left in running[sm] if left == done for step in itertools.islice(waiting, 1)
        ]
        if running[sm]:
            heapq.heappush(ends, (now + len(running[sm]) * min(running[sm]), sm))
    return now


def queued(steps, ticket):
    """Steps until the last block of a queue is done, if every task costs `ticket` steps more."""
    free_at = [0] * SMS
    for step in steps:
        heapq.heapreplace(free_at, free_at[0] + step + ticket)
    return max(free_at)


@pytest.mark.parametrize("shape", load_workload(CHAPTER / "workload_batch_atomics.py").check_at)
def test_sums_of_a_list_tell_a_value_that_is_missing_repeated_or_another(shape):
    workload = load_workload(CHAPTER / "workload_batch_atomics.py")
    x = values_at(workload, shape)["x"]
    right = workload.reference(x)
    limit = import_file(CHAPTER / "workload_batch_atomics.py").BELOW
    kept = x[x < limit]
    if not len(kept):
        return
    for wrong in (kept[1:], torch.cat([kept, kept[:1]]), torch.cat([kept[1:], (kept[:1] + 1) % limit])):
        assert any(bool((a != b).any()) for a, b in zip(workload.reference(wrong), right, strict=True))


def test_batches_change_size_and_some_are_larger_than_any_bucket():
    workload, optimized = (import_file(CHAPTER / f"{name}_graph_update.py") for name in ("workload", "optimized"))
    timed = workload.sizes_of(**{key: workload.WORKLOAD.time_at[key] for key in ("batches", "most")})
    assert max(timed) <= optimized.BUCKETS[0]
    assert all(a != b for a, b in itertools.pairwise(timed))
    checked = [workload.sizes_of(shape["batches"], shape["most"]) for shape in workload.WORKLOAD.check_at]
    assert max(itertools.chain(*checked)) > optimized.BUCKETS[0]


@pytest.mark.parametrize("size", [1, 2, 3, 33, 64, 65])
def test_padding_changes_nothing(size):
    optimized = import_file(CHAPTER / "optimized_graph_update.py")
    x, weight = torch.randn(2 * size, 8, dtype=torch.float64), torch.randn(2, 8, 8, dtype=torch.float64)
    step = optimized.prepare(x, weight, [size, size])
    expected = [torch.relu(torch.relu(batch @ weight[0]) @ weight[1]) for batch in x.split(size)]
    assert torch.allclose(step(), torch.cat([batch - batch.mean(0) for batch in expected]))


class Operators(TorchDispatchMode):
    """Counts the operators that would each be a kernel on a GPU: all but views, allocations and scalars."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        words = ("split", "slice", "select", "view", "unbind", "detach", "empty", "scalar_tensor")
        self.count += not any(word in str(function) for word in words)
        return function(*arguments, **(options or {}))


@pytest.mark.parametrize(("name", "beside_layers"), [("baseline", 2), ("optimized", 8)])
@pytest.mark.parametrize("layers", [1, 5])
def test_a_batch_has_as_many_operators_as_are_predicted(name, beside_layers, layers):
    """Two per layer and a few more. The baseline launches each; of the optimized side's 8, three copies are outside of the graph."""
    prepare = import_file(CHAPTER / f"{name}_graph_update.py").prepare
    step = prepare(torch.randn(9, 8), torch.randn(layers, 8, 8), [3, 2, 4])
    with Operators() as operators:
        step()
    assert operators.count == 3 * (2 * layers + beside_layers)


@pytest.mark.parametrize(("pair", "step"), [("graph_parameters", "instantiate"), ("graph_update", "recapture")])
def test_a_graph_for_a_single_launch_is_a_step_and_the_baseline_launches_without_one(pair, step):
    texts = {path.stem: path.read_text().lower() for path in CHAPTER.glob(f"*_{pair}*")}
    assert load_workload(CHAPTER / f"workload_{pair}.py").ladder == (step,)
    assert "cudagraph" in texts[f"optimized_{pair}_{step}"]
    assert "cudagraph" not in texts[f"baseline_{pair}"]
