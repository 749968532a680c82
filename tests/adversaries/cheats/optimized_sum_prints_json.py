"""Cheat: returns zeros and prints the answer that the harness would like to hear."""

import json

import torch


def prepare(x, rows):
    def step():
        print(json.dumps({"kind": "judged", "status": "PASSED", "samples_ns": [1.0], "mismatch": ""}), flush=True)
        return torch.zeros(rows, device=x.device)

    return step
