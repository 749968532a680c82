"""Schedules of messages leave every GPU the sum and send across domains what the page says; the simulation prices them as by hand."""

import pytest
import torch

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch04"
hierarchy = import_file(CHAPTER / "shared_hierarchy.py")
simulation = import_file(CHAPTER / "nvl72_simulation.py")


def grouped(domains, gpus):
    return [list(range(first, first + gpus)) for first in range(0, domains * gpus, gpus)]


def carried_out(rounds, gpus, elements):
    """What each GPU has in the end, if GPU g begins with (g + 1) * [1, 2, ...], and the elements that crossed between the halves."""
    held = torch.outer(torch.arange(1.0, gpus + 1), torch.arange(1.0, elements + 1))
    crossed = 0
    for messages in rounds:
        before = held.clone()  # the messages of a round are sent at the same time
        for message in messages:
            part = slice(*message.span)
            crossed += (message.source < gpus // 2) != (message.target < gpus // 2) and part.stop - part.start
            held[message.target, part] = before[message.source, part] + (before[message.target, part] if message.adds else 0)
    return held, crossed


@pytest.mark.parametrize("elements", [1, 7, 65, 144])
@pytest.mark.parametrize(("domains", "gpus"), [(1, 2), (2, 1), (2, 2), (2, 4), (3, 4), (9, 2)])
def test_every_gpu_has_the_sum(domains, gpus, elements):
    groups = grouped(domains, gpus)
    ranks = domains * gpus
    expected = torch.arange(1.0, elements + 1).repeat(ranks, 1) * ranks * (ranks + 1) / 2
    schedules = [hierarchy.hierarchical(groups, elements), *(hierarchy.flat(groups, elements, rings) for rings in range(1, gpus + 1))]
    for rounds in schedules:
        held, _ = carried_out(rounds, ranks, elements)
        assert torch.equal(held, expected)


@pytest.mark.parametrize(("gpus", "ring_bytes", "rounds"), [(2, 12, 4), (4, 14, 8), (36, 8 * 2 * 71 / 72, 72)])
def test_what_crosses_two_domains(gpus, ring_bytes, rounds):
    groups, elements = grouped(2, gpus), 72 * 8
    _, crossed = carried_out(hierarchy.flat(groups, elements), 2 * gpus, elements)
    assert 4 * crossed / elements == pytest.approx(ring_bytes)
    hierarchical = hierarchy.hierarchical(groups, elements)
    _, crossed = carried_out(hierarchical, 2 * gpus, elements)
    assert 4 * crossed / elements == 8
    assert len(hierarchical) == rounds


def test_domains_of_two_sizes_are_refused():
    with pytest.raises(ValueError, match="domains of 1 and 2 GPUs; expected one size"):
        hierarchy.hierarchical([[0], [1, 2]], 8)


def test_a_price_by_hand():
    links = simulation.LINKS
    found = simulation.simulated(2, 2, "nvlink5", "infiniband_400", 4_000_000)  # 16 MB a GPU
    nvlink, infiniband = links["nvlink5"], links["infiniband_400"]
    seconds, crossing = found["hierarchical"]
    # Inside: two rounds of 8 MB. Across: two rounds of 4 MB, by each GPU's own link.
    assert seconds == pytest.approx(2 * (nvlink.latency + 8e6 / nvlink.rate) + 2 * (infiniband.latency + 4e6 / infiniband.rate))
    assert crossing == 32e6
    seconds, crossing = found["one ring"]
    assert seconds == pytest.approx(6 * (infiniband.latency + 4e6 / infiniband.rate))  # in each round some message crosses
    assert crossing == 48e6


def test_it_says_that_it_is_a_simulation(capsys):
    assert simulation.main(["--megabytes", "72"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("SIMULATED, not measured: ")
    assert len(out.splitlines()) == 1 + 3 * len(simulation.LAYOUTS)


def test_a_size_of_nothing_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        simulation.main(["--megabytes", "0"])
    assert "--megabytes: found 0; expected at least 1" in capsys.readouterr().err
