"""Draw the memory of a recorded step over time by category, from a snapshot of PyTorch's CUDA allocator. Needs no GPU.

./setup.sh python ch13/memory_picture.py SNAPSHOT.pickle [PICTURE.svg]

Categories: what was there before the step, activations of forward, what checkpoints recompute, temporaries of backward, and what is
kept, as gradients are. A snapshot is a pickle: draw none that you do not trust. Record one around a step by:

    torch.cuda.memory._record_memory_history()
    kept = step()  # gradients that are freed before the snapshot count as temporary
    torch.cuda.memory._dump_snapshot("SNAPSHOT.pickle")
"""

import pickle
import sys
from html import escape
from pathlib import Path

from shared_memory_picture import picture


def main(arguments):
    """Draw; 0, or 2 for an argument that is not as it should be."""
    if not 1 <= len(arguments) <= 2:
        print(
            "ch13/memory_picture.py: expected SNAPSHOT.pickle, and PICTURE.svg to write another file than the snapshot's", file=sys.stderr
        )
        return 2
    source = Path(arguments[0])
    target = Path(arguments[1]) if len(arguments) == 2 else source.with_suffix(".svg")
    try:
        snapshot = pickle.loads(source.read_bytes())
        drawing = picture(f"{escape(source.stem)}: memory of a step", snapshot)
    except (OSError, EOFError, ValueError, LookupError, pickle.UnpicklingError) as error:
        print(f"ch13/memory_picture.py: {source}: {error}", file=sys.stderr)
        return 2
    target.write_text(drawing)
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
