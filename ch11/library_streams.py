"""Library: one torch.bmm per layer, all padded to the largest expert."""
# predicts: library 0.441 ms = 4 * layers * 2 * 1.25 * tokens * width**2 / fp32_matmul + (layers + 3) * 3e-6  (padding)

import torch


def prepare(x, w, layers):
    counts = [len(tokens) for tokens in x]
    weights = torch.stack(w, dim=1)  # layers x experts x width x width
    place = torch.arange(max(counts), device=x[0].device)
    first = torch.tensor([sum(counts[:expert]) for expert in range(len(x))], device=x[0].device)
    count = torch.tensor(counts, device=x[0].device)
    filled = (first[:, None] + place).clamp(max=sum(counts) - 1)  # behind an expert's tokens stand others', whose results are dropped
    kept = (place < count[:, None]).flatten().nonzero().squeeze(1)  # rows of all experts that are tokens of theirs

    def step():
        y = torch.cat(x)[filled]  # experts x largest x width
        for layer in range(layers):
            y = torch.relu(torch.bmm(y, weights[layer]))
        return y.flatten(0, 1)[kept]

    return step
