"""An attempt of a search: what was tried, what the harness said of it, and where its prompt and its source are kept."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Attempt:
    """A candidate: its constants by name, the number of its parent, the harness's status and reason, and the speedup over the start.

    `low` and `high` are the ends of the speedup's 95 % interval, `time_ns` is its own time. Asking for it and judging it took `seconds`.
    `tokens` were spent on it. `prompt` and `source` are files in the folder of the search.
    """

    number: int
    parent: int
    constants: dict[str, int]
    status: str
    reason: str = ""
    speedup: float = 0.0
    low: float = 0.0
    high: float = 0.0
    time_ns: float = 0.0
    seconds: float = 0.0
    tokens: int = 0
    prompt: str = ""
    source: str = ""

    def kept(self, out, seconds):
        """The same, with how long it took and with the files of it that are in `out`."""
        folder = out / f"attempt_{self.number:03}"
        files = {"prompt": sorted(folder.glob("prompt.md")), "source": sorted(folder.glob("kernels/optimized_*"))}
        named = {name: str(found[0].relative_to(out)) for name, found in files.items() if found}
        return replace(self, seconds=round(seconds, 1), **named)


START = Attempt(0, 0, {}, "PASSED", "the start", 1.0, 1.0, 1.0)
