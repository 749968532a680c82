"""What NVIDIA's nccl-tests print, beside the suite's own figures."""

CLOSE = 0.03  # of nccl-tests' busbw
COLUMNS = 13  # size count type redop root, then time algbw busbw #wrong of a call out of place, and again of one in place


def busbw_of(text, name):
    """From what `all_reduce_perf` printed, busbw of a call in place by size in bytes. Raises ValueError if it has no such row."""
    rows = [words for line in text.splitlines() if len(words := line.split()) == COLUMNS and "".join(words[:2]).isdigit()]
    if not rows:
        raise ValueError(f"{name}: found no row of {COLUMNS} columns; expected the table that all_reduce_perf of nccl-tests prints")
    return {int(words[0]): float(words[11]) for words in rows}


def compared(rows, theirs):
    """A line on the all-reduce of the largest size that both have, and whether its busbw is close. Raises ValueError if there is none."""
    ours = {row["bytes"]: row["busbw"] for row in rows if row["collective"] == "all_reduce"}
    if not (sizes := ours.keys() & theirs.keys()):
        raise ValueError(f"--nccl-tests: found sizes {sorted(theirs)}; expected one of {sorted(ours)}")
    size = max(sizes)
    ratio = ours[size] / theirs[size]
    words = f"# all_reduce of {size} bytes: busbw {ours[size]:.2f}, nccl-tests {theirs[size]:.2f}, {100 * ratio:.1f} %"
    return words, abs(ratio - 1) <= CLOSE
