"""FSDP2's reduce-scatter with gradients that travel as e4m3 blocks, each with a scale in float32."""

import torch
import torch.distributed as dist

BLOCK = 128  # values that share a scale
LARGEST = 448.0  # of e4m3


def quantized(x):
    """A flat tensor as e4m3 values, [blocks, BLOCK], and their scales, [blocks, 1]."""
    blocks = x.view(-1, BLOCK)
    scale = blocks.abs().amax(1, keepdim=True).float().clamp(min=1e-30) / LARGEST
    return (blocks / scale).to(torch.float8_e4m3fn), scale


class E4m3ReduceScatter:
    """What `set_custom_reduce_scatter` takes. It runs in FSDP2's own stream, beside the backward pass of the blocks before."""

    def allocate(self, size, *, dtype, device):
        """FSDP2 asks for its buffers here."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        """The mean over all ranks: each sends every peer its part, and adds in float32. No sum is rounded to e4m3."""
        values, scales = quantized(input_tensor)
        got_values, got_scales = torch.empty_like(values), torch.empty_like(scales)
        dist.all_to_all_single(got_values.view(torch.uint8), values.view(torch.uint8), group=group)
        dist.all_to_all_single(got_scales, scales, group=group)
        terms = (got_values.float() * got_scales).view(group.size(), -1)
        output_tensor.copy_(terms.mean(0).view_as(output_tensor))
