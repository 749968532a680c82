"""ch15:moe_overlap_tiles: what its order hides on two streams, by the proof that a run makes of it, and which orders that proof refuses."""

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
        "plan": lambda *_: batch,
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
