"""How ranks are laid out, as a string such as "dp2_tp2": the axes of a mesh and how many ranks each has."""

import math
import re

GRID = ("dp", "pp", "tp")  # axes that multiply to the number of ranks, in the order in which ranks are counted
AXES = (*GRID, "sp", "ep")  # sequence parallelism shares the ranks of tp, expert parallelism those of dp


def parse_layout(text, ranks):
    """The ranks of each of AXES, 1 where `text` leaves one out. Raises ValueError, one sentence, unless `ranks` can be laid out so."""
    sizes = dict.fromkeys(AXES, 1)
    seen = set()
    for part in text.split("_"):
        found = re.fullmatch(r"([a-z]+)(\d+)", part)
        if found is None or found[1] not in AXES:
            raise ValueError(
                f"layout {text!r} has an entry {part!r}; expected one of {', '.join(AXES)} and a number of ranks, as in dp2_tp2"
            )
        axis, size = found[1], int(found[2])
        if axis in seen:
            raise ValueError(f"layout {text!r} names {axis} twice; expected every axis at most once")
        if size == 0:
            raise ValueError(f"layout {text!r} gives {axis} no ranks; expected at least 1")
        seen.add(axis)
        sizes[axis] = size
    product = math.prod(sizes[axis] for axis in GRID)
    if product != ranks:
        raise ValueError(f"layout {text!r} has {product} ranks, the product of dp, pp and tp; expected {ranks}")
    if sizes["sp"] not in (1, sizes["tp"]):
        raise ValueError(f"layout {text!r} has sp{sizes['sp']} and tp{sizes['tp']}; expected sp1, or as many as tp, whose ranks it shares")
    if sizes["dp"] % sizes["ep"]:
        raise ValueError(f"layout {text!r} has ep{sizes['ep']} and dp{sizes['dp']}; expected ep to divide dp, whose ranks it shares")
    return sizes


def dense_layout(text, ranks):
    """The same for a model without experts, in one stage. Raises ValueError if the layout has more of either."""
    sizes = parse_layout(text, ranks)
    for axis, what in {"pp": "stages", "ep": "experts"}.items():
        if sizes[axis] != 1:
            raise ValueError(f"layout {text!r} has {axis}{sizes[axis]}; expected {axis}1, as this model has no {what} to share out")
    return sizes
