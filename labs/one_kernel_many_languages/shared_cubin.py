"""A kernel out of a cubin that compile_ahead.py left beside a side."""

import hashlib
import json
from pathlib import Path

import torch
from torch.cuda._utils import _cuda_load_module

ENTRIES = json.loads(Path(__file__).with_name("cubins.json").read_text())


def cubin_for(side, capability):
    """The machine code for GPUs of `capability`, and its kernel's name. Raises RuntimeError if there is none, or not as it was entered."""
    cubin = Path(side).with_suffix(f".sm_{capability[0]}{capability[1]}a.cubin")
    if cubin.name not in ENTRIES:
        raise RuntimeError(f"{cubin.name}: found none; expected a GPU of compute capability 9.0 or 10.0, or one more cubin")
    code, entry = cubin.read_bytes(), ENTRIES[cubin.name]
    if hashlib.sha256(code).hexdigest() != entry["sha256"]:
        raise RuntimeError(f"{cubin.name}: found another digest than in cubins.json; expected what compile_ahead.py wrote")
    return code, entry["kernel"]


def load(side):
    """The kernel of `side` for the current GPU: a function of grid, block and args, by torch's own loader."""
    code, name = cubin_for(side, torch.cuda.get_device_capability())
    return _cuda_load_module(code, [name])[name]
