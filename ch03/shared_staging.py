"""A batch on its way to the device: copied to a pinned staging buffer, from there to the device, and scaled."""

import torch


def staged(batch, scale):
    """A step that brings `batch` to where `scale` is, through a pinned buffer that is allocated here."""
    staging = torch.empty_like(batch, pin_memory=scale.is_cuda)
    arrived = torch.empty_like(batch, device=scale.device)
    scaled = torch.empty_like(arrived)

    def step():
        staging.copy_(batch)
        arrived.copy_(staging)  # waits until it is there: the next batch overwrites the buffer
        return torch.mul(arrived, scale, out=scaled)

    return step
