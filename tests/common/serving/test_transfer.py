"""Pages written into another process's window, and blocks pushed into another pool."""

import importlib.util
import multiprocessing
from dataclasses import replace

import pytest
import torch

from common.models import config as presets
from common.serving import transfer
from common.serving.kv_blocks import KvBlocks, OutOfBlocks
from common.serving.transfer import Window, create_window, push
from common.serving.transfer_nixl import NixlWindow

CONFIG = replace(presets.tiny(), layers=2, kv_heads=1, head_dim=4)
CPU = torch.device("cpu")


def source_of(round_):
    return torch.arange(3 * 8 * 5, dtype=torch.float32).view(3, 8, 5) + 1000 * round_


def write_rounds(handle, orders):
    window = Window.open(handle)
    for round_, (pages, places) in enumerate(orders):
        window.write(source_of(round_), torch.tensor(pages), torch.tensor(places))


def test_what_the_counter_says_has_landed():
    window, handle = Window.create((3, 8, 5), torch.float32, CPU)
    orders = [([7, 0, 3], [1, 2, 0]), ([1, 2], [7, 6]), ([4], [4])]
    writer = multiprocessing.get_context("spawn").Process(target=write_rounds, args=(handle, orders))
    writer.start()
    window.wait(6)
    for round_, (pages, places) in enumerate(orders):
        assert torch.equal(window.pages[:, places], source_of(round_)[:, pages])
    assert not window.pages[:, [3, 5]].any()
    writer.join(30)
    assert writer.exitcode == 0
    assert int(window.counter) == 6


def test_a_part_has_the_counter_of_the_whole():
    window, _ = Window.create((4, 2, 3), torch.float32, CPU)
    window.part(2, 2).write(torch.ones(2, 1, 3), torch.tensor([0]), torch.tensor([1]))
    assert int(window.counter) == 1
    assert window.pages[2:, 1].all()
    assert window.pages.sum() == 6


def test_pages_that_never_come_are_an_error(monkeypatch):
    monkeypatch.setattr(transfer, "_WAIT_S", 0.01)
    window, _ = Window.create((1, 1, 1), torch.float32, CPU)
    with pytest.raises(TimeoutError, match=r"found 0 pages after 0\.01 s; expected 1"):
        window.wait(1)


def filled(blocks, sequence, count, start):
    """Append tokens whose keys and values say which they are."""
    for at in blocks.append(sequence, count):
        block, offset = blocks.table(sequence)[at // blocks.block_tokens], at % blocks.block_tokens
        blocks.keys[:, block, offset] = start + at
        blocks.values[:, block, offset] = -(start + at)


def read(blocks, sequence):
    flat = [tensor[:, blocks.table(sequence)].flatten(1, 2)[:, : blocks.length(sequence), 0, 0] for tensor in (blocks.keys, blocks.values)]
    return torch.stack(flat)


def test_a_pushed_sequence_reads_the_same_in_the_other_pool():
    source, target = (KvBlocks(CONFIG, blocks=count, block_tokens=4, device="cpu") for count in (6, 5))
    filled(source, "other", 5, 500)
    filled(source, "a", 9, 100)
    filled(target, "there", 3, 900)
    there = read(target, "there")
    assert target.reserve("a", 14)
    push(source, target, "a")
    assert target.length("a") == 9
    assert torch.equal(read(target, "a"), read(source, "a"))
    assert torch.equal(read(target, "there"), there)


def test_a_push_without_room_takes_nothing():
    source, target = (KvBlocks(CONFIG, blocks=count, block_tokens=4, device="cpu") for count in (3, 2))
    filled(source, "a", 9, 100)
    with pytest.raises(OutOfBlocks, match="found 2 free blocks; expected 3"):
        push(source, target, "a")
    assert target.pool.free == 2


def send_by_nixl(handles, orders):
    window = NixlWindow((3, 8, 5), torch.float32, CPU)
    handles.put(window.handle)
    peer = window.open(handles.get()).part(1, 3)
    for round_, (pages, places) in enumerate(orders):
        peer.write(source_of(round_), torch.tensor(pages), torch.tensor(places))
    handles.get()  # what it sent lies in its memory


@pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("nixl", "nixl_cu13", "nixl_cu12")), reason="needs NIXL (pip install nixl)"
)
def test_nixl_writes_the_same():
    window = NixlWindow((4, 8, 5), torch.float32, CPU)
    orders = [([7, 0, 3], [1, 2, 0]), ([1, 2], [7, 6])]
    context = multiprocessing.get_context("spawn")
    to_writer, from_writer = context.Queue(), context.Queue()
    writer = context.Process(target=send_by_nixl, args=(Ends(to_writer, from_writer), orders))
    writer.start()
    from_writer.get(timeout=60)
    to_writer.put(window.handle)
    window.wait(5)
    for round_, (pages, places) in enumerate(orders):
        assert torch.equal(window.pages[1:, places], source_of(round_)[:, pages])
    assert not window.pages[0].any()
    to_writer.put("done")
    writer.join(30)
    assert writer.exitcode == 0


class Ends:
    """The writer's ends of two queues."""

    def __init__(self, incoming, outgoing):
        self.get, self.put = incoming.get, outgoing.put


def test_a_backend_that_nobody_wrote_is_refused():
    with pytest.raises(ValueError, match="backend=tcp; expected ipc or nixl"):
        create_window("tcp", (1, 1, 1), torch.float32, CPU)
