"""Train byte_lm from the same weights on the same text with BF16 and with FP8 linear layers, and draw both losses.

    ./setup.sh python ch19/loss_curves.py [--recipe tiles|tensor|delayed] [--steps 500] [--folder artifacts/loss_curves]

FP8 is e4m3 in all three products of a layer. `tiles` has DeepSeek-V3's scales (arXiv:2412.19437): one for each 128 values along the sum,
and one for each 128 x 128 of a weight. `tensor` has one for each tensor, `delayed` one from its largest values of the last 16 steps.
Rounded values are multiplied and summed in float32, then rounded to BF16. So the losses are FP8's on any device; no time is claimed.
A call with the same folder goes on where the last ended, but `delayed` measures anew.

Writes losses.json and losses.svg. To show them in the README: copy the first to ch19/loss_curves_h200.json, say, and run
tools/checks/readme_tables.py.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from shared_byte_text import text
from shared_byte_training import CONFIG, loss_of
from shared_delayed_rounding import delayed_linear
from shared_fp8_rounding import linear_in_bf16, linear_of
from shared_loss_lines import drawn, last_losses
from shared_run_origin import origin_of

from common.models.decoder import init
from common.models.train_byte_lm import blocks_at, rate_at

KEEP_EVERY = 10  # steps between two checkpoints
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def at_least(least):
    """A flag's whole number."""

    def number(said):
        if not said.isdecimal() or int(said) < least:
            raise argparse.ArgumentTypeError(f"found {said!r}; expected a whole number of at least {least}")
        return int(said)

    return number


def options_of(arguments):
    """The command line's flags."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    recipes = ("tiles", "tensor", "delayed")
    parser.add_argument("--recipe", choices=recipes, default="tiles", help="which values share a scale (default: tiles)")
    parser.add_argument("--steps", type=at_least(2), default=500, help="steps of AdamW (default: 500)")
    parser.add_argument("--sequences", type=at_least(1), default=16, help="texts a step (default: 16)")
    parser.add_argument("--length", type=at_least(2), default=256, help="bytes of a text (default: 256)")
    parser.add_argument("--seed", type=at_least(0), default=0, help="draws weights and texts (default: 0)")
    parser.add_argument("--folder", type=Path, default=Path("artifacts/loss_curves"), help="checkpoints, losses.json and losses.svg")
    return parser.parse_args(arguments)


def texts_of(options, step):
    """The texts of a step, the same for both precisions and for a run that goes on: int64 [sequences, length + 1]."""
    data = torch.frombuffer(bytearray(text()), dtype=torch.uint8)
    draw = torch.Generator().manual_seed(options.seed * 1_000_003 + step)
    starts = torch.randint(len(data) - options.length - 1, (options.sequences,), generator=draw)
    return blocks_at(data, starts, options.length + 1).to(DEVICE)


def trained(options, name, linear):
    """The loss of every step, in nats a byte, with a checkpoint in between."""
    file = options.folder / f"{name}.pt"
    settings = {key: vars(options)[key] for key in ("steps", "sequences", "length", "seed")}
    weights = {key: w.requires_grad_() for key, w in init(CONFIG, torch.Generator(DEVICE).manual_seed(options.seed)).items()}
    optimizer = torch.optim.AdamW(weights.values(), betas=(0.9, 0.95), weight_decay=0.0)
    losses = []
    if file.exists():
        kept = torch.load(file, map_location=DEVICE, weights_only=True)
        if kept["settings"] != settings:
            sys.exit(
                f"loss_curves.py: --folder {options.folder}: found a run with {kept['settings']}; expected {settings} or another folder"
            )
        losses = kept["losses"]
        optimizer.load_state_dict(kept["optimizer"])
        with torch.no_grad():
            for key, w in weights.items():
                w.copy_(kept["weights"][key])
    for step in range(len(losses), options.steps):
        loss = loss_of(weights, texts_of(options, step), linear)
        loss.backward()
        optimizer.param_groups[0]["lr"] = rate_at((step + 1) / (options.steps + 1))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if (step + 1) % KEEP_EVERY == 0 or step + 1 == options.steps:
            state = {"settings": settings, "losses": losses, "weights": weights, "optimizer": optimizer.state_dict()}
            torch.save(state, file.with_suffix(".part"))
            file.with_suffix(".part").replace(file)
            print(f"\r{name}: {step + 1} of {options.steps}, {losses[-1]:.3f} nats/byte ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return losses


def main(arguments=None):
    """Train with both, then draw and say how far apart they end."""
    options = options_of(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    fp8 = f"fp8_{options.recipe}"
    in_fp8 = delayed_linear() if options.recipe == "delayed" else linear_of(options.recipe)
    curves = {name: trained(options, name, linear) for name, linear in (("bf16", linear_in_bf16), (fp8, in_fp8))}
    told = {key: vars(options)[key] for key in ("recipe", "steps", "sequences", "length", "seed")}
    kept = {name: [round(loss, 5) for loss in losses] for name, losses in curves.items()}
    (options.folder / "losses.json").write_text(json.dumps(origin_of(DEVICE) | {"settings": told, "losses": kept}) + "\n")
    (options.folder / "losses.svg").write_text(drawn(kept))
    tenth, last = last_losses(kept)
    for name, loss in last.items():
        print(f"{name}: {loss:.4f} nats/byte, mean of the last {tenth} steps")
    apart = last[fp8] - last["bf16"]
    print(f"{fp8} - bf16: {apart:+.4f} nats/byte, {apart / last['bf16']:+.2%}; {options.folder / 'losses.svg'}")


if __name__ == "__main__":
    main()
