"""What is wrong with a kernel is found, and said with its line."""

import re
import shutil

import pytest

from tests.emulation.vectors import COPY, KERNEL, REVERSED, WHOLE_BLOCKS, check, wrong

pytestmark = [pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"), pytest.mark.slow]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            "y[i] = x[i];",
            r"kernel copy, block \(1, 0, 0\), thread \(36, 0, 0\) reads 4 bytes at byte 400 of x, which has 400, .*optimized_v.cu:5",
        ),
        ("if (i < n) y[i + 1] = x[i];", r"writes 4 bytes at byte 400 of y, which has 400"),
        ("if (i < n) y[i] = x[i - 1 < 0 ? -1 : i];", r"reads 4 bytes at byte -4 of x"),
        ("if (i < n && i % 4) y[i] = x[i];", r"output y: 25 of 100 elements .* is nan"),
        ("if (i < n - 1) y[i] = x[i];", r"output y: 1 of 100 elements .* y\[99\], is nan"),
        ("if (i < n) const_cast<float*>(x)[i] = y[i] = x[i];", r"writes x, which is const"),
        ("float* other = nullptr; if (i < n) other[i] = x[i];", r"null pointer"),
        ("if (i < n) y[i] = reinterpret_cast<const float2*>(x + 1)[0].x;", r"not aligned for its type.* at .*optimized_v.cu:5"),
        ("float four[4] = {}; if (i < n) y[i] = four[i];", r"indexes an array out of its bounds at .*optimized_v.cu:5"),
        ("if (i < n) y[i] = x[i]; __shfl_sync(1, i, 0);", r"__shfl_sync at .*:5 for lanes 0x00000001, of which it is none"),
        ("if (i >= n) return; y[i] = x[i]; __syncthreads();", r"waits for ever: .* is at the barrier of .*:5, .* has returned"),
        ("if (i % 2) __syncthreads();\nelse __syncthreads();", r"waits for ever: .* barrier of .*:6, .* barrier of .*:5"),
        (
            "if (i % 2) __syncwarp();\nelse __syncthreads();",
            r"waits for ever: .* at __syncwarp of .*:5 for lanes 0xffffffff, .* barrier of .*:6",
        ),
        ("while (atomicAdd(&y[0], 0.0f) != 1) {}", r"too many accesses: it waits for another block, or the shape is too large"),
        ("assert(i < 50);", r"thread \(50, 0, 0\) fails its assertion `i < 50' at .*:5"),
        ("if (i < n) y[i] = x[i] + (i + 2147483647 == 5);", r"overflows a signed integer in an addition at .*:5"),
        ("if (i < n) y[i] = x[i] + ((1u >> (i + 1)) == 5);", r"shifts by a negative number of bits, or by all of them or more, at .*:5"),
        ("__trap();", r"traps at .*:5"),
    ],
)
def test_what_is_wrong_with_a_kernel_is_said(statement, found, tmp_path):
    assert re.search(found, wrong(tmp_path, KERNEL.format(statement), before="#include <cassert>"))


TILE = """__global__ void copy(const float* x, float* y, int n) {{
    __shared__ float tile[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    tile[t] = x[i];
    {}
    y[i] = {};
}}"""


@pytest.mark.parametrize(
    ("barrier", "value", "reference"),
    [
        ("__syncthreads();", "tile[63 - t]", REVERSED),
        ("", "tile[t]", COPY),
        ("__syncwarp();", "tile[t ^ 31]", "lambda x: x.view(-1, 32).flip(1).view(-1)"),
        ("if (t < 32) __syncwarp(); else __syncwarp();", "tile[t ^ 1]", "lambda x: x.view(-1, 2).flip(1).view(-1)"),
    ],
)
def test_shared_memory_with_the_barrier_it_needs(barrier, value, reference, tmp_path):
    assert check(tmp_path, TILE.format(barrier, value), reference=reference, shapes=WHOLE_BLOCKS) == []


@pytest.mark.parametrize(
    ("barrier", "value", "found"),
    [
        ("", "tile[63 - t]", r"thread \(32, 0, 0\) writes tile at \S+:6, which thread \(31, 0, 0\) read at \S+:8, with no barrier"),
        (
            "__syncwarp();",
            "tile[63 - t]",
            r"tile at \S+optimized_v.cu:8, which thread \(\d+, 0, 0\) wrote at \S+optimized_v.cu:6, with no bar",
        ),
        ("", "tile[t ^ 1]", r"thread \(1, 0, 0\) writes tile at \S+optimized_v.cu:6, which thread \(0, 0, 0\) read at \S+optimized_v.cu:8"),
        (
            "__syncthreads();",
            "tile[t]; tile[t ^ 1] = 0",
            r"thread \(1, 0, 0\) reads tile at \S+:8, which thread \(0, 0, 0\) wrote at \S+:8",
        ),
        (
            "__syncthreads();",
            "(&tile[t])[1]",
            r"thread \(63, 0, 0\) reads 4 bytes of shared memory that no variable of the block has, at \S+:8",
        ),
        (
            "__syncthreads();",
            "tile[0]; if (t == 63) tile[0] = 0",
            r"thread \(63, 0, 0\) writes tile at \S+:8, which thread \(0, 0, 0\) read at \S+:8",
        ),
        ("extern __shared__ float raw[];", "tile[t] + raw[t]", r"thread \(0, 0, 0\) reads 4 bytes of shared memory that no variable"),
        ("__syncthreads();", "tile[t + 1]", r"indexes an array out of its bounds at \S+:8"),
        ("__syncthreads();", "reinterpret_cast<float2*>(&tile[0])->x", r"not aligned for its type, at \S+:8"),
        ("__syncthreads(); __shared__ float sum; atomicAdd(&sum, x[i]); __syncthreads();", "sum", r"is nan"),
    ],
)
def test_what_is_wrong_with_shared_memory_is_said(barrier, value, found, tmp_path):
    assert re.search(found, wrong(tmp_path, TILE.format(barrier, value), reference=REVERSED, shapes=WHOLE_BLOCKS))


@pytest.mark.parametrize(
    ("kernels", "body", "found"),
    [
        ("", "y[0] = x[0];", r"the host itself touches x, memory of the device, at \S+optimized_v.cu:5"),
        ("", "cudaMemsetAsync(y, 0, 4 * n + 1, stream);", r"the host's runtime writes 401 bytes at byte 0 of y, which has 400"),
        ("", "cudaMemcpyAsync(const_cast<float*>(x), y, 4, cudaMemcpyDeviceToDevice, stream);", r"writes 4 bytes at byte 0 of x"),
        ("__global__ void k() {}", "k<<<0, 64, 0, stream>>>();", r"kernel k: found grid \(0, 1, 1\) of blocks \(64, 1, 1\)"),
        ("__global__ void k() {}", "k<<<1, 1025>>>();", r"expected neither to be empty, at most 1024 threads"),
        ("__global__ void k() {}", "k<<<1, 32, 50000>>>();", r"found 50000 bytes of dynamic shared memory; expected at most 49152"),
        ("__global__ void k() { __shared__ int big[12289]; big[0] = 1; }", "k<<<1, 1>>>();", r"more than 49152 bytes of static shared"),
        (
            "template <int> __global__ void k(float* y) { y[-1] = 0; }",
            "k<3><<<1, 1>>>(y);",
            r"kernel k<3>, .* writes 4 bytes at byte -4 of y",
        ),
        ("__global__ void k(float* y) { y[0] = undeclared; }", "k<<<1, 1>>>(y);", r"cannot be emulated: .*v.cu:3:\d+: error: .undeclared"),
    ],
)
def test_what_is_wrong_with_a_launch_is_said(kernels, body, found, tmp_path):
    assert re.search(found, wrong(tmp_path, kernels, body))


def test_a_tail_that_is_forgotten_is_found_at_the_shape_that_has_one(tmp_path):
    kernel = KERNEL.format("if (i / 64 < n / 64) y[i] = x[i];")
    assert check(tmp_path, kernel, shapes=WHOLE_BLOCKS) == []
    assert "at {'n': 100}, threads forward: output y: 36 of 100 elements" in wrong(tmp_path, kernel)


def test_a_race_on_global_memory_shows_in_another_order_of_threads(tmp_path):
    last_one_wins = KERNEL.format("if (i < n) y[i] = x[i];\nif (i > 0 && i < n) y[i - 1] = x[i - 1] * (threadIdx.x % 2 ? 1 : 1 + 2e-7f);")
    found = "output y depends on whether threads run forward or backward"
    assert found in wrong(tmp_path, last_one_wins, shapes=WHOLE_BLOCKS)


def test_an_order_of_blocks_is_not_relied_on(tmp_path):
    carried = KERNEL.format("if (i < n) y[i] = i < 64 ? x[i] : y[i - 64] - y[i - 64] + x[i];")
    assert "threads backward: output y: " in wrong(tmp_path, carried, shapes=WHOLE_BLOCKS)


def test_dynamic_shared_memory_is_new_for_every_block(tmp_path):
    kernel = KERNEL.format("extern __shared__ float sums[];\nsums[threadIdx.x] += x[i];\ny[i] = sums[threadIdx.x];")
    assert "is nan" in wrong(tmp_path, kernel, "copy<<<n / 64, 64, 256, stream>>>(x, y, n);", shapes=WHOLE_BLOCKS)


def test_a_variable_that_nobody_initialised_is_never_zero(tmp_path):
    kernel = KERNEL.format("float sums[4];\nif (i < n) { sums[i % 4] += x[i]; y[i] = sums[i % 4]; }")
    assert "are outside" in wrong(tmp_path, kernel)
