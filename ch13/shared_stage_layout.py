"""Layouts in which the axis dp may be left out: it then takes the ranks that the other axes leave."""

import math
import re

from shared_mesh_layout import parse_layout


def filled(text, ranks):
    """`text` with an entry for dp."""
    sizes = dict(re.findall(r"(dp|pp|tp)(\d+)", text))
    return text if "dp" in sizes else f"{text}_dp{max(1, ranks // max(1, math.prod(map(int, sizes.values()))))}"


def stage_layout(text, ranks, layers):
    """The ranks of each axis for a model of equal stages. Raises ValueError, one sentence, if there are none or it has experts."""
    sizes = parse_layout(filled(text, ranks), ranks)
    if layers % sizes["pp"]:
        raise ValueError(f"layout {text!r} has pp{sizes['pp']}; expected a divisor of the model's {layers} layers")
    if sizes["ep"] != 1:
        raise ValueError(f"layout {text!r} has ep{sizes['ep']}; expected ep1, as this model has no experts to share out")
    return sizes


def expert_layout(text, ranks, experts):
    """The ranks of each axis for a model of experts, of which every rank has as many. Raises ValueError, one sentence, for others."""
    sizes = parse_layout(filled(text, ranks), ranks)
    for axis in ("pp", "tp"):
        if sizes[axis] != 1:
            raise ValueError(f"layout {text!r} has {axis}{sizes[axis]}; expected {axis}1, as this model shares out experts alone")
    if experts % ranks:
        raise ValueError(f"found {experts} experts and {ranks} ranks; expected as many experts on every rank")
    return sizes
