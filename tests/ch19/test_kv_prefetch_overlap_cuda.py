"""ch19:kv_prefetch_overlap_cuda: the TMA's side with copies that stand for the TMA, and the demo, which checks itself on a GPU."""

import re
import shutil
import subprocess

import pytest

from common.python.project import PROJECT_ROOT
from tests.emulation.emulate import check_side
from tests.support.probes import needs_nvcc

CHAPTER = PROJECT_ROOT / "ch19"
# Stands for common/cuda's TMA and mbarrier: copies by the thread that asks. A wait is a barrier of the block, and needs the page's bytes.
STAND_IN = """
struct CUtensorMap { const Element* matrix; };
template <typename T> struct Tiled { const T* matrix; int rows, cols, tile_rows, tile_cols; };
template <typename T> cudaError_t encode(CUtensorMap* map, const Tiled<T>& tiled) {
    *map = {tiled.matrix};
    return tiled.cols == DIM && tiled.tile_cols == DIM && tiled.tile_rows == PAGE ? cudaSuccess : cudaErrorInvalidValue;
}
__device__ void barrier_init(uint64_t* barrier, int) { *barrier = 0; }
__device__ void barrier_expect(uint64_t* barrier, int bytes) { *barrier += bytes; }
__device__ void load_tile(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
    for (int i = 0; i < PAGE * DIM; i++) static_cast<Element*>(tile)[i] = map->matrix[size_t(row) * DIM + column + i];
    *barrier += (uint64_t(1) << 32) - PAGE * DIM * sizeof(Element);  // above: copies; below: bytes that are still to come
}
__device__ void barrier_wait(uint64_t* barrier, uint32_t parity) {
    __syncthreads();
    if (uint32_t(*barrier) != 0 || ((*barrier >> 33) - 1) % 2 != parity) __trap();
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_the_tmas_side_is_right_with_copies_that_stand_for_the_tma(tmp_path):
    text = (CHAPTER / "optimized_kv_prefetch_overlap_cuda_tma.cu").read_text()
    text = re.sub(r"^// (?:needs|instead|proves|has|predicts):.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r'^#include "common/cuda/(?:mbarrier|tma).cuh"\n', "", text, flags=re.MULTILINE)
    page = f'#include "{CHAPTER}/shared_page_merge.cuh"\n'
    side = tmp_path / "optimized_stand_in.cu"
    side.write_text(text.replace('#include "shared_page_merge.cuh"\n', page + STAND_IN))
    check_side(CHAPTER / "workload_kv_prefetch_overlap_cuda.py", side)


@needs_nvcc
def test_the_demo_finds_pages_by_the_table_and_nan_before_right_values(tmp_path):
    """Its comparison is the host's, so no GPU is needed."""
    source = tmp_path / "compared.cu"
    source.write_text(
        f"""#define main demo
#include "{CHAPTER}/kv_prefetch_overlap.cu"
#undef main
int main() {{
    std::vector<Element> q(DIM, __float2bfloat16(0)), keys(2 * PAGE * DIM, __float2bfloat16(1)), values(keys);
    for (int i = 0; i < PAGE * DIM; i++) values[i] = __float2bfloat16(66);
    const std::vector<int> table{{1, 0}};  // 64 tokens of value 1, then one of 66
    std::vector<float> out(DIM, 2);
    const auto error = [&] {{ return error_of(q.data(), keys.data(), values.data(), table.data(), out.data(), 65, 1, 0); }};
    const double right = error();
    out[7] = NAN;
    return right < 1e-12 && std::isnan(error()) ? 0 : 1;
}}"""
    )
    command = ["nvcc", "-std=c++20", "-arch=sm_90a", f"-I{PROJECT_ROOT}", source, "-o", tmp_path / "compared"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert made.returncode == 0, made.stderr
    assert subprocess.run([tmp_path / "compared"], check=False).returncode == 0


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120"])
def test_the_demo_builds_and_checks_itself(architecture, tmp_path):
    command = ["make", "-C", CHAPTER, "kv_prefetch_overlap", f"ARCH={architecture}", f"BUILD={tmp_path}"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([tmp_path / "ch19_kv_prefetch"], capture_output=True, text=True, timeout=100, check=False)
    said = done.stdout if done.returncode == 0 else done.stderr
    assert said.startswith("kv_prefetch_overlap: 4 sequences") if done.returncode == 0 else "kv_prefetch_overlap.cu:" in said, said
