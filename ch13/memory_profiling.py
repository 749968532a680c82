"""What fills the memory of a step: every allocation of both sides of memory_profiling, recorded, and the bytes in use drawn over time.

./setup.sh python ch13/memory_profiling.py [folder]

Writes SIDE.pickle, which https://docs.pytorch.org/memory_viz opens, and SIDE.svg, as memory_picture.py draws it. Prints the lines
that allocated most of what is in use at the peak. Needs a GPU.
"""

import sys
from pathlib import Path

import torch
from shared_memory_picture import picture
from shared_memory_trace import in_use, lines_at

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side, load_workload

CHAPTER = Path(__file__).parent


def record(side, folder):
    """The bytes in use before the second step of a side, and the allocator's snapshot behind it, which stays in `folder`."""
    workload = load_workload(CHAPTER / "workload_memory_profiling.py")
    (shape,) = workload.timed_shapes.values()
    inputs = Inputs(workload, shape, 0, torch.device("cuda"), folder)
    step = load_side(CHAPTER / f"{side}_memory_profiling.py", workload, None).prepare(inputs.values, shape)
    step()
    held = torch.cuda.memory_allocated()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000)
    kept = step()  # until the snapshot is taken: what is freed before counts as temporary
    torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot(str(folder / f"{side}.pickle"))
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    del kept
    return held, snapshot


def main(folder):
    """Both sides, one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    for side in ("baseline", "optimized"):
        held, snapshot = record(side, folder)
        events = snapshot["device_traces"][0]
        sizes, peak = in_use(held, events)
        (folder / f"{side}.svg").write_text(picture(f"{side}: memory of a step", snapshot))
        print(f"{side}: {sizes[peak] / 1e9:.2f} GB at the peak, of which before the step {held / 1e9:.2f} GB")
        for line, count in lines_at(events, peak):
            print(f"  {count / 1e9:.2f} GB  {line}")


if __name__ == "__main__":
    if torch.cuda.is_available():
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("artifacts/memory_profiling"))
    else:
        print("ch13/memory_profiling.py: found no CUDA device; expected one, whose allocations can be recorded", file=sys.stderr)
        sys.exit(5)
