"""Count which codes and scales of NVFP4 and MXFP8 a trained model's weights and activations use, and draw both as histograms.

    ./setup.sh python ch19/calibration_histograms.py [--texts 16] [--folder artifacts/calibration]

The model is byte_lm. Weights are those of its linear layers; activations are what these read, of text that was held out of training.
Writes codes.json and codes.svg. To show them in the README: copy the first to ch19/calibration_histograms_cpu.json, say, and run
tools/checks/readme_tables.py. A format's codes are the same on any device.
"""

import argparse
import json
import sysconfig
from pathlib import Path

import torch
from shared_byte_training import CONFIG, loss_of
from shared_code_bars import drawn
from shared_code_bins import HEAD, lines_of
from shared_code_counts import FORMATS, counted
from shared_run_origin import origin_of

from common.models.train_byte_lm import blocks_at, read_corpus
from common.python.child.sides.assets import read_asset
from common.tensor_files import read_tensors

CPU = torch.device("cpu")
LENGTH = 256  # bytes of a text


def activations(weights, texts):
    """What every linear layer reads, [tokens, k] each, of `texts` held-out texts."""
    held_out = read_corpus(Path(sysconfig.get_paths()["stdlib"])).validation
    starts = torch.arange(texts) * ((len(held_out) - LENGTH - 1) // texts)
    read = []

    def linear(x, w):
        read.append(x.flatten(0, -2))
        return x @ w.T

    loss_of(weights, blocks_at(held_out, starts, LENGTH + 1), linear)
    return read


@torch.no_grad()
def main(arguments=None):
    """Count, draw, and print a line for each format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=16, help="held-out texts of 256 bytes (default: 16)")
    parser.add_argument("--folder", type=Path, default=Path("artifacts/calibration"), help="codes.json and codes.svg")
    options = parser.parse_args(arguments)
    if options.texts < 1:
        parser.error(f"--texts: found {options.texts}; expected at least 1")
    weights = {name: tensor.float() for name, tensor in read_tensors(read_asset("byte_lm").data, CPU).items()}
    layers = [weights[f"layers.{i}.{name}"] for i in range(CONFIG.layers) for name in ("q", "k", "v", "o", "gate_up", "down")]
    matrices = {"weights": layers, "activations": activations(weights, options.texts)}
    counts = {name: {kind: counted(name, found) for kind, found in matrices.items()} for name in FORMATS}
    told = origin_of(CPU) | {"settings": {"texts": options.texts, "length": LENGTH}, "counts": counts}
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "codes.json").write_text(json.dumps(told) + "\n")
    (options.folder / "codes.svg").write_text(drawn(counts))
    for cells in lines_of(counts):
        print("; ".join(f"{name}: {cell}" for name, cell in zip(HEAD, cells, strict=True)))
    print(options.folder / "codes.svg")


if __name__ == "__main__":
    main()
