"""The ladder of products from wgmma on: a side's own code gives the right product on the CPU, and not without any one of its waits."""

import ctypes
import re
import shutil
from dataclasses import dataclass

import pytest
import torch

from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from tests.ch10.emulated import CHAPTER, LAZINESS, build, inputs_of, waits
from tests.support.cuda_sides import built, constants_of, listing_of
from tests.support.teeth import ROOT, accepts

pytestmark = pytest.mark.slow

HEADER = "shared_matmul_pipeline.cuh"
WGMMA, SPECIALIZED, SHARING = "optimized_matmul_wgmma.cu", "optimized_warp_specialized_pipeline.cu", "optimized_matmul_clustered.cu"
LOADER, WALK = "optimized_matmul_loader.cu", "optimized_matmul_walk.cu"
ALONE, MULTICAST, SMALL = "baseline_cluster_multicast.cu", "optimized_cluster_multicast.cu", "shared_cluster_multicast.cuh"
PER_TILE, PERSISTENT, MATMUL = "baseline_persistent_matmul.cu", "optimized_persistent_matmul.cu", "optimized_matmul.cu"
SIDES = [WGMMA, LOADER, WALK, SPECIALIZED, SHARING, ALONE, MULTICAST, PER_TILE, PERSISTENT, MATMUL]
CLUSTERED = (SHARING, MULTICAST, PER_TILE, PERSISTENT, MATMUL)
STORED_BY_TMA = (SPECIALIZED, SHARING, ALONE, MULTICAST, PER_TILE, PERSISTENT)  # and the last step of the ladder, as the one before it
WORKLOADS = {
    side: load_workload(CHAPTER / f"workload_{name}.py")
    for side, name in {
        WGMMA: "warp_specialized_pipeline",
        LOADER: "warp_specialized_pipeline",
        WALK: "warp_specialized_pipeline",
        SPECIALIZED: "warp_specialized_pipeline",
        SHARING: "matmul",
        ALONE: "cluster_multicast",
        MULTICAST: "cluster_multicast",
        PER_TILE: "persistent_matmul",
        PERSISTENT: "persistent_matmul",
        MATMUL: "matmul",
    }.items()
}
SOURCES = [
    ROOT / "common/cuda/operands.cuh",
    ROOT / "common/cuda/warpgroup.cuh",
    *(CHAPTER / file for file in ("shared_tile.cuh", HEADER, MATMUL)),
]
CONSTANTS = constants_of(*SOURCES)
TILE_M, TILE_N, TILE_K, ROWS = (CONSTANTS[name] for name in ("TILE_M", "TILE_N", "TILE_K", "ROWS"))
SMALL_N = constants_of(*SOURCES, CHAPTER / SMALL)["COLUMNS"]
SEEDS = range(8)


@dataclass(frozen=True)
class Case:
    """A product, by clusters of so many blocks on so many multiprocessors."""

    m: int
    n: int
    k: int
    clusterDim: int = 1
    multiprocessors: int = 1


FEW_STEPS = [Case(300, 648, k, 2, 4) for k in (64, 192, 256)]  # 1, 3 and 4, of which a tile before needs 4 to be stored

# 8 steps in 4 stages, but where said; several tiles a block where it walks over tiles; with the last wave divided and a whole one before
ROUNDS = {
    WGMMA: [Case(140, 264, 456)],
    LOADER: [Case(140, 264, 456)],
    WALK: [Case(300, 648, 456, 1, 2), Case(300, 648, 192, 1, 4)],
    SPECIALIZED: [Case(300, 648, 456, 1, 2), Case(300, 648, 192, 1, 4)],
    SHARING: [Case(300, 648, 456, 2, 4), Case(700, 392, 192, 4, 8)],
    ALONE: [Case(300, 392, 776, 1, 4), Case(300, 648, 192, 1, 4)],  # 13 steps in 8 stages
    MULTICAST: [Case(300, 392, 776, 2, 4), Case(700, 392, 192, 4, 8)],
    PER_TILE: [Case(140, 264, 456, 2)],
    PERSISTENT: [Case(300, 648, 456, 2, 4), *FEW_STEPS],
    MATMUL: [Case(300, 648, 456, 2, 4), Case(890, 136, 1496, 1, 3), *FEW_STEPS],
}


class Side:
    """A side that was built for the CPU, with its scratch memory."""

    def __init__(self, name, folder):
        for file in CHAPTER.glob("shared_*.cuh"):
            shutil.copy(file, folder)
        (folder / name).write_text((CHAPTER / name).read_text() + WALK_OF * (name == MATMUL))
        self._built = build(name, folder, folder)
        self._clustered = name in CLUSTERED
        self._scratch = [torch.full((132 * 128 * 256,), torch.nan), torch.full((132 * 2,), -1, dtype=torch.int32)] if name == MATMUL else []

    def walks(self, tiles, steps, clusters):
        """For every cluster its pieces, in order: tile, first step and last step."""
        pieces = (ctypes.c_int * (3 * (tiles + 2)))()
        counts = ((cluster, self._built._library.walk_of(tiles, steps, clusters, cluster, pieces)) for cluster in range(clusters))
        return [list(zip(*(pieces[i : 3 * count : 3] for i in range(3)), strict=True)) for _, count in counts]

    def blocks(self):
        """Of the last launch."""
        return ctypes.c_int.in_dll(self._built._library, "gridDim").value

    def prepared(self, cluster, gpc):
        """What PREPARE of MATMUL returns on 20 multiprocessors, `gpc` in each GPC, for clusters of so many blocks."""
        library, state = self._built._library, ctypes.c_void_p()
        of_a_gpc = ctypes.c_int.in_dll(library, "on_cpu_gpc")
        usual = of_a_gpc.value
        library.on_cpu_set(1, LAZINESS["at once"], 20, b"")
        of_a_gpc.value = gpc
        try:
            return library.prepare(ctypes.c_void_p(self._scratch[1].data_ptr()), cluster, None, ctypes.byref(state))
        finally:
            of_a_gpc.value = usual

    def is_right(self, case, **how):
        shape = {"m": case.m, "n": case.n, "k": case.k}
        workload = WORKLOADS[SPECIALIZED]
        values = inputs_of(workload, shape)
        c = torch.full((case.m, case.n), torch.nan, dtype=torch.bfloat16)
        knobs = [case.clusterDim] * self._clustered
        self._built.launch(
            values["a"], values["b"], c, *shape.values(), *knobs, *self._scratch, multiprocessors=case.multiprocessors, **how
        )
        return accepts(workload.tolerance("optimized"), [c], [workload.reference(values["a"].double(), values["b"].double())])


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    made = {}
    return lambda side: made.get(side) or made.setdefault(side, Side(side, tmp_path_factory.mktemp("side")))


def checked(side):
    shapes = [dict(shape) for shape in WORKLOADS[side].check_at if shape["m"] * shape["n"] < 1 << 20]
    return [Case(**shape, multiprocessors=2 * shape.get("clusterDim", 1)) for shape in shapes]


@pytest.mark.parametrize(("side", "case"), [(side, case) for side in SIDES for case in (*checked(side), *ROUNDS[side])], ids=str)
def test_a_side_is_right_however_late_its_copies_and_products_are(emulated, side, case):
    for laziness in LAZINESS:
        assert emulated(side).is_right(case, laziness=laziness), laziness


WAITING = (
    r"\b(barrier_wait|__syncthreads|warpgroup_sync|cluster_sync|show_barriers_to_cluster|wait_until_stores_have_read|wgmma_wait<\d>)\("
)


# Partial sums go from cluster to cluster, which the CPU runs one after the other.
BETWEEN_CLUSTERS = "warpgroup_sync(1 + threadIdx.x / WARPGROUP);"
WAITS = [
    (side, *wait)
    for side in SIDES
    for wait in (*waits(side, WAITING), *(waits(HEADER, WAITING) if side in STORED_BY_TMA else ()))
    if wait[1] != BETWEEN_CLUSTERS
]


def test_all_waits_were_found():
    assert [len([wait for wait in WAITS if wait[0] == side]) for side in SIDES] == [5, 4, 4, 8, 10, 9, 11, 10, 10, 7]


@pytest.mark.parametrize(("side", "place", "text"), WAITS)
def test_no_wait_can_be_left_out(emulated, side, place, text):
    for laziness in ("late", "by chance", "at once"):
        for seed in SEEDS:
            try:
                if not emulated(side).is_right(ROUNDS[side][0], seed=seed, laziness=laziness, skipped=place):
                    return
            except RuntimeError:
                return
    pytest.fail(f"{place}: right without `{text}`, in every order that was tried")


@pytest.mark.parametrize("case", [Case(250, 392, 1496, 1, 3), Case(300, 392, 1496, 2, 6), Case(890, 136, 1528, 1, 3)], ids=str)
def test_divided_tiles_are_right_launch_after_launch(emulated, case):
    for seed in (1, 2):
        assert emulated(MATMUL).is_right(case, seed=seed)


# Beside the ladder's last step, whose file it ends: what a cluster does, in order.
WALK_OF = """
extern "C" int walk_of(int tiles, int steps, int clusters, int cluster, int* pieces) {
    gridDim.x = clusters, blockIdx.x = cluster;
    Walk walk(tiles * TILE_M, TILE_N, steps * TILE_K, 1);
    int count = 0;
    for (; walk.next(); count++) {
        for (int piece : {walk.tile, walk.begin, walk.end}) *pieces++ = piece;
    }
    return count;
}
"""


@pytest.mark.parametrize("tiles", [1, 65, 66, 67, 100, 132, 256, 272, 1024])
@pytest.mark.parametrize("steps", [1, 16, 64, 128])
def test_every_step_of_every_tile_is_multiplied_once_and_a_cluster_waits_only_for_the_one_before(emulated, tiles, steps):
    clusters = min(tiles, 66)
    walks = emulated(MATMUL).walks(tiles, steps, clusters)
    seen = sorted(piece for walk in walks for piece in walk)
    assert [(tile, step) for tile, begin, end in seen for step in range(begin, end)] == [(t, s) for t in range(tiles) for s in range(steps)]
    for cluster, walk in enumerate(walks):
        for i, (tile, begin, end) in enumerate(walk):
            assert begin == 0 or end == steps, "a part between two others"
            if begin:
                assert i == len(walk) - 1, "others would wait for one that waits"
                assert (tile, 0, begin) in walks[cluster - 1]
                assert cluster > 0
    longest = max(sum(end - begin for _, begin, end in walk) for walk in walks)
    assert longest - tiles * steps / clusters <= CONSTANTS["WORTH"]


def test_sizes_of_clusters_that_no_hardware_has_are_refused(emulated):
    for side in CLUSTERED:
        for cluster in (0, 3, 16):
            with pytest.raises(RuntimeError):
                emulated(side).is_right(Case(8, 8, 8, cluster))


@pytest.mark.parametrize(
    ("side", "multiprocessors", "cluster", "blocks"),
    [
        (WALK, 20, 1, 20),
        (SPECIALIZED, 20, 1, 20),
        (ALONE, 20, 1, 20),
        *((side, 20, *size) for side in (SHARING, MULTICAST, PERSISTENT, MATMUL) for size in ((4, 16), (2, 20), (1, 20))),
    ],
)
def test_no_more_blocks_are_launched_than_run_at_once(emulated, side, multiprocessors, cluster, blocks):
    assert emulated(side).is_right(Case(2 * TILE_M * multiprocessors, 8, 8, cluster, multiprocessors))
    assert emulated(side).blocks() == blocks


def test_a_kernel_that_spins_on_another_cluster_is_refused_where_not_all_of_them_run_at_once(emulated):
    assert emulated(MATMUL).prepared(2, gpc=10) == 0
    assert emulated(MATMUL).prepared(1, gpc=5) == 0
    assert emulated(MATMUL).prepared(2, gpc=5) == 720  # cudaErrorCooperativeLaunchTooLarge: 8 clusters of two run at once, not 10


@pytest.mark.parametrize("side", SIDES)
def test_ptxas_spills_nothing_and_does_not_serialize(side):
    log = built(CHAPTER / side).log
    assert "0 bytes spill stores, 0 bytes spill loads" in log
    assert "warning" not in log.lower()
    assert "serialized" not in log


@pytest.mark.parametrize("side", [PERSISTENT, MATMUL])
def test_a_tile_is_stored_between_the_start_of_the_next_ones_products_and_the_wait_for_them(side):
    listing = listing_of(CHAPTER / side)
    steps = [step.split("WARPGROUP.DEPBAR")[0] for step in listing.split("WARPGROUP.ARRIVE")[1:]]
    found = [[len(re.findall(rf"\b{name}\b", step)) for name in ("HGMMA", "STS", "UTMASTG")] for step in steps]
    assert found == [[4, 16, 1]] * 4 + [[4, 0, 0]]


@pytest.mark.parametrize("side", [SPECIALIZED, SHARING, ALONE, MULTICAST, PER_TILE])
def test_a_tiles_last_stage_is_given_back_before_the_tile_is_stored_and_the_tma_is_shown_what_it_stores(side):
    listing = listing_of(CHAPTER / side)
    names = (
        "HGMMA",
        r"WARPGROUP\.DEPBAR",
        r"SYNCS\.ARRIVE",
        r"(?<!\.)DEPBAR\.LE",
        r"BAR\.SYNC",
        "STS",
        r"FENCE\.VIEW\.ASYNC",
        "UTMASTG",
        "STG",
        "EXIT",
    )
    order = re.findall(rf"\b(?:{'|'.join(names)})\b", listing)
    of_a_tile = order[order.index("HGMMA") :]
    end = len(of_a_tile) - of_a_tile[::-1].index("UTMASTG")
    panel = ["DEPBAR.LE", "BAR.SYNC", *["STS"] * 16, "FENCE.VIEW.ASYNC", "BAR.SYNC", "UTMASTG"]
    waits, columns = (2, SMALL_N) if side in (ALONE, MULTICAST) else (1, TILE_N)  # for the step before, and at the end for the last
    assert of_a_tile[:end] == ["HGMMA"] * 4 + ["WARPGROUP.DEPBAR", "SYNCS.ARRIVE"] * waits + panel * (columns // 64)
    assert "STG" not in of_a_tile
    assert of_a_tile[end:].index("DEPBAR.LE") < len(of_a_tile[end:]) - 1, "the block does not end before its last panels are read"


def test_the_registers_of_the_roles_fit_what_the_block_began_with():
    for side in {LOADER, WALK, SPECIALIZED, *CLUSTERED} - {MULTICAST}:
        load, multiply = (int(number) for number in re.findall(r"_registers<(\d+)>", (CHAPTER / side).read_text()))
        assert load + 2 * multiply <= 3 * (65536 // 384 // 8 * 8) == 504


def test_clusters_of_every_size_are_checked_and_those_of_two_timed_or_of_four_where_they_gain():
    for side in CLUSTERED:
        assert {shape["clusterDim"] for shape in WORKLOADS[side].check_at} == {1, 2, 4, 8}
        assert {shape["clusterDim"] for shape in WORKLOADS[side].timed_shapes.values()} == {4 if side == MULTICAST else 2}


def test_scratch_is_enough_for_every_block_of_the_largest_gpu_with_wgmma():
    blocks = CONSTANTS["MOST_BLOCKS"]
    elements = {scratch.name: scratch.elements({}) for scratch in read_directives(CHAPTER / MATMUL).scratch}
    assert elements == {"partial": blocks * TILE_M * TILE_N, "ready": blocks * CONSTANTS["CONSUMERS"]}
