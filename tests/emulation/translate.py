"""From CUDA C++ to C++: what no macro can do is done to the text, and nothing else; a form that is not emulated is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from common.python.child.sides.cuda import label_of
from common.python.project import PROJECT_ROOT

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">].*$', re.MULTILINE)
_PRAGMA_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once.*$", re.MULTILINE)
_SHARED = re.compile(r"(?:\b(?P<before>extern|static)\s+)?\b__shared__\b(?:\s+(?P<after>extern|static)\b)?(?P<declaration>[^;]*);")
_ALIGNMENT = re.compile(r"\b(?:alignas|__align__)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_DECLARATOR = re.compile(r"(?P<type>.*?)\b(?P<name>\w+)\s*(?P<dimensions>(?:\[[^\]]*\]\s*)*)", re.DOTALL)

_EMULATED_HEADERS = {
    *("cuda_runtime.h", "cuda_runtime_api.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_pipeline.h", "cuda_pipeline_primitives.h"),
    *("cuda/pipeline", "cooperative_groups.h", "cooperative_groups/memcpy_async.h", "cooperative_groups/reduce.h"),
    *("device_launch_parameters.h", "vector_types.h", "vector_functions.h"),
}
_OURS_EMULATED = {"common/cuda/clock.cuh"}  # inline PTX for which the emulation has a function of its own
_CUDA_HEADER = re.compile(r"(?:cu|mma|cooperative_groups|nv|thrust|cub|cute|cutlass|curand|math_constants)\w*(?:[./].*)?$")
_NOT_EMULATED = {
    "inline PTX": re.compile(r"\b(?:asm|__asm__)\b"),
    "a thread-block cluster": re.compile(r"\b__cluster_dims__\b|\bcudaLaunchAttributeClusterDimension\b"),
    "a launch through a configuration": re.compile(r"\bcudaLaunch(?:CooperativeKernel\w*|Kernel(?!Ex\b)\w*)\b"),
    "a launch from the device": re.compile(r"\bcudaStream(?:TailLaunch|FireAndForget)\b"),
    "a graph that is not captured": re.compile(r"\bcudaGraph(?:Add(?!Node\b)|Exec(?!Destroy|Update|_t))\w*\b"),
    "an RDMA card": re.compile(r"\bibv_\w+"),
    "a grid-wide group": re.compile(r"\bthis_(?:grid|cluster)\b"),
}


class NotEmulated(Exception):
    """A side uses what the emulation does not have; its text is one sentence."""


def translate(source: Path) -> str:
    """The C++ that `source` becomes: its quoted includes in place, launches as calls, shared variables as references."""
    label = _label(source)
    text = "".join(_expanded(source, set()))
    for what, pattern in _NOT_EMULATED.items():
        if found := pattern.search(text):
            raise NotEmulated(f"{label}: uses {what} (`{found[0]}`), which is not emulated")
    return _launches(_SHARED.sub(lambda found: _shared(found, label), text))


def _expanded(path: Path, seen: set[Path]) -> Iterator[str]:
    """The text of `path` without comments, each include replaced by what it names; line numbers stay those of the file."""
    seen.add(path.resolve())
    text = _TOKEN.sub(
        lambda found: found[0] if found[0].startswith('"') else re.sub(r"[^\n]", " ", found[0]), path.read_text(encoding="utf-8")
    )
    text = _PRAGMA_ONCE.sub("", text)
    yield f'#line 1 "{_label(path)}"\n'
    end = 0
    for found in _INCLUDE.finditer(text):
        yield text[end : found.start()]
        end = found.end()
        if found[2] in _OURS_EMULATED:
            continue
        if found[1] == "<":
            yield from _library_header(found, path)
            continue
        included = next((folder / found[2] for folder in (path.parent, *path.parents, PROJECT_ROOT) if (folder / found[2]).is_file()), None)
        if included is None:
            yield from _library_header(found, path)
        elif included.resolve() not in seen:
            yield from _expanded(included, seen)
            yield f'\n#line {text.count(chr(10), 0, end) + 2} "{_label(path)}"'
    yield text[end:]


def _library_header(found: re.Match[str], path: Path) -> Iterator[str]:
    if found[2] not in _EMULATED_HEADERS:
        if _CUDA_HEADER.match(found[2]):
            raise NotEmulated(f"{_label(path)}: includes {found[2]}, which is not emulated")
        yield found[0]


def _label(path: Path) -> str:
    path = path.resolve()
    return str(path.relative_to(PROJECT_ROOT)) if path.is_relative_to(PROJECT_ROOT) else label_of(path)


def _shared(found: re.Match[str], label: str) -> str:
    """`__shared__ float a[2][3], b;` as references to what the emulation keeps for the block."""
    alignments = _ALIGNMENT.findall(found["declaration"])
    declared = " ".join(_ALIGNMENT.sub(" ", found["declaration"]).split())
    first, *others = _split(declared)
    match = _DECLARATOR.fullmatch(first)
    dynamic = "extern" in (found["before"], found["after"])
    at_namespace_scope = found.string.count("{", 0, found.start()) == found.string.count("}", 0, found.start())
    if match is None or not match["type"].strip() or set("({*&") & set(match["type"]) or at_namespace_scope:
        where = " outside a function" if at_namespace_scope else ""
        raise NotEmulated(f"{label}: declares `__shared__ {declared}`{where}, which is not emulated")
    kind = match["type"].strip()
    alignment = f"std::max({{{', '.join(f'size_t({value})' for value in (f'alignof({kind})', *alignments))}}})"
    made = []
    for name, dimensions in [(match["name"], match["dimensions"]), *(_name_and_dimensions(other, label) for other in others)]:
        if dynamic:
            made.append(f"auto* const {name} = static_cast<{kind}*>(cuda_on_cpu::dynamic_shared({alignment}));")
        else:
            made.append(
                f'static cuda_on_cpu::Shared {name}_shared("{name}"); auto& {name} = {name}_shared.as<{kind} {dimensions}>({alignment});'
            )
    return " ".join(made) + "\n" * found[0].count("\n")


def _name_and_dimensions(declarator: str, label: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\w+)\s*((?:\[[^\]]*\]\s*)*)", declarator)
    if match is None:
        raise NotEmulated(f"{label}: declares `__shared__ ... {declarator}`, a form that is not emulated")
    return match[1], match[2]


def _split(text: str) -> list[str]:
    """`text` at its commas, but for those in brackets of any kind."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def _launches(text: str) -> str:
    """`kernel<T><<<grid, block>>>(x)` as `cuda_on_cpu::launch("kernel", [=](auto... a) { kernel<T>(a...); }, grid, block)(x)`."""
    while (begin := text.find("<<<")) >= 0:
        end = text.index(">>>", begin)
        start = _kernel_start(text, begin)
        kernel, config = " ".join(text[start:begin].split()), text[begin + 3 : end]
        call = f'cuda_on_cpu::launch("{kernel}", [=](auto... a) {{ {kernel}(a...); }}, {config})'
        text = text[:start] + "\n" * text.count("\n", start, begin) + call + text[end + 3 :]
    return text


def _kernel_start(text: str, end: int) -> int:
    """Where the name before `<<<` begins, its template arguments included."""
    start = len(text[:end].rstrip())
    if text[start - 1] == ">":
        depth = 0
        while True:
            start -= 1
            depth += (text[start] == ">") - (text[start] == "<")
            if depth == 0:
                break
    return start - len(re.search(r"[\w:]*\s*$", text[:start])[0])  # type: ignore[index]
