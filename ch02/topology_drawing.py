"""A drawing of what hardware_info.py found: nodes above, their GPUs below, and the links between."""

from html import escape

BOX, GAP, HIGH = 190, 30, 60
NODES_Y, GPUS_Y, SWITCH_Y = 20, 180, 330
UNKNOWN = -1


def box(x, y, lines, fill):
    """A box with lines of text."""
    text = "".join(
        f'<text x="{x + BOX / 2}" y="{y + 20 + 15 * row}" text-anchor="middle">{escape(line)}</text>' for row, line in enumerate(lines)
    )
    return f'<rect x="{x}" y="{y}" width="{BOX}" height="{HIGH}" rx="6" fill="{fill}" stroke="#345"/>{text}'


def line(x1, y1, x2, y2, label, color):
    """A link with its name beside its middle."""
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="2"/>'
        f'<text x="{(x1 + x2) / 2 + 5}" y="{(y1 + y2) / 2}" fill="{color}">{escape(label)}</text>'
    )


def arc(x1, x2, label):
    """A link between two GPUs, below them."""
    y, middle = GPUS_Y + HIGH, (x1 + x2) / 2
    return (
        f'<path d="M {x1} {y} Q {middle} {y + 90} {x2} {y}" fill="none" stroke="#283" stroke-width="2"/>'
        f'<text x="{middle}" y="{y + 58}" text-anchor="middle" fill="#283">{escape(label)}</text>'
    )


def host_link(gpu):
    """What connects a GPU to its CPU, in words."""
    if gpu["c2c"]:
        return "NVLink-C2C"
    known = gpu["pcie_generation"] is not None and gpu["pcie_width"] is not None
    return f"PCIe {gpu['pcie_generation']} x{gpu['pcie_width']}" if known else "PCIe"


def centers(count, width):
    """The middles of `count` boxes, spread over a width."""
    return [width * (2 * place + 1) / (2 * count) for place in range(count)]


def drawn(found):
    """The topology as SVG. A GPU whose node is unknown has no line to one."""
    nodes, gpus = found["nodes"], found["gpus"]
    width = max(len(nodes), len(gpus), 1) * (BOX + GAP)
    at_node = dict(zip([node["node"] for node in nodes], centers(max(1, len(nodes)), width), strict=False))
    at_gpu = centers(max(1, len(gpus)), width)
    parts = []
    for gpu, x in zip(gpus, at_gpu, strict=False):
        if gpu["numa_node"] in at_node:
            parts.append(line(at_node[gpu["numa_node"]], NODES_Y + HIGH, x, GPUS_Y, host_link(gpu), "#345"))
        for link in gpu["nvlinks"]:
            label = f"{link['links']} NVLinks"
            if link["to"] == "NVSwitch":
                parts.append(line(x, GPUS_Y + HIGH, width / 2, SWITCH_Y, label, "#283"))
            elif link["to"].startswith("GPU ") and int(link["to"][4:]) > gpu["index"]:
                parts.append(arc(x, at_gpu[int(link["to"][4:])], label))
    for node in nodes:
        memory = "" if node["memory_bytes"] is None else f"{node['memory_bytes'] / 2**30:.0f} GiB"
        parts.append(box(at_node[node["node"]] - BOX / 2, NODES_Y, [f"NUMA node {node['node']}", f"cores {node['cpus']}", memory], "#def"))
    for gpu, x in zip(gpus, at_gpu, strict=False):
        memory = "" if gpu["memory_bytes"] is None else f"{gpu['memory_bytes'] / 2**30:.0f} GiB"
        node = ", node unknown" if gpu["numa_node"] == UNKNOWN else ""
        parts.append(box(x - BOX / 2, GPUS_Y, [f"GPU {gpu['index']}{node}", gpu["name"][:28], memory], "#efd"))
    if any(link["to"] == "NVSwitch" for gpu in gpus for link in gpu["nvlinks"]):
        parts.append(box(width / 2 - BOX / 2, SWITCH_Y, ["NVSwitch"], "#fed"))
    if not gpus:
        parts.append(f'<text x="{width / 2}" y="{GPUS_Y}" text-anchor="middle">no GPU is seen</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {SWITCH_Y + HIGH + 20}" font-family="sans-serif" font-size="12">'
        f"{''.join(parts)}</svg>\n"
    )
