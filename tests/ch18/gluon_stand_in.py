"""Gluon's language for kernels of one program at a time on a CPU: roles are threads, and copies and products may end late."""

import threading
import types
from unittest import mock

import torch

PATIENCE_S = 60  # a role that waits longer waits for nobody


class Place:
    """A block, or a row of blocks, of shared memory. It holds NaN until somebody writes."""

    def __init__(self, memory):
        self.memory = memory
        self.shape = memory.shape

    def index(self, at):
        return Place(self.memory[at])

    def permute(self, order):
        return Place(self.memory.permute(order))


class Barrier:
    """Counts arrivals and bytes, as an mbarrier. Copies of a lazy program run when somebody waits for them."""

    def __init__(self, machine):
        self.machine = machine
        self.count = self.arrived = self.owed = self.phase = 0
        self.copies = []

    def index(self, at):
        assert at == 0
        return self

    def changed(self):
        if self.arrived == self.count and self.owed == 0:
            self.phase, self.arrived = self.phase + 1, 0
            self.machine.moved.notify_all()
        assert self.arrived < self.count, "more arrivals than the barrier counts"


class Row:
    """Several barriers."""

    def __init__(self, barriers):
        self.barriers = barriers
        self.shape = (len(barriers), 1)

    def index(self, at):
        return self.barriers[at]


class Pointer:
    """y, and offsets of elements of it."""

    def __init__(self, values, offset=0):
        self.values = values
        self.offset = offset

    def __add__(self, offset):
        return Pointer(self.values, self.offset + offset)


class Map:
    """What TMA knows of a matrix: rows and columns that are not there are 0."""

    def __init__(self, values, rows):
        self.values = values
        self.layout = None
        self.block_type = types.SimpleNamespace(shape=(rows, values.shape[1]), nbytes=rows * values.shape[1] * values.itemsize)

    def tile(self, row):
        rows = self.block_type.shape[0]
        there = self.values[row : row + rows]
        return torch.cat([there, there.new_zeros(rows - len(there), there.shape[1])])


class Product:
    """A product on its way; it reads shared memory when it ends."""

    def __init__(self, left, right, onto):
        self.operands = left, right, onto

    def end(self):
        left, right, onto = (x.memory if isinstance(x, Place) else x for x in self.operands)
        return onto + left.float() @ right.float()


class Machine:
    """One program. `lazy`: copies run when they are waited for, not at once; products always end when they are waited for."""

    def __init__(self, program, programs, lazy):
        self.program, self.programs, self.lazy = program, programs, lazy
        self.moved = threading.Condition()
        self.copies = 0
        self.in_flight = threading.local()

    def language(self):
        """Stand-ins by the names that a side imports."""
        gl = types.SimpleNamespace(
            **{name: getattr(torch, name) for name in ("float32", "int32", "int64", "bfloat16", "exp2", "where")},
            constexpr=object,
            NVMMADistributedLayout=lambda **_: None,
            SliceLayout=lambda *_: None,
            DotOperandLayout=lambda **_: None,
            num_warps=lambda: 4,
            program_id=lambda axis: self.program[axis],
            num_programs=lambda axis: self.programs[axis],
            cdiv=lambda a, b: -(-a // b),
            static_range=range,
            static_assert=self.claim,
            arange=lambda start, end, _layout: torch.arange(start, end),
            full=lambda shape, value, dtype, _layout: torch.full(shape, value, dtype=dtype),
            zeros=lambda shape, dtype, _layout: torch.zeros(shape, dtype=dtype),
            convert_layout=lambda x, _layout: x,
            minimum=lambda a, b: min(a, b) if isinstance(a, int) else torch.minimum(a, torch.as_tensor(b)),
            maximum=torch.maximum,
            max=lambda x, axis: x.amax(axis),
            sum=lambda x, axis: x.sum(axis),
            store=self.store,
            allocate_shared_memory=self.allocate,
            warp_specialize=self.specialize,
        )
        mbarrier = types.SimpleNamespace(
            MBarrierLayout=lambda: None, init=self.initialize, expect=self.expect, arrive=self.arrive, wait=self.wait
        )
        return {
            "gl": gl,
            "mbarrier": mbarrier,
            "tma": types.SimpleNamespace(async_copy_global_to_shared=self.copy),
            "fence_async_shared": lambda: None,
            "warpgroup_mma": self.multiply,
            "warpgroup_mma_wait": self.await_products,
        }

    @staticmethod
    def claim(claimed):
        assert claimed

    @staticmethod
    def store(to, values, mask):
        offsets, inside = torch.broadcast_tensors(to.offset, mask)
        to.values.view(-1)[offsets[inside]] = values[inside]

    def allocate(self, dtype, shape, _layout):
        if dtype == torch.int64:
            return Row([Barrier(self) for _ in range(shape[0])]) if shape[1:] else Barrier(self)
        return Place(torch.full(shape, torch.nan, dtype=dtype))

    def specialize(self, roles, _warps, _registers):
        errors = []

        def play(function, arguments):
            try:
                function(*arguments)
            except (AssertionError, RuntimeError, TypeError) as error:
                errors.append(error)

        threads = [threading.Thread(target=play, args=role) for role in roles]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    @staticmethod
    def initialize(barrier, count):
        barrier.count = count

    def expect(self, barrier, bytes_):
        with self.moved:
            barrier.owed += bytes_
            barrier.arrived += 1

    def arrive(self, barrier):
        with self.moved:
            barrier.arrived += 1
            barrier.changed()

    def copy(self, source, where, barrier, to):
        def run():
            to.memory.copy_(source.tile(where[0]))
            barrier.owed -= source.block_type.nbytes
            barrier.changed()

        with self.moved:
            self.copies += 1
            if self.lazy:
                barrier.copies.append(run)
                self.moved.notify_all()
            else:
                run()

    def wait(self, barrier, phase, pred=True):
        def done():
            while barrier.copies:
                barrier.copies.pop(0)()
            return barrier.phase % 2 != phase

        with self.moved:
            assert not pred or self.moved.wait_for(done, PATIENCE_S), "a wait without end"

    def multiply(self, left, right, onto, use_acc=True, is_async=False):
        assert is_async
        product = Product(left, right, onto if use_acc else 0)
        vars(self.in_flight).setdefault("products", []).append(product)
        return product

    def await_products(self, num_outstanding, deps):
        products = self.in_flight.products
        ended = {}
        while len(products) > num_outstanding:
            first = products.pop(0)
            ended[first] = first.end()
        results = tuple(ended.get(x, x) if isinstance(x, Product) else x for x in deps)
        return results if len(results) > 1 else results[0]


def run(side, kernel, grid, arguments, lazy):
    """Every program of the Gluon `kernel` of the module `side`; the number of tiles that were copied."""
    copies = 0
    raw = {name: value.fn for name, value in vars(side).items() if type(value).__name__ == "GluonJITFunction"}
    for x in range(grid[0]):
        for y in range(grid[1]):
            machine = Machine((x, y), grid, lazy)
            with mock.patch.multiple(side, **raw, **machine.language()):
                raw[kernel](**arguments)
            copies += machine.copies
    return copies
