"""Library: torch's grouped product: sparse, and without empty seats."""

import torch
import torch.nn.functional as F
from shared_capacity import capacity_of, queue, taken


def prepare(x, chosen, gates, up, down, tokens, experts, top, capacity_factor):
    capacity = capacity_of(tokens, experts, top, capacity_factor)
    rows = min(tokens * top, experts * capacity)
    token = torch.arange(tokens, device=x.device)[:, None].expand(-1, top)

    def step():
        place, lengths = queue(chosen, experts)
        counts, dropped = taken(lengths, capacity)
        kept, ends = place < capacity, counts.cumsum(0, dtype=torch.int32)
        row = (ends - counts)[chosen] + place
        behind = torch.where(kept, row, rows)  # the last row of all for what is dropped
        packed = token.new_zeros(rows + 1).scatter_(0, behind.flatten(), token.flatten())[:rows]
        opened, values = F.grouped_mm(x[packed], up.mT, offs=ends).chunk(2, dim=1)
        answers = F.grouped_mm(F.silu(opened) * values, down.mT, offs=ends)  # rows behind the last expert's are not written
        back = answers[torch.where(kept, row, 0)]  # tokens x top x hidden; row 0 is written, and its gate is 0
        return torch.bmm((gates * kept)[:, None], back).squeeze(1), counts, dropped

    return step
