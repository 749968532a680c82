"""Which stream a process is timed on: the quickest, by several looks at each, and never one that its side gets too."""

import itertools
import statistics
from types import SimpleNamespace

import pytest
import torch

from common.python.child.device import streams
from tests.support.commands import OPTIMIZED, benchmark, write_pair


class Pool:
    """torch's: streams are dealt out in turn, 32 of them; the launches of a stream cost what `costs` says, but for its first look."""

    def __init__(self, costs):
        self.costs, self.turn, self.looks = costs, itertools.cycle(range(32)), []

    def deal(self):
        return next(self.turn)

    def launch_ns(self, helpers, stream):
        first = stream not in self.looks
        self.looks.append(stream)
        return self.costs(stream, self.looks.count(stream)) if not first else 1.0  # whatever a first look says is of no use


@pytest.fixture
def pool(monkeypatch):
    def of(costs):
        made = Pool(costs)
        monkeypatch.setattr(streams, "_Stream", made.deal)
        monkeypatch.setattr(streams, "_launch_ns", made.launch_ns)
        monkeypatch.setattr(streams, "device_helpers", lambda: None)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        return made

    return of


def test_the_stream_with_the_least_cost_is_chosen(pool):
    pool(lambda stream, look: 1520.0 if stream in range(9, 14) else 1665.0)
    assert streams.quickest_stream() in range(9, 14)


def test_one_quick_look_at_a_slow_stream_does_not_win(pool):
    pool(lambda stream, look: 1400.0 if (stream, look) == (0, 3) else 1520.0 if stream == 16 else 1665.0)
    assert streams.quickest_stream() == 16


def test_candidates_are_looked_at_in_turn(pool):
    """What the GPU does in between is then the same for all of them."""
    made = pool(lambda stream, look: 1520.0)
    streams.quickest_stream()
    each = list(dict.fromkeys(made.looks))
    assert made.looks == each * (len(made.looks) // len(each))
    assert all(later - earlier < 5 for earlier, later in itertools.pairwise(each))  # five made one after the other are of a kind


@pytest.mark.parametrize("quickest", [0, 12, 28])
def test_a_side_that_asks_torch_for_streams_gets_others(pool, quickest):
    made = pool(lambda stream, look: 1520.0 if stream == quickest else 1665.0)
    assert streams.quickest_stream() == quickest
    assert quickest not in [made.deal() for _ in range(31)]


def test_looks_are_taken_on_the_first_stream_that_the_hold_does_not_stop(pool, monkeypatch):
    pool(None)
    tried = []
    monkeypatch.setattr(streams, "_passes", lambda helpers, stream: tried.append(stream) or stream == 2)
    streams.stream_past_the_hold.cache_clear()
    assert [streams.stream_past_the_hold() for _ in range(2)] == [2, 2]
    assert tried == [0, 1, 2]  # once a process
    streams.stream_past_the_hold.cache_clear()


@pytest.fixture
def process(monkeypatch):
    """A process that works on torch's default stream, and whose quickest is another."""
    state = SimpleNamespace(stream="default", taken=0, profiled=False)

    def take(stream):
        state.stream, state.taken = stream, state.taken + 1

    monkeypatch.setattr(torch.cuda, "current_stream", lambda: state.stream)
    monkeypatch.setattr(torch.cuda, "default_stream", lambda: "default")
    monkeypatch.setattr(torch.cuda, "set_stream", take)
    monkeypatch.setattr(streams, "_Stream", lambda: "any")
    monkeypatch.setattr(streams, "quickest_stream", lambda: "quickest")
    monkeypatch.setattr(streams, "profiler_attached", lambda: state.profiled)
    return state


def test_a_process_takes_its_quickest_stream_once(process):
    for _ in range(2):
        streams.work_on_quickest_stream()
    assert (process.stream, process.taken) == ("quickest", 1)


def test_under_a_profiler_no_stream_is_held_to_look_at_it(process):
    process.profiled = True
    streams.work_on_quickest_stream()
    assert process.stream == "any"


KEEPS_TO_ITS_STREAM = OPTIMIZED.replace(
    "def prepare(x):\n",
    "import torch\n\nAT_IMPORT = torch.cuda.current_stream()\n\n\ndef prepare(x):\n    assert torch.cuda.current_stream() == AT_IMPORT\n",
)


@pytest.mark.gpu
@pytest.mark.unused_gpu
def test_a_side_cannot_tell_by_its_stream_whether_it_is_timed(tmp_path):
    write_pair(tmp_path / "root", optimized=KEEPS_TO_ITS_STREAM)
    words = ["run", "--root", tmp_path / "root", "--device", "cuda", "--iterations", "2", "--artifacts-dir", tmp_path / "run"]
    assert benchmark(*words, scratch=tmp_path).code == 0


@pytest.mark.gpu
class TestOnAGpu:
    def test_no_other_stream_is_much_quicker(self):
        chosen = streams.quickest_stream()
        helpers = streams.device_helpers()
        others = [torch.cuda.Stream() for _ in range(31)]
        assert chosen not in others
        looks = [[streams._launch_ns(helpers, stream) for stream in (chosen, *others)] for _ in range(7)]
        costs = [statistics.median(times) for times in zip(*looks[1:], strict=True)]
        assert costs[0] <= 1.05 * min(costs)  # a slow one takes 1.09 times as long

    def test_the_current_stream_stays_as_it_was(self):
        before = torch.cuda.current_stream()
        streams.quickest_stream()
        assert torch.cuda.current_stream() == before

    def test_what_looks_stand_on_is_not_stopped_by_the_hold(self):
        helpers, stream, done = streams.device_helpers(), streams.stream_past_the_hold(), torch.cuda.Event()
        try:
            helpers.block(2_000_000_000)
            helpers.spin(0)
            with torch.cuda.stream(stream):
                helpers.spin(0)
                done.record()
            stream.synchronize()
            assert not helpers.expired
            assert not torch.cuda.current_stream().query()
        finally:
            helpers.release()
            torch.cuda.synchronize()
