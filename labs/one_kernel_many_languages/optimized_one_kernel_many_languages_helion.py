"""Optimized: Helion: PyTorch's operators in a loop over rows."""
# needs: fp8, package helion
# instead: labs/one_kernel_many_languages:one_kernel_many_languages
# predicts: baseline 0.919 ms = 21 * rows * width / dram_copy on h100  (bytes per element of five kernels)
# predicts: optimized 0.131 ms = 3 * rows * width / dram_copy on h100  (2 bytes in, 1 out)
# proves: kernel _helion_quantized_norm
# proves: launches == 1
# has: spills == 0

import helion
import helion.language as hl
import torch

# By hand: a row per program, kept whole in registers. Of 4, 8, 16 and 32 warps, 8 was as fast as any on an H200.
CONFIGURATION = helion.Config(block_sizes=[1], reduction_loops=[None], num_warps=8, num_stages=1)


@helion.kernel(config=CONFIGURATION)
def quantized_norm(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    for row in hl.tile(x.size(0)):
        value = x[row, :].to(torch.float32)
        n = value * weight[:].to(torch.float32)[None, :]
        root = torch.rsqrt(value.square().mean(-1) + 1e-6)
        largest = (n.abs().amax(-1) * root).clamp(min=1e-12)  # the root is one factor of the row: the maximum does not wait for it
        y[row, :] = (n * (root * (448.0 / largest))[:, None]).to(torch.float8_e4m3fn)
        scale[row] = largest / 448.0
    return y, scale


def prepare(x, weight):
    y = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty(x.shape[0], device=x.device)
    norm = quantized_norm.bind((x, weight, y, scale))  # generates the Triton code of these shapes

    return lambda: norm(x, weight, y, scale)
