"""Inputs from seeds: every draw has its own generator, so any process can make the inputs of any call again, in place."""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from common.python.child.sides.assets import read_asset
from common.python.child.sides.host_memory import HostWriter, LateWords, bytes_of, empty_in
from common.python.child.sides.shards import Shards
from common.python.errors import BenchmarkError
from common.python.machine.page_cache import cached_pages
from common.python.pairs.layout import place_of
from common.python.pairs.workload import Shape, Spec, Where, Workload, require_where
from common.tensor_files import read_tensors

_MIX = 0x9E3779B97F4A7C15
_MASK = (1 << 63) - 1
_SIGNED_MIX = _MIX - (1 << 64)
_NO_DIRECT_DRAW = {torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu}

PAGE = 4096
_CHUNK = 1 << 20
_PAGES_REWRITTEN = 64
_FIRST_KEPT, _LATEST_KEPT = 6, 4  # of the seeds that inputs have had


def mix(seed: int, index: int) -> int:
    """A seed for the `index`-th draw of `seed`; neighbouring seeds and indices give unrelated ones."""
    return (seed * _MIX ^ (index + 1) * 0xD1342543DE82EF95) & _MASK


@dataclass(frozen=True)
class _Draw:
    """A tensor that Rand handed out. One that is `placed` was made of draws."""

    index: int
    tensor: torch.Tensor
    version: int
    where: Where
    placed: bool


_Fill = Callable[[torch.Tensor, torch.Generator], object]
_Put = Callable[[torch.Tensor, int], object]  # values into a tensor, those of the draw of that index


@dataclass(frozen=True)
class _Asset:
    digest: str
    tensors: dict[str, torch.Tensor]


class Rand:
    """Draws tensors on `device`; the same seed gives the same values. Shapes are in elements.

    A draw lies `where` it is asked for, but on the device where that is a CPU, or where nothing is `hosted`.
    Given the draws of an earlier call, it writes new values into the same storage, but for those behind constants.
    """

    def __init__(self, seed: int, device: torch.device, folder: Path, *, hosted: bool = True) -> None:
        self._seed = seed
        self._device = device
        self._folder = folder
        self._indices = itertools.count()
        self._rank: int | None = None
        self._hosted = hosted
        self._writer = HostWriter(device)
        self.draws: list[_Draw] = []
        self.files: list[RandomFile] = []
        self.assets: dict[str, _Asset] = {}
        self._keep: frozenset[int] = frozenset()
        self._seeds: Mapping[int, int] = {}
        self._late: list[LateWords] | None = None

    def again(self, seed: int, keep: frozenset[int], seeds: Mapping[int, int], late: list[LateWords] | None = None) -> Rand:
        """The same draws with the values of `seed`, but for those in `seeds`, by index; those in `keep` are returned as they are.

        Words of those on the host are held back, and listed in `late`, where that is given.
        """
        other = Rand(seed, self._device, self._folder, hosted=self._hosted)
        other.draws, other.files, other._keep, other._seeds, other._late = self.draws, self.files, keep, seeds, late
        other.assets = self.assets
        return other

    def of_rank(self, rank: int) -> Rand:
        """Draws whose values are those of rank `rank` alone; what is drawn without it is the same for all ranks."""
        own = copy.copy(self)
        own._rank = rank
        return own

    def normal(
        self, *shape: int, dtype: torch.dtype = torch.float32, mean: float = 0.0, std: float = 1.0, where: Where = "device"
    ) -> torch.Tensor:
        """Normally distributed values."""
        return self._draw(shape, dtype, lambda out, generator: out.normal_(mean, std, generator=generator), where)

    def uniform(
        self, *shape: int, dtype: torch.dtype = torch.float32, low: float = 0.0, high: float = 1.0, where: Where = "device"
    ) -> torch.Tensor:
        """Values uniform in [low, high)."""
        return self._draw(shape, dtype, lambda out, generator: out.uniform_(low, high, generator=generator), where)

    def integers(self, *shape: int, low: int, high: int, dtype: torch.dtype = torch.int64, where: Where = "device") -> torch.Tensor:
        """Integers uniform in [low, high)."""
        return self._draw(shape, dtype, lambda out, generator: out.random_(low, high, generator=generator), where)

    def permutation(self, n: int, dtype: torch.dtype = torch.int64, where: Where = "device") -> torch.Tensor:
        """A permutation of 0 .. n - 1."""

        def shuffle(out: torch.Tensor, index: int) -> None:
            self._copy(out, torch.randperm(n, generator=self._generator(index), device=self._device), where)

        return self._put((n,), dtype, where, shuffle)

    def place(self, tensor: torch.Tensor, where: Where) -> torch.Tensor:
        """What was made of draws, in the place where it shall be."""
        return self._put(tuple(tensor.shape), tensor.dtype, where, lambda out, _: self._copy(out, tensor, where), placed=True)

    def wait(self) -> None:
        """Wait until all values are on the host, if any belong there."""
        if any(draw.where != "device" for draw in self.draws):
            self._writer.wait()

    def file(self, size: int) -> Path:
        """A file of `size` random bytes on the disk that artifacts go to. A later call changes some of its pages."""
        index = next(self._indices)
        position = sum(1 for file in self.files if file.index < index)
        if position == len(self.files):
            self._folder.mkdir(exist_ok=True)
            self.files.append(RandomFile(self._folder / f"input_{os.getpid()}_{index}.bin", size, self._seed_of(index, self._seed), index))
        elif index not in self._keep:
            self.files[position].rewrite(self._seed_of(index, self._seed))
        return self.files[position].path

    def _seed_of(self, index: int, seed: int) -> int:
        return mix(seed if self._rank is None else mix(seed, -2 - self._rank), index)

    def asset(self, name: str) -> dict[str, torch.Tensor]:
        """The tensors of a registered file of the tree, by name, in the dtypes that it has: the same for every seed."""
        if name not in self.assets:
            found = read_asset(name)
            self.assets[name] = _Asset(found.digest, self._tensors(found.data))
        return dict(self.assets[name].tensors)

    def _tensors(self, data: bytes) -> dict[str, torch.Tensor]:
        return read_tensors(data, self._device)

    def _draw(self, shape: tuple[int, ...], dtype: torch.dtype, fill: _Fill, where: Where) -> torch.Tensor:
        def draw(out: torch.Tensor, index: int) -> None:
            generator = self._generator(index)
            if where == "device":
                _fill(out, generator, fill)
            else:
                self._writer.write(out, lambda _, part: _fill(part, generator, fill), self._late)

        return self._put(shape, dtype, where, draw)

    def _generator(self, index: int) -> torch.Generator:
        return torch.Generator(self._device).manual_seed(self._seed_of(index, self._seeds.get(index, self._seed)))

    def _copy(self, out: torch.Tensor, values: torch.Tensor, where: Where) -> None:
        if where == "device":
            out.copy_(values)
            return
        flat = values.reshape(-1)
        self._writer.write(out, lambda start, part: part.copy_(flat[start : start + part.numel()]), self._late)

    def _put(self, shape: tuple[int, ...], dtype: torch.dtype, where: Where, put: _Put, *, placed: bool = False) -> torch.Tensor:
        """The next tensor, with the values that `put` gives it; the same one in each call."""
        require_where(where)
        index = next(self._indices)
        position = index - sum(1 for file in self.files if file.index < index)
        known = position < len(self.draws)
        if known and index in self._keep:
            return self.draws[position].tensor
        out = self.draws[position].tensor if known else empty_in(where if self._hosted else "device", shape, dtype, self._device)
        if out.shape != torch.Size(shape) or out.dtype != dtype:
            raise BenchmarkError(f"draw {index} changed from {tuple(out.shape)} to {shape}; expected inputs() to draw the same again")
        put(out, index)
        if not known:
            self.draws.append(_Draw(index, out, out._version, where, placed))
        return out


def _fill(out: torch.Tensor, generator: torch.Generator, fill: _Fill) -> None:
    if out.dtype in _NO_DIRECT_DRAW:
        wide = torch.empty(out.shape, dtype=torch.float32, device=out.device)
        fill(wide, generator)
        out.copy_(wide)
    else:
        fill(out, generator)


class RandomFile:
    """A file whose content follows from its seeds: a base, and a few pages that the latest rewrite replaced."""

    def __init__(self, path: Path, size: int, seed: int, index: int) -> None:
        self.path = path
        self.index = index
        self._size = size
        self._seed = seed
        self._replaced: list[int] = []
        with path.open("wb") as file:
            for start in range(0, size, _CHUNK):
                file.write(self._base(start // _CHUNK))
            _to_disk(file.fileno())

    def rewrite(self, seed: int) -> None:
        """Put the pages of the last rewrite back and replace others, chosen and filled from `seed`."""
        pages = math.ceil(self._size / PAGE)
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.randint(pages, (min(pages, _PAGES_REWRITTEN),), generator=generator).tolist()
        with self.path.open("r+b") as file:
            for page in self._replaced:
                offset = page * PAGE % _CHUNK
                self._write(file.fileno(), page, self._base(page * PAGE // _CHUNK)[offset : offset + PAGE])
            for page in chosen:
                self._write(file.fileno(), page, _random_bytes(PAGE, mix(seed, page)))
            _to_disk(file.fileno())
        self._replaced = chosen

    def leave_cache(self) -> bool:
        """Ask the kernel to drop the file's pages; whether none is left in the page cache."""
        with self.path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return not cached_pages(file.fileno())

    def _write(self, descriptor: int, page: int, data: bytes) -> None:
        start = page * PAGE
        os.pwrite(descriptor, data[: self._size - start], start)

    def _base(self, chunk: int) -> bytes:
        return _random_bytes(min(_CHUNK, self._size - chunk * _CHUNK), mix(self._seed, chunk))


def _to_disk(descriptor: int) -> None:
    # A dirty page survives POSIX_FADV_DONTNEED, so a rewrite is only done once it is on the disk.
    os.fsync(descriptor)


def _random_bytes(count: int, seed: int) -> bytes:
    words = torch.empty(math.ceil(count / 8), dtype=torch.int64).random_(generator=torch.Generator().manual_seed(seed))
    return words.numpy().tobytes()[:count]


class Inputs:
    """The inputs of a workload at a shape: made once from a seed, rewritten in place for every call that is checked or timed.

    They are those of rank r of n processes, `place` being (r, n).
    """

    _hosted = True

    def __init__(
        self, workload: Workload, shape: Shape, seed: int, device: torch.device, folder: Path, place: tuple[int, int] = (0, 1)
    ) -> None:
        self._workload = workload
        self._shape = shape
        self._place = place
        self._made = seed, folder
        self._had: list[int] = []
        self._has = seed
        self._device = device
        self._rand = Rand(seed, device, folder, hosted=self._hosted)
        self.late_words: list[LateWords] = []
        self.values: dict[str, Any] = workload.inputs_of(self._rand, shape, *place)
        self._kept = {*workload.constants, *(workload.in_place if workload.evolves else ())}
        constants = [leaf for name, leaf in leaves(self.values) if name.split(".")[0] in self._kept]
        # A constant may be a view of its draw: it is the storage that must keep its values.
        storages = {leaf.untyped_storage().data_ptr() for leaf in constants if isinstance(leaf, torch.Tensor)}
        behind = [draw for draw in self._rand.draws if draw.tensor.untyped_storage().data_ptr() in storages]
        # inputs() will edit again what it edited, so that has to be drawn again, from the same seed.
        self._seeds = {draw.index: seed for draw in behind if draw.tensor._version != draw.version}
        paths = {leaf for leaf in constants if isinstance(leaf, Path)}
        files = {file.index for file in self._rand.files if file.path in paths}
        self._keep = frozenset(files | {draw.index for draw in behind} - self._seeds.keys())
        self.places = self._find_places()
        self._rand.wait()
        if workload.evolves:
            # What steps change lies apart from what was drawn, or inputs() would edit it, or make live inputs of it, in every call.
            self.values |= {name: mapped(self.values[name], self._apart) for name in workload.in_place if name in self.values}
        self._require_constant_assets()

    def _find_places(self) -> dict[str, Where]:
        """The inputs that are stated to lie on the host, by dotted name. Raises BenchmarkError for one that cannot be rewritten there."""
        hosted = [draw for draw in self._rand.draws if draw.where != "device"]
        fixed = [draw for draw in self._rand.draws if draw.placed or draw.where != "device"]
        if edited := [draw for draw in fixed if draw.tensor._version != draw.version]:
            found = f"inputs() edited a tensor of shape {tuple(edited[0].tensor.shape)} where it was placed"
            raise BenchmarkError(f"{found}; expected it to be edited on the device, and then rand.place(tensor, {edited[0].where!r})")
        by_storage = {draw.tensor.untyped_storage().data_ptr(): draw.where for draw in hosted}
        found_in = {name: by_storage.get(tensor.untyped_storage().data_ptr(), "device") for name, tensor in self.tensors()}
        for name, tensor in self.tensors() if hosted and self._hosted else ():
            if found_in[name] == "device" and tensor.device.type != self._device.type:
                raise BenchmarkError(f"input {name} was made on the host; expected it to be made of draws on the device, and rand.place")
        return {name: where for name, where in found_in.items() if where != "device"}

    def _apart(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        apart = leaf.clone()
        return apart.pin_memory() if leaf.device.type != self._device.type and leaf.is_pinned() else apart

    def rewrite(self, seed: int, *, late: bool = False) -> None:
        """Give every live input the values of `seed`, in the storage it has; with `late`, those on the host but for their `late_words`."""
        self._had.append(self._has)
        del self._had[_FIRST_KEPT:-_LATEST_KEPT]
        self._has = seed
        self.late_words.clear()
        rand = self._rand.again(seed, self._keep, self._seeds, self.late_words if late else None)
        again = dict(leaves(self._workload.inputs_of(rand, self._shape, *self._place)))
        for name, leaf in leaves(self.values):
            if isinstance(leaf, torch.Tensor) and again[name] is not leaf and name.split(".")[0] not in self._kept:
                leaf.copy_(again[name])
        self._rand.wait()

    @property
    def seed(self) -> int:
        """That of the values which the live inputs have now."""
        return self._has

    @property
    def earlier(self) -> list[int]:
        """Seeds, other than that of now, whose values the live inputs have had: the first, which `prepare` saw, and the latest."""
        return [seed for seed in dict.fromkeys(self._had) if seed != self._has]

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every input tensor with its dotted name."""
        return ((name, leaf) for name, leaf in leaves(self.values) if isinstance(leaf, torch.Tensor))

    def state(self) -> dict[str, torch.Tensor]:
        """The tensors of a state that evolves, by dotted name; none where the harness refreshes what a step changes."""
        return {name: tensor for name, tensor in self.tensors() if self._workload.evolves and self._workload.may_change(name)}

    def answers(self) -> dict[str, Spec]:
        """The tensors that are compared after a call, by name: all outputs, and the state's tensors where the state evolves."""
        state = {name: Spec(tuple(tensor.shape), tensor.dtype, self.places.get(name, "device")) for name, tensor in self.state().items()}
        return {**self.outputs(), **state}

    def outputs(self) -> dict[str, Spec]:
        """Every output of this process. What `shards` gives there is as `prepare` has it, so live values size no output."""
        seed, _ = self._made
        return self._workload.outputs_of(self._shape, {**place_of(*self._place), "shards": self.shards(seed)})

    def shards(self, seed: int, own: dict[str, Any] | None = None, change: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> Shards:
        """The inputs of any rank, live ones with the values of `seed`, as `change` makes them; of this one `own`, if that is given."""
        made_of, folder = self._made
        rank, ranks = self._place

        def make(peer: int) -> dict[str, Any]:
            apart = folder / f"rank{peer}"  # or its files would have these inputs' names
            inputs = type(self)(self._workload, self._shape, made_of, self._device, apart, (peer, ranks))
            inputs.rewrite(seed)
            return change(inputs.values)

        return Shards(rank, ranks, self.values if own is None else own, make)

    @property
    def assets(self) -> dict[str, str]:
        """The digest of every asset that the inputs come from, by name."""
        return {name: asset.digest for name, asset in sorted(self._rand.assets.items())}

    def _require_constant_assets(self) -> None:
        """An asset has no other values to give a live input. Raises BenchmarkError."""
        owners = {id(tensor): name for name, asset in self._rand.assets.items() for tensor in asset.tensors.values()}
        for name, leaf in leaves(self.values):
            if id(leaf) in owners and name.split(".")[0] not in self._workload.constants:
                owner = owners[id(leaf)]
                raise BenchmarkError(
                    f"input {name} is asset {owner!r}, the same in every call; expected {name.split('.')[0]!r} in constants"
                )

    @property
    def is_hosted(self) -> bool:
        """Whether an input or an answer is stated to lie in the host's memory."""
        return self._stated() != {"device"}

    @property
    def has_pageable(self) -> bool:
        """Whether an input or an answer lies in pageable memory, of which a copy can wait for a stream that is held."""
        return "pageable" in self._stated()

    def _stated(self) -> set[Where]:
        return {"device", *self.places.values(), *(spec.where for spec in self.answers().values())}

    @property
    def files(self) -> tuple[RandomFile, ...]:
        """Every input file."""
        return tuple(self._rand.files)

    def digest(self) -> str:
        """A fingerprint of all values but those a step may change: equal in two processes exactly if their inputs are."""
        sums = hashlib.blake2b(digest_size=16)
        for name, leaf in leaves(self.values):
            if self._workload.may_change(name):
                continue
            sums.update(name.encode())
            if isinstance(leaf, torch.Tensor):
                sums.update(str((tuple(leaf.shape), leaf.dtype, tensor_digest(leaf, self._device))).encode())
            elif isinstance(leaf, Path):
                sums.update(hashlib.blake2b(leaf.read_bytes()).digest())
            else:
                sums.update(repr(leaf).encode())
        return sums.hexdigest()

    def remove_files(self) -> None:
        """Delete the input files."""
        for file in self._rand.files:
            file.path.unlink(missing_ok=True)


def require_named(workload: Workload, inputs: Inputs) -> None:
    """Raise BenchmarkError for a name of `constants` or `in_place` that is no input."""
    for name in (*workload.constants, *workload.in_place):
        if name not in inputs.values:
            raise BenchmarkError(f"constants or in_place name {name!r}; expected some of the inputs {sorted(inputs.values)}")


def require_repeatable(workload: Workload, inputs: Inputs, again: Callable[[], Inputs]) -> None:
    """Raise BenchmarkError unless inputs that are made `again`, of the same seed, have the same values, as other processes need them."""
    of_same = again()
    before, now = dict(leaves(inputs.values)), dict(leaves(of_same.values))
    for name, leaf in now.items():
        earlier = before.get(name)
        if not isinstance(leaf, torch.Tensor) or not isinstance(earlier, torch.Tensor) or workload.may_change(name):
            continue
        if tensor_digest(leaf) != tensor_digest(earlier):
            wanted = "expected it drawn with rand, as rand.normal(...), and not by a generator that goes on between calls"
            raise BenchmarkError(f"inputs gave {name!r} other values for the same seed; {wanted}")
    of_same.remove_files()


class DeviceInputs(Inputs):
    """The same inputs, all of them on the device, as the referee has them."""

    _hosted = False


def mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    """`tree` of nested dicts, lists and tuples with every leaf changed."""
    if isinstance(tree, Mapping):
        return {key: mapped(value, change) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(value, change) for value in tree)
    return change(tree)


def leaves(tree: object, name: str = "") -> Iterator[tuple[str, Any]]:
    """What `tree` of nested dicts, lists and tuples holds, with dotted names."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from leaves(value, f"{name}.{key}" if name else str(key))
    elif isinstance(tree, (list, tuple)):
        for position, value in enumerate(tree):
            yield from leaves(value, f"{name}.{position}")
    else:
        yield name, tree


def tensor_digest(tensor: torch.Tensor, device: torch.device | None = None) -> int:
    """Position-weighted sum of the mixed 64-bit words of the tensor's bytes, modulo 2^64; added up on `device`, where that is named."""
    device = device or tensor.device
    data = bytes_of(tensor.contiguous())
    if data.numel() % 8 or data.storage_offset() % 8:
        data = torch.nn.functional.pad(data, (0, -data.numel() % 8))  # a copy, so aligned
    words = data.view(torch.int64)
    total = torch.zeros((), dtype=torch.int64, device=device)
    for start in range(0, words.numel(), _CHUNK):
        part = words[start : start + _CHUNK].to(device) * _SIGNED_MIX
        # The upper half must reach the lower one: a sum modulo 2^64 sees of the top bits only whether an even number of them changed.
        part ^= (part >> 32) & 0xFFFFFFFF
        part *= torch.arange(2 * start + 1, 2 * (start + part.numel()) + 1, 2, dtype=torch.int64, device=part.device)
        total += part.sum()
    return int(total) & ((1 << 64) - 1)


def warm_digest(device: torch.device) -> None:
    """Have a GPU load what a digest runs, so that the first of a process takes no longer than the others."""
    if device.type == "cuda":
        tensor_digest(torch.zeros(64, dtype=torch.uint8, device=device))
