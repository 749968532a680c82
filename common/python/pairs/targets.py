"""What a user may call a pair, a half or a folder, and which sides a run then measures."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.pairs.directives import first_line
from common.python.pairs.discovery import HALVES, Pair, Tree, canonical
from common.python.pairs.suggestions import about, spelt

WHOLE = "pair"
_MOST_NEAR = 5
_CLAIM = re.compile(r"^\s*(?://|#)\s*(?:proves|has):\s*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Selection:
    """A pair and those of its sides that are to be measured: all of them, or a half, which is one alone."""

    pair: Pair
    sides: tuple[str, ...]

    @property
    def is_half(self) -> bool:
        """True for one side alone, which has a time and no speedup."""
        return len(self.sides) == 1


@dataclass(frozen=True)
class Selected:
    """Each pair that was named, once, in the order of first mention; `notes` are sentences about names that stand for others."""

    selections: tuple[Selection, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Meaning:
    """What a target stands for: the pair, by its canonical target, and `side`, a half or WHOLE; `renamed` if by an alias."""

    pair: str
    side: str
    renamed: bool = False


def select(tree: Tree, targets: Sequence[str]) -> Selected:
    """The selections that `targets` name; no target is everything.

    A target is `dir`, `dir:pair`, `dir:pair_baseline`, `dir:baseline_pair` (with `optimized` alike), or an alias.
    Both halves of a pair are the pair; a half that a selected pair measures anyway is not measured twice.
    Raises BenchmarkError for a name that means nothing here, for one that is only planned, and for a folder with problems.
    """
    if not targets and not tree.directories:
        raise BenchmarkError(f"{tree.root}: found no pair; expected workload_<name>.py with baseline_<name> and optimized_<name> beside it")
    pairs = {canonical(pair.target): pair for pair in tree.pairs}
    wanted: dict[str, set[str]] = {}
    notes: list[str] = []
    for target in map(canonical, targets or tree.directories):
        for meaning in _meanings(tree, pairs, target):
            wanted.setdefault(meaning.pair, set()).add(meaning.side)
            if meaning.renamed:
                what = "another name" if meaning.side == WHOLE else f"the {meaning.side} side"
                notes.append(f"{target} is {what} of {meaning.pair}")
    selections = [_selection(pairs[name], sides) for name, sides in wanted.items()]
    measured = {item: chosen.pair for chosen in selections if not chosen.is_half for item in chosen.pair.sides.items()}
    kept = []
    for chosen in selections:
        side = chosen.sides[0]
        if chosen.is_half and (owner := measured.get((side, chosen.pair.sides[side]))):
            notes.append(f"the {side} side of {chosen.pair.target} is that of {owner.target}, and is measured there")
        else:
            kept.append(chosen)
    return Selected(tuple(kept), tuple(dict.fromkeys(notes)))


def in_directory(tree: Tree, name: str) -> tuple[Pair, ...]:
    """The pairs of the folder that targets call `name`. Raises BenchmarkError if it has neither pairs nor problems."""
    directory = canonical(name)
    if directory not in map(canonical, tree.directories):
        if any(target.startswith(f"{directory}:") for target in catalogue()):
            raise _planned(directory, directory)
        raise _unknown(tree, directory, [*tree.directories, *(pair.target for pair in tree.pairs)])
    return tuple(pair for pair in tree.pairs if canonical(pair.directory) == directory)


@cache
def catalogue() -> tuple[str, ...]:
    """Every target that the project promises, written or not."""
    promised: list[str] = json.loads(Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8"))
    return tuple(promised)


@cache
def aliases() -> Mapping[str, Meaning]:
    """Other names of pairs and halves: where a reader of an older text looks for them."""
    named: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("aliases.json").read_text(encoding="utf-8"))
    return {name: Meaning(**alias, renamed=True) for name, alias in named.items()}


def _meanings(tree: Tree, pairs: Mapping[str, Pair], target: str) -> list[Meaning]:
    if ":" not in target:
        found = [Meaning(canonical(pair.target), WHOLE) for pair in in_directory(tree, target)]
        _refuse_problems(tree, target)
        return found
    if meaning := _meaning(target, pairs):
        _refuse_problems(tree, meaning.pair)
        return [meaning]
    promised = _meaning(target, catalogue())
    _refuse_problems(tree, promised.pair if promised else target)
    raise _planned(target, promised.pair) if promised else _unknown(tree, target, [*pairs, *tree.directories])


def _meaning(target: str, known: Collection[str]) -> Meaning | None:
    """What `target` stands for among the `known` pairs: one of them, else an alias of one, else a half of either."""
    if target in known:
        return Meaning(target, WHOLE)
    if (alias := aliases().get(target)) and alias.pair in known:
        return alias
    directory, _, name = target.partition(":")
    for half in HALVES:
        for stem in (name.removesuffix(f"_{half}"), name.removeprefix(f"{half}_")):
            whole = None if stem == name else _meaning(f"{directory}:{stem}", known)
            if whole and whole.side == WHOLE:
                return replace(whole, side=half)
    return None


def _selection(pair: Pair, wanted: set[str]) -> Selection:
    whole = WHOLE in wanted or wanted.issuperset(HALVES)
    return Selection(pair, tuple(pair.sides) if whole else tuple(wanted))


def _refuse_problems(tree: Tree, target: str) -> None:
    directory = target.partition(":")[0]
    sentences = [sentence for label in tree.problems if canonical(label) == directory for sentence in tree.problems[label]]
    if sentences:
        more = f" (and {len(sentences) - 1} more)" if len(sentences) > 1 else ""
        raise BenchmarkError(sentences[0] + more)


def _planned(target: str, promised: str) -> BenchmarkError:
    subject = target if promised == target else f"{target} stands for {promised}, which"
    return BenchmarkError(f"{subject} is planned and not written yet")


def _unknown(tree: Tree, target: str, names: Sequence[str]) -> BenchmarkError:
    several = [canonical(part) for part in re.split(r"[,\s]+", target) if part]
    if len(several) > 1 and set(several) <= set(names):
        return BenchmarkError(f"target {target!r}: found several in one; expected {' '.join(f'--targets {name}' for name in several)}")
    named = [name for name in names if target in name]
    near = list(dict.fromkeys([*named, *_about(tree, target)]))[:_MOST_NEAR] or difflib.get_close_matches(target, names)
    expected = f"one like {', '.join(near)}" if near else "one that list-targets prints"
    return BenchmarkError(f"target {target!r}: found nothing of that name; expected {expected}")


def _about(tree: Tree, target: str) -> Iterator[str]:
    """Pairs with the words of `target` in their names, ideas and claims: first those of its folder, of which the best named first."""
    directory, _, name = target.partition(":") if ":" in target else ("", "", target)
    word = spelt(name)
    for half in HALVES:
        word = word.removesuffix(f"_{half}").removeprefix(f"{half}_")
    parts = [part for part in (word, *word.split("_")) if len(part) > 1]
    found = []
    for pair in tree.pairs if parts else ():
        text = spelt(" ".join([pair.name, *map(_said_of, pair.sides.values())]))
        if about(parts[0], text) or all(about(part, text) for part in parts[1:]):
            found.append((pair.name != word, canonical(pair.directory) != directory, parts[0] not in pair.name, pair.target))
    return (each[-1] for each in sorted(found))


def _said_of(side: Path) -> str:
    """The idea and the claims of a side; nothing of a file that cannot be read."""
    try:
        text = side.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return " ".join([first_line(text), *_CLAIM.findall(text)])
