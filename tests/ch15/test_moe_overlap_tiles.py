"""ch15:moe_overlap_tiles: what its order hides on two streams by the proof of a run, which orders that refuses, and its plans."""

from types import SimpleNamespace

import pytest
import torch

from common.python.child.sides.loader import import_file
from common.python.pairs.claims import parse_claim
from common.python.pairs.directives import read_directives
from common.python.processes.messages import Span
from common.python.project import PROJECT_ROOT
from common.python.prove.proofs import Seen, prove

FILE = PROJECT_ROOT / "ch15/optimized_moe_overlap_tiles.py"
SHARED, EXPERTS, COMBINE = 0.22, 1.2, 0.05  # of a tile, ms: about what the page predicts; a half transfer takes 0.17 there
ALL, ONE, NONE = (True,) * 4, (False, True, False, False), (False,) * 4  # which of the four transfers are not waited for at once


class Streams:
    """Two streams of a GPU, whose host is always ahead: what computes, and NCCL's."""

    def __init__(self, transfer, hidden):
        self.spans = []
        self._now = {"main": 0.0, "nccl": 0.0}
        self._transfer, self._hidden = transfer, list(hidden)

    def computes(self, ms, answer):
        """A stand-in that takes so long."""

        def run(*arguments):
            self._takes("main", ms)
            return answer(*arguments)

        return run

    def all_to_all(self, rows, *_, async_op):
        """A transfer behind what computes now, and behind the transfer before; the work to wait for."""
        assert async_op
        self._now["nccl"] = max(self._now.values())
        end = self._takes("nccl", self._transfer)
        flight = SimpleNamespace(wait=lambda: self._wait(end))
        if not self._hidden.pop(0):
            flight.wait()
        return rows, flight

    def _takes(self, stream, ms):
        start = self._now[stream]
        self._now[stream] = start + ms
        number = list(self._now).index(stream)
        self.spans.append(Span(name=stream, start_ns=1e6 * start, end_ns=1e6 * (start + ms), stream=number))
        return start + ms

    def _wait(self, end):
        self._now["main"] = max(self._now["main"], end)


def proven(monkeypatch, transfer, hidden):
    """What the side's claim comes to where a half transfer takes `transfer` ms."""
    side, streams = import_file(FILE), Streams(transfer, hidden)
    batch = SimpleNamespace(order=torch.arange(2), sent=None, received=None)
    stand_ins = {
        "plan_tiles": lambda *_: [batch, batch],
        "all_to_all": streams.all_to_all,
        "swiglu": streams.computes(SHARED, lambda x, *_: x),
        "run_experts": streams.computes(EXPERTS, lambda rows, *_: rows),
        "combine": streams.computes(COMBINE, lambda rows, *_: rows),
        "group": SimpleNamespace(WORLD=None),
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(side, name, stand_in)
    x = torch.arange(4.0)[:, None]
    y = side.prepare(x, x, x, [], [], None, None, top=1)()
    assert len(y) == 4
    claims = [parse_claim(text, separates=True) for text in read_directives(FILE).proves]
    (claim,) = (claim for claim in claims if claim.measure.kind == "overlap")
    one_stream = Seen(spans=(Span(name="main", start_ns=0, end_ns=1),))
    seen = Seen(spans=tuple(streams.spans))
    return prove(claim, "optimized", {"baseline": {"90a": one_stream}, "optimized": {"90a": seen}})


@pytest.mark.parametrize("transfer", [0.05, 0.17, 0.5])
def test_the_side_hides_more_than_it_claims_also_where_transfers_are_slow(monkeypatch, transfer):
    assert proven(monkeypatch, transfer, ALL).state == "proven"


@pytest.mark.parametrize("transfer", [0.05, 0.17, 0.5])
@pytest.mark.parametrize("hidden", [NONE, ONE], ids=["the baseline's order", "one transfer of four"])
def test_tiles_whose_transfers_are_waited_for_at_once_are_refused(monkeypatch, transfer, hidden):
    assert proven(monkeypatch, transfer, hidden).state == "failed"


class Ranks:
    """Two ranks in one process, one after the other: what each sends is noted in a first pass, and delivered in the second."""

    def __init__(self, monkeypatch):
        self.sent, self.exchanges = {}, 0
        monkeypatch.setattr("torch.distributed.all_to_all_single", self._exchange)

    def size(self):
        return 2

    def each(self, plan):
        """What `plan` of a rank gives on both."""
        for self._rank in (0, 1):
            plan(self._rank)
        self.exchanges = 0
        results = []
        for self._rank in (0, 1):
            results.append(plan(self._rank))
        return results

    def _exchange(self, arrived, parts, group):
        self.exchanges += 1
        self.sent[self._rank] = parts.clone()
        if len(self.sent) == 2:
            arrived.copy_(torch.cat([self.sent[peer].chunk(2)[self._rank] for peer in (0, 1)]))
        else:
            arrived.zero_()


@pytest.mark.parametrize("tokens", [1, 2, 37])
def test_tiles_planned_at_once_are_those_planned_each_on_its_own_with_one_exchange(monkeypatch, tokens):
    together, alone = (import_file(PROJECT_ROOT / f"ch15/shared_{name}.py") for name in ("tiles", "dispatch"))
    chosen = [torch.rand(tokens, 6, generator=torch.Generator().manual_seed(rank)).topk(3).indices for rank in (0, 1)]
    ranks = Ranks(monkeypatch)
    planned = ranks.each(lambda rank: together.plan_tiles(chosen[rank], 2, 3, ranks))
    assert ranks.exchanges == 2  # one of each rank
    for number in (0, 1):
        expected = Ranks(monkeypatch)
        plans = expected.each(lambda rank, number=number, group=expected: alone.plan(chosen[rank].tensor_split(2)[number], 3, group))
        for tiles, plan in zip(planned, plans, strict=True):
            tile = tiles[number]
            assert (tile.sent, tile.received) == (plan.sent, plan.received)
            assert all(torch.equal(getattr(tile, name), getattr(plan, name)) for name in ("order", "by_slot", "ends"))
