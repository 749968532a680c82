"""Train the byte-level models of `assets/` on the sources of Python's standard library: a minute each on one GPU.

    python -m common.models.train_byte_lm --preset byte_lm --steps 1500 --out common/models/assets
    python -m common.models.train_byte_lm --preset byte_lm_draft --steps 8000 --out common/models/assets

The corpus has ten million bytes, which a model of three million parameters learns by heart in some twenty passes: what is kept are the
weights with the least loss on files held out.

Writes NAME.safetensors in bfloat16, NAME.json, which says how it was made, and its entry in assets.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import platform
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from common.models import config as presets
from common.models.config import Config
from common.models.decoder import fused_attention, hidden_states, init, logits
from common.models.layers import Weights
from common.tensor_files import write_tensors

PRESETS = {"byte_lm": presets.byte_lm, "byte_lm_draft": presets.byte_lm_draft}
SEED = 20
PEAK_RATE = 3e-3
WARM_UP = 0.02  # of the time
WEIGHT_DECAY = 0.1
HELD_OUT = 20  # every 20th file is for validation
VALIDATION_BLOCKS = 128
VALIDATE_EVERY = 100  # steps

_NOT_LIBRARY = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
_OF_THE_MACHINE = ("_sysconfigdata", "sitecustomize", "usercustomize")  # built or edited where Python was installed


@dataclass(frozen=True)
class Corpus:
    """Bytes to train on and to validate with, [bytes] in uint8, and what they were made from."""

    training: torch.Tensor
    validation: torch.Tensor
    files: int
    digest: str


def library_files(root: Path) -> Iterator[Path]:
    """The standard library's Python sources below `root`, in the order of their relative paths, without tests."""
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        if not (_NOT_LIBRARY & set(path.relative_to(root).parts) or path.is_symlink() or path.name.startswith(_OF_THE_MACHINE)):
            yield path


def read_corpus(root: Path) -> Corpus:
    """The sources below `root`, each behind a zero byte; every twentieth file is held out. The digest is of names and contents."""
    digest = hashlib.sha256()
    texts = (bytearray(), bytearray())
    files = 0
    for path in library_files(root):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {hashlib.sha256(text).hexdigest()}\n".encode())
        texts[files % HELD_OUT == 0].extend(b"\0" + text)
        files += 1
    training, validation = (torch.frombuffer(text, dtype=torch.uint8) for text in texts)
    return Corpus(training, validation, files, digest.hexdigest())


def loss_of(weights: Weights, config: Config, tokens: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of each next byte, in nats: every token of [batch, length + 1] but the last predicts the one behind it."""
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    positions = torch.arange(inputs.shape[1], device=tokens.device)
    scores = logits(weights, config, hidden_states(weights, config, inputs, positions, fused_attention))
    return functional.cross_entropy(scores.flatten(0, 1).float(), targets.flatten())


def blocks_at(text: torch.Tensor, starts: torch.Tensor, length: int) -> torch.Tensor:
    """[starts, length] bytes of `text` from each start on, as int64 tokens."""
    return text[starts[:, None] + torch.arange(length, device=text.device)].long()


@torch.no_grad()
def validation_loss(weights: Weights, config: Config, text: torch.Tensor, context: int) -> float:
    """Nats a byte over blocks spread evenly over `text`."""
    last = len(text) - context - 1
    starts = torch.linspace(0, last, VALIDATION_BLOCKS, dtype=torch.float64).long().to(text.device)
    return sum(loss_of(weights, config, blocks_at(text, part, context + 1)).item() * len(part) for part in starts.split(8)) / len(starts)


def rate_at(progress: float) -> float:
    """Learning rate after a share `progress` of the time: a linear warm-up, then a linear decay to zero."""
    return PEAK_RATE * min(progress / WARM_UP, (1 - progress) / (1 - WARM_UP))


def train(
    options: argparse.Namespace, config: Config, corpus: Corpus, device: torch.device
) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The weights in the preset's dtype that did best on files held out, of every `VALIDATE_EVERY`-th step, and how it went."""
    generator = torch.Generator(device).manual_seed(SEED)
    weights = {name: tensor.float().requires_grad_() for name, tensor in init(config, generator).items()}
    matrices = [tensor for tensor in weights.values() if tensor.dim() > 1]
    vectors = [tensor for tensor in weights.values() if tensor.dim() == 1]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.95), fused=device.type == "cuda")
    training, held_out = corpus.training.to(device), corpus.validation.to(device)
    step = _training_step(weights, config, optimizer, compiled=device.type == "cuda")

    def tokens() -> torch.Tensor:
        starts = torch.randint(len(training) - options.context - 1, (options.batch,), generator=generator, device=device)
        return blocks_at(training, starts, options.context + 1)

    step(tokens(), 0.0).item()  # a rate of zero: it compiles and changes nothing
    best: dict[str, torch.Tensor] = {}
    done: dict[str, Any] = {"validation_loss": math.inf}
    start = time.monotonic()
    for count in range(1, options.steps + 1):
        loss = step(tokens(), rate_at(count / options.steps))
        if count % VALIDATE_EVERY == 0 or count == options.steps:
            rounded = {name: tensor.detach().to(config.dtype) for name, tensor in weights.items()}
            found = validation_loss(rounded, config, held_out, options.context)
            print(f"step {count} of {options.steps}: loss {loss.item():.4f}, held out {found:.4f} nats/byte", flush=True)
            if found < done["validation_loss"]:
                best = {name: tensor.clone() for name, tensor in rounded.items()}
                done = {"validation_loss": round(found, 4), "train_loss": round(loss.item(), 4), "kept_step": count}
    return best, {**done, "tokens": options.steps * options.batch * options.context, "seconds": round(time.monotonic() - start, 1)}


def _training_step(
    weights: Weights, config: Config, optimizer: torch.optim.Optimizer, *, compiled: bool
) -> Callable[[torch.Tensor, float], torch.Tensor]:
    loss_function = torch.compile(loss_of) if compiled else loss_of

    def step(tokens: torch.Tensor, rate: float) -> torch.Tensor:
        for group in optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(tokens.device.type, torch.bfloat16):
            loss = loss_function(weights, config, tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def write(folder: Path, name: str, weights: dict[str, torch.Tensor], card: dict[str, Any]) -> None:
    """Write the weights, the card with their digest, and their entry in the registry of `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.safetensors"
    write_tensors(path, weights)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / f"{name}.json").write_text(json.dumps({"name": name, "file": path.name, "sha256": digest, **card}, indent=2) + "\n")
    registry = folder / "assets.json"
    entries = json.loads(registry.read_text()) if registry.exists() else {}
    entries[name] = {"file": path.name, "sha256": digest}
    registry.write_text(json.dumps(dict(sorted(entries.items())), indent=2) + "\n")


def main() -> None:
    """Train one preset and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=sorted(PRESETS), required=True)
    parser.add_argument("--steps", type=int, default=1500, help="optimizer steps; the best on files held out is kept")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--batch", type=int, default=32, help="sequences a step")
    parser.add_argument("--context", type=int, default=2048, help="bytes a sequence")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = PRESETS[options.preset]()
    corpus = read_corpus(Path(sysconfig.get_paths()["stdlib"]))
    print(
        f"{options.preset}: {corpus.files} files, {len(corpus.training)} bytes to train on, {len(corpus.validation)} held out", flush=True
    )
    weights, done = train(options, config, corpus, device)
    print(f"kept step {done['kept_step']}: {done['validation_loss']:.4f} nats/byte in {config.dtype}", flush=True)
    card = {
        "made_by": "python -m common.models.train_byte_lm",
        "parameters": sum(tensor.numel() for tensor in weights.values()),
        **done,
        "options": {"steps": options.steps, "batch": options.batch, "context": options.context, "seed": SEED},
        "gpu": torch.cuda.get_device_name() if device.type == "cuda" else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "corpus": {
            "source": "the standard library's .py files without tests",
            "files": corpus.files,
            "training_bytes": len(corpus.training),
            "validation_bytes": len(corpus.validation),
            "sha256": corpus.digest,
        },
    }
    write(options.out, options.preset, weights, card)


if __name__ == "__main__":
    main()
