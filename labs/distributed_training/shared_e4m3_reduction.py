"""FSDP2's reduce-scatter with gradients that travel as e4m3 blocks, each with a scale in float32."""

import torch
import torch.distributed as dist
import triton
import triton.language as tl

BLOCK = 128  # values that share a scale
ROWS = tl.constexpr(16)  # blocks a program
COLS = tl.constexpr(BLOCK)


@triton.jit
def quantize(x, values, scales, blocks):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    at = row * COLS + tl.arange(0, COLS)[None, :]
    tile = tl.load(x + at, mask=row < blocks, other=0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(tile), axis=1, keep_dims=True), 1e-30) / 448.0  # the largest of e4m3
    tl.store(values + at, (tile / scale).to(tl.float8e4nv), mask=row < blocks)
    tl.store(scales + row, scale, mask=row < blocks)


@triton.jit
def average(values, scales, y, blocks, ranks):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    at = row * COLS + tl.arange(0, COLS)[None, :]
    total = tl.zeros((ROWS, COLS), tl.float32)
    for rank in range(ranks):
        scale = tl.load(scales + rank * blocks + row, mask=row < blocks, other=0)
        total += scale * tl.load(values + rank * blocks * COLS + at, mask=row < blocks).to(tl.float32)
    tl.store(y + at, (total / ranks).to(tl.bfloat16), mask=row < blocks)


class E4m3ReduceScatter:
    """What `set_custom_reduce_scatter` takes. It runs in FSDP2's own stream, beside the backward pass of the blocks before."""

    def allocate(self, size, *, dtype, device):
        """FSDP2 asks for its buffers here."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        """The mean over all ranks: each sends every peer its part, and adds in float32. No sum is rounded to e4m3."""
        blocks, mine = (tensor.numel() // BLOCK for tensor in (input_tensor, output_tensor))
        values, got_values = (torch.empty(blocks, BLOCK, dtype=torch.float8_e4m3fn, device=input_tensor.device) for _ in range(2))
        scales, got_scales = (torch.empty(blocks, 1, device=input_tensor.device) for _ in range(2))
        quantize[(triton.cdiv(blocks, ROWS.value),)](input_tensor, values, scales, blocks)
        dist.all_to_all_single(got_values.view(torch.uint8), values.view(torch.uint8), group=group)
        dist.all_to_all_single(got_scales, scales, group=group)
        average[(triton.cdiv(mine, ROWS.value),)](got_values, got_scales, output_tensor, mine, group.size())
