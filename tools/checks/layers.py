"""Imports point down only, the parent's side of the process boundary is free of torch, and what must start fast stays light."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.checks.source import Finding, Source

# The modules of common/python, lowest first: each may import those before it.
LAYERS = (
    *("errors", "command", "results", "exit_codes", "ceiling", "stats", "gate", "project", "settings", "features", "directives"),
    *("storage", "identity", "claims", "workload", "wording", "environment", "page_cache", "cache_files"),
    *("discovery", "ladder", "targets", "revisions", "message", "protocol", "connection", "disassembly"),
    *("step_trace", "ncu_tables", "nsys_tables", "evidence"),
    *("figures", "role_trace", "counters", "why_faster", "roofline", "advice", "report", "charts", "listings", "html_pair", "html_report"),
    "artifacts",
    *("metrics_extractor", "llm_analysis"),
    *("machine_ceilings", "noise", "expectations"),
    *("random_inputs", "cuda_build", "cuda_launch", "loader", "cuda_driver", "device_helpers", "stream_choice"),
    *("dumps", "verification", "escape", "wall_clock", "tail", "timing", "seal"),
    *("launch_trace", "triton_start", "triton_ahead", "host_ceilings", "matrix_ceilings", "ceilings", "profile_job", "profile_child"),
    *("worker", "referee", "describer", "isolation_child"),
    *("isolation", "parallel_jobs", "telemetry", "doctor", "profiled_process"),
    *("planning", "standards", "acceptance", "regressions", "comparison"),
    *("rank_group", "bench", "triton_compilations", "proving", "building", "profiling", "throttle", "stopping", "cores", "measurement"),
    *("benchmark_harness", "sanitizing", "suite", "trials"),
    *("peak", "terminal", "options", "show", "scaffold"),
)

# Those that run beyond the process boundary, where torch is.
CHILD_SIDE = frozenset(
    (
        "random_inputs",
        "cuda_launch",
        "loader",
        "cuda_driver",
        "device_helpers",
        "stream_choice",
        "dumps",
        "escape",
        "seal",
        "timing",
        "verification",
        "worker",
        "referee",
        "describer",
        "host_ceilings",
        "matrix_ceilings",
        "ceilings",
        "isolation_child",
        "launch_trace",
        "triton_ahead",
        "triton_start",
        "profile_child",
    )
)

TORCH = frozenset(("torch", "triton"))
SLOW = TORCH | {"pydantic", "typer", "rich", "numpy", "scipy", "jinja2"}
LIGHT = ("common.python.pairs.discovery", "common.python.pairs.targets", "common.python.project")  # `list-targets` answers in 0.3 s

_PACKAGE = "common.python."


@dataclass(frozen=True)
class Import:
    """One import: the line, the dotted name it reaches, and whether it is there for the type checker alone."""

    line: int
    module: str
    for_types: bool


def check_layers(sources: Iterable[Source]) -> Iterator[Finding]:
    """Findings of all import rules, over the Python files of common/ and tools/."""
    modules = {_dotted(source): source for source in sources if source.is_ours}
    imports = {name: [*_packages(name), *_imports(source, modules)] for name, source in modules.items()}
    yield from _downward(modules, imports)
    for name in modules:
        layer = name.removeprefix(_PACKAGE)
        if layer not in CHILD_SIDE and name.startswith(("common", "tools.cli")):
            yield from _free_of(TORCH, name, modules, imports, "an import that never reaches it on the parent's side")
    for name in LIGHT:
        if name in modules:
            yield from _free_of(SLOW, name, modules, imports, "nothing slow to import")


def _downward(modules: dict[str, Source], imports: dict[str, list[Import]]) -> Iterator[Finding]:
    place = {name: index for index, name in enumerate(LAYERS)}
    for name, source in modules.items():
        layer = name.removeprefix(_PACKAGE)
        if name.startswith(_PACKAGE) and layer not in place:
            yield source.finding(1, "layers", f"module {layer} in no layer", "its place in LAYERS of tools/checks/layers.py")
            continue
        for imported in imports[name]:
            target = imported.module.removeprefix(_PACKAGE)
            if name.startswith("common") and imported.module.partition(".")[0] == "tools":
                yield source.finding(imported.line, "layers", f"an import of {imported.module}", "common/ to know nothing of tools/")
            elif layer in place and place.get(target, -1) >= place[layer]:
                yield source.finding(imported.line, "layers", f"{layer} importing {target}", f"only modules below {layer}")


def _free_of(
    packages: frozenset[str], start: str, modules: dict[str, Source], imports: dict[str, list[Import]], expected: str
) -> Iterator[Finding]:
    """A finding for each import of `start` that leads to one of `packages`, with the way there."""
    for imported in imports[start]:
        if not imported.for_types and (way := _way_to(packages, imported.module, imports, {start})):
            yield modules[start].finding(imported.line, "light imports", " -> ".join((start, *way)), expected)


def _way_to(packages: frozenset[str], module: str, imports: dict[str, list[Import]], seen: set[str]) -> tuple[str, ...]:
    """The modules from `module` to the first import of one of `packages`; empty if none is reached."""
    if module.partition(".")[0] in packages:
        return (module,)
    if module in seen:
        return ()
    seen.add(module)
    for imported in imports.get(module, ()):
        if not imported.for_types and (way := _way_to(packages, imported.module, imports, seen)):
            return (module, *way)
    return ()


def _dotted(source: Source) -> str:
    return source.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _packages(module: str) -> Iterator[Import]:
    """The packages that hold `module`: importing it runs them first."""
    while "." in module:
        module = module.rpartition(".")[0]
        yield Import(1, module, for_types=False)


def _imports(source: Source, modules: dict[str, Source]) -> Iterator[Import]:
    """Every import of the file, those inside functions too."""
    try:
        tree = source.syntax
    except SyntaxError:
        return
    for_types = {id(child) for node in ast.walk(tree) if _is_for_types(node) for child in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, id(node) in for_types)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                base = _base_of(node, source)
                name = f"{base}.{alias.name}"
                yield Import(node.lineno, name if name in modules else base, id(node) in for_types)


def _base_of(node: ast.ImportFrom, source: Source) -> str:
    """The dotted name that `from ... import` starts at; a relative one is counted from the file's folder."""
    folder = source.parts[: len(source.parts) - node.level] if node.level else ()
    return ".".join((*folder, *([node.module] if node.module else [])))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
