"""The command line: parse, call, print, exit code."""

from __future__ import annotations

import difflib
import functools
import gc
import itertools
import json
import math
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

try:
    from common.python.errors import BenchmarkError, ExitCode
except ModuleNotFoundError as error:  # a package of somebody else's; what lies in it is not ours to import
    import common

    found = f"found the package `common` of {next(iter(common.__path__))} first on Python's path"
    raise SystemExit(f"error: {found}; expected {Path(__file__).parents[2]}: take the other out of PYTHONPATH") from error

from common.python.pairs.discovery import Tree, discover
from common.python.pairs.targets import in_directory, select
from common.python.run.completion import folder_names, target_names, whole_words
from common.python.run.defaults import ROOT_HELP, TABLE, defaults_here, stated_in, working_folder
from tools.cli.output import Output

if TYPE_CHECKING:
    from common.python.run.listing import Listed

_PROFILES = ("none", "minimal", "roofline", "deep_dive")
_MEANT = {
    **dict.fromkeys(("bench", "benchmark", "measure", "time", "exec"), ("run",)),
    **dict.fromkeys(("ls", "list", "targets", "discover"), ("list-targets",)),
    **dict.fromkeys(("check", "test", "validate"), ("verify",)),
    **dict.fromkeys(("diff", "cat", "view"), ("show",)),
    **dict.fromkeys(("create", "init", "add", "scaffold"), ("new",)),
    **dict.fromkeys(("clean", "gc", "rm"), ("prune",)),
    **dict.fromkeys(("info", "env", "status"), ("doctor",)),
    **dict.fromkeys(("log", "trend"), ("history",)),
    **dict.fromkeys(("ceilings", "roofline"), ("peak",)),
    **dict.fromkeys(("--filter", "--only", "--select", "--pair", "--benchmark", "-k"), ("--targets", "--chapter")),
    **dict.fromkeys(("--gpu", "--cuda"), ("--device",)),
    **dict.fromkeys(("--out", "--output", "--output-dir", "--results-dir", "-o"), ("--artifacts-dir",)),
    **dict.fromkeys(("--threshold", "--tolerance"), ("--gate",)),
    **dict.fromkeys(("--runs", "--samples", "--reps", "-n"), ("--iterations",)),
    **dict.fromkeys(("--ncu", "--nsys", "--trace"), ("--profile",)),
    **dict.fromkeys(("--set", "--params", "--args", "--shape"), ("--kwargs",)),
    **dict.fromkeys(("--update", "--update-expectations", "--bless"), ("--accept",)),
    **dict.fromkeys(("--list", "--plan"), ("--dry-run",)),
    **dict.fromkeys(("--targets", "-t"), ("--chapter",)),
}
"""Other words for commands and flags, as other tools have them; the first that a command has is meant."""
_NUMBERS = {"int": "an integer", "float": "a number"}
_OF_FILES = ("--root", "--chapter", "--artifacts-dir", "--runs", "--html")

app = typer.Typer(
    no_args_is_help=True,
    suggest_commands=False,  # `_usage_error` does
    pretty_exceptions_enable=False,
    help="Time pairs of kernels against each other: the same work, the right answer, the technique proved, the interval told.",
)


def _print_version(asked: bool) -> None:
    if asked:
        from common.python.machine.description import harness_source, harness_text

        print(f"benchmark_cli {harness_text(harness_source())}")
        raise typer.Exit


@app.callback()
def _of_all_commands(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version, and the commit of a checkout.")
    ] = False,
) -> None:
    """Do nothing: --version has a callback of its own."""


class RunCommand(typer.core.TyperCommand):
    """`run`, with a --profile that may stand bare."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Turn a bare --profile, last or before another flag, into --profile=minimal."""
        return super().parse_args(ctx, spell_out_profile(args))


def spell_out_profile(arguments: list[str]) -> list[str]:
    """`arguments` with the level written behind every bare --profile."""
    spelt: list[str] = []
    for argument, following in itertools.pairwise([*arguments, "--"]):
        bare = argument == "--profile" and following.startswith("-")
        spelt.append("--profile=minimal" if bare else argument)
    return spelt


Json = Annotated[bool, typer.Option("--json", help="Print a JSON document and nothing else.")]
Root = Annotated[Path | None, typer.Option("--root", help=ROOT_HELP, show_default=False)]


@app.command("list-targets")
def list_targets(
    words: Annotated[
        list[str] | None, typer.Argument(help="Words of a target or of its idea: attention, tensor core. Default: all.", show_default=False)
    ] = None,
    chapter: Annotated[
        str | None, typer.Option("--chapter", help="One folder: ch07, labs/flexattention.", show_default=False, autocompletion=folder_names)
    ] = None,
    root: Root = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list and nothing else.")] = False,
) -> None:
    """List targets by the text of their files alone: whether each is timed or checked here, or what it needs, and its idea."""
    from common.python.run.listing import about_words, gpu_is_here, listed

    tree = _tree(root)
    if not tree.directories:
        select(tree, [])  # says what an empty tree lacks
    if chapter and ":" in chapter:
        raise BenchmarkError(f"--chapter {chapter}: found a pair's name; expected a folder, as {chapter.partition(':')[0]}")
    pairs = in_directory(tree, chapter) if chapter else tree.pairs
    found = about_words(words or [], listed(pairs, gpu=gpu_is_here(), root=tree.root))
    if as_json:
        print(json.dumps([_listed(each, tree) for each in found], indent=2))
    else:
        _print_columns([(each.pair.target, each.here, each.idea) for each in found])
    for directory, sentences in tree.problems.items():
        if not (chapter or words) or directory in {each.pair.directory for each in found} | {chapter}:
            for sentence in sentences:
                print(f"problem: {sentence}", file=sys.stderr)


def _listed(each: Listed, tree: Tree) -> dict[str, Any]:
    sides = {side: str(path.relative_to(tree.root)) for side, path in each.pair.sides.items()}
    files = {"target": each.pair.target, "workload": str(each.pair.workload.relative_to(tree.root)), "sides": sides}
    return {**files, "idea": each.idea, "needs": list(each.needs), "lacks": each.lacks, "here": each.here}


def _print_columns(rows: list[tuple[str, ...]]) -> None:
    """Rows of one length in columns; on a terminal, where a line would be wrapped, its end is cut off."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row[:-1], widths, strict=False)) + f"  {row[-1]}"
        print(line.rstrip() if len(line) <= width else f"{line[: width - 1]}\N{HORIZONTAL ELLIPSIS}")


@app.command("list-techniques")
def list_techniques(
    root: Root = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list and nothing else.")] = False,
) -> None:
    """List the names that `proves:` and `has:` may use, with what proves each, where it exists, and the first target that claims it."""
    from common.python.run.listing import listed_techniques

    found = listed_techniques(_tree(root))
    if as_json:
        print(json.dumps([vars(each) for each in found], indent=2))
    else:
        heads = ("technique", "instruction", "sm", "first in")
        _print_columns([heads, *((each.name, each.instruction, ",".join(each.architectures), each.first or "-") for each in found)])


@app.command()
def show(
    target: Annotated[str, typer.Argument(help="ch07:transpose", autocompletion=target_names)],
    notes: Annotated[
        bool, typer.Option("--notes", help="The workload too: its shapes, tolerances, counters and what is told of them.")
    ] = False,
    root: Root = None,
) -> None:
    """Print a pair's idea, its two sides as a diff, and what was accepted of it on each GPU model."""
    from common.python.run.show import show_pair

    show_pair(_tree(root), target, notes=notes)


@app.command()
def new(
    target: Annotated[str, typer.Argument(help="ch07:name, the pair to make")],
    cuda: Annotated[bool, typer.Option("--cuda", help="CUDA C++ sides instead of Python ones.")] = False,
    root: Root = None,
) -> None:
    """Make a pair's three files, ready to edit; the pair passes as it is."""
    from common.python.pairs.scaffold import PAGE, new_pair

    for path in new_pair(_tree(root), target, cuda=cuda):
        print(path)
    print(f"what their fields and lines mean: {PAGE}", file=sys.stderr)


@app.command()
def doctor(as_json: Json = False) -> None:
    """What is installed, what is missing, what would make numbers bad."""
    from common.python.machine.description import describe_machine
    from common.python.machine.doctor import examine, unfit
    from common.python.project import PROJECT_ROOT
    from common.python.report.documents import examination_of, print_document
    from common.python.report.terminal import console_for, print_findings

    machine = describe_machine(PROJECT_ROOT)
    findings = examine(machine, PROJECT_ROOT)
    code = ExitCode.UNFIT if unfit(findings) else ExitCode.GOOD
    if as_json:
        print_document(examination_of(findings, machine, code))
    else:
        print_findings(findings, console_for(json_output=False))
    raise typer.Exit(code)


@app.command()
def peak(
    device: Annotated[str, typer.Option("--device", help="auto, cuda or cpu. Default: auto, the GPUs and the CPU.")] = "auto",
    missing: Annotated[bool, typer.Option("--missing", help="Keep what was measured in the last 12 hours; measure what it lacks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of the documents and nothing else.")] = False,
) -> None:
    """Measure this machine's ceilings and keep them: `run` shows each side's share of them."""
    from common.python.report.terminal import console_for, print_ceilings
    from common.python.run.peak import measure_peaks

    console = console_for(json_output=as_json)
    found = measure_peaks(_device(device), lambda line: console.print(line, soft_wrap=True), missing=missing)
    for ceilings, path in found:
        print_ceilings(ceilings, path, console)
    if as_json:
        print(json.dumps([ceilings.model_dump(mode="json") for ceilings, _ in found], indent=2))


@app.command()
def report(run: Annotated[Path, typer.Argument(help="A run's folder, or its run.json.")]) -> None:
    """Write a run's reports, for a browser and for a pull request, beside it, and print where they are."""
    from common.python.report.run_folder import folder_of, load, write_reports

    for path in write_reports(folder_of(run), *load(run)):
        print(path)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise typer.BadParameter("found no finite number; expected one")
    return number


Gate = Annotated[float, typer.Option("--gate", min=0.0, callback=_finite, help="Smallest change that counts, in percent.")]


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(help="The folder of the run to compare with.")],
    run_b: Annotated[Path, typer.Argument(help="The folder of the run that is held against it.")],
    gate: Gate = 0.5,
    artifacts_dir: Annotated[
        Path | None,
        typer.Option("--artifacts-dir", help="Write comparison.json, junit.xml and a pull request's comment.md there.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two runs row by row: a verdict each, exit 2 if any row of B is slower."""
    from common.python.gate.comparison import Comparison
    from common.python.gate.outcome import exit_code_of
    from common.python.report.documents import compared_runs, print_document
    from common.python.report.run_folder import folder_of, load, write_comparison
    from common.python.report.terminal import console_for, print_comparison
    from common.python.storage import make_folder

    (document_a, rows_a), (document_b, rows_b) = load(run_a), load(run_b)
    if artifacts_dir:
        make_folder(artifacts_dir)
    by_target = [{row.target: row for row in rows} for rows in (rows_a, rows_b)]
    comparison = Comparison(document_a, by_target[0], document_b, by_target[1], gate)
    rows = comparison.rows()
    code = exit_code_of(rows)
    document = compared_runs(comparison, rows, (folder_of(run_a), folder_of(run_b)), code)
    if as_json:
        print_document(document)
    else:
        print_comparison(by_target[0], rows, comparison.missing(), console_for(json_output=False))
    if artifacts_dir:
        ended = document_b.model_copy(update={"exit_code": int(code), "interrupted": False})
        for path in write_comparison(artifacts_dir, ended, rows, document):
            print(path, file=sys.stderr if as_json else sys.stdout)
    raise typer.Exit(code)


@app.command()
def noise(
    trials: Annotated[int | None, typer.Option("--trials", min=1, help="Rounds of all pairs. Default: as many as fit 150 s.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cuda or cpu.")] = "auto",
    gate: Gate = 0.5,
) -> None:
    """Time code against itself on this machine: the smallest change that a gate here can see. What it finds is kept."""
    from common.python.gate.noise_floor import sentences
    from common.python.report.terminal import Progress, console_for
    from common.python.run.noise_trials import measure_noise
    from common.python.settings import Settings

    console = console_for(json_output=False)
    with Progress(console) as progress:
        floor = measure_noise(Settings(device=_device(device), gate=gate), trials, progress)
    for sentence in sentences(floor, gate):
        console.print(sentence, soft_wrap=True)


@app.command("history")
def show_history(
    target: Annotated[
        str | None,
        typer.Argument(help="ch07:transpose, or a folder, ch07. Default: every row.", show_default=False, autocompletion=target_names),
    ] = None,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="The folder of runs. Default: the root's artifacts.", show_default=False)
    ] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Write a page with charts there.", show_default=False)] = None,
    root: Root = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list and nothing else.")] = False,
) -> None:
    """Show rows over time: each run's speedup with its commit, driver and machine, and what changed where it moved."""
    from common.python.report import history
    from common.python.storage import runs_folder, write_whole

    tree = _tree(root).root
    found, problems = history.history(runs or runs_folder(tree), target, tree)
    if page:
        write_whole(page, history.page(found))
    if as_json:
        print(json.dumps(history.as_json(found), indent=2))
    else:
        for series in found:
            print(series.name)
            _print_columns([history.HEADS, *history.lines_of_series(series)])
            print()
    for problem in problems:
        print(f"left out: {problem}", file=sys.stderr)
    if page:
        print(page, file=sys.stderr if as_json else sys.stdout)


@app.command("prune")
def prune_old(
    keep: Annotated[int, typer.Option("--keep", min=0, help="How many of the newest runs stay however old they are.")] = 20,
    days: Annotated[
        float, typer.Option("--days", min=0.0, callback=_finite, help="What was written or read in so many days stays.")
    ] = 30.0,
    root: Root = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, remove nothing.")] = False,
) -> None:
    """Remove old runs in the root's artifacts/ and builds that nobody used; ceilings, noise and folders with names of their own stay."""
    from common.python.machine.description import cache_folder
    from common.python.run.prune import prune
    from common.python.storage import runs_folder

    found = prune(runs_folder(_tree(root).root), cache_folder(), keep=keep, days=days, dry_run=dry_run)
    for path in found.paths:
        print(path)
    print(f"{'would remove' if dry_run else 'removed'} {len(found.paths)} folders and files, {found.size / 2**20:.1f} MiB")


def _device(name: str) -> Any:
    from common.python.settings import Device

    if name not in list(Device):
        raise BenchmarkError(f"--device {name}: expected one of {', '.join(Device)}")
    return Device(name)


def _suite(settings: Any) -> None:
    from common.python.report.documents import dry_run_of, outcome_of, print_document
    from common.python.report.terminal import Progress, console_for, print_plans, print_results
    from common.python.run.suite import plan_only, run_suite

    console = console_for(json_output=settings.json_output)
    if settings.dry_run:
        plans, notes, machine = plan_only(settings)
        if settings.json_output:
            print_document(dry_run_of(plans, notes, machine))
        else:
            print_plans(plans, notes, console)
        return
    with Progress(console, verbose=settings.verbose) as progress:
        outcome = run_suite(settings, progress)
    if settings.json_output:
        print_document(outcome_of(outcome.run, outcome.rows, outcome.folder, outcome.exit_code))
    else:
        print_results(outcome.rows, outcome.run, console, verbose=settings.verbose)
        console.print(f"{outcome.folder}", soft_wrap=True)
    raise typer.Exit(outcome.exit_code)


def _first_run(choices: dict[str, Any]) -> None:
    from common.python.report.terminal import console_for
    from common.python.run.first_run import Request, first_run, print_dry_run

    dry_run = choices.pop("dry_run")
    request, console = Request(**choices), console_for(json_output=False)
    if dry_run:
        print_dry_run(request, console)
    else:
        raise typer.Exit(first_run(request, console))


@functools.cache
def _add_suite_commands() -> None:
    """Once a process: typer keeps every command that it was ever given."""
    from common.python.run.options import command_of, first_run_command

    texts = {
        "run": "Verify and time targets; no target: everything.",
        "verify": "Check correctness and proofs on whatever is here; time nothing.",
    }

    def suite(settings: Any) -> None:
        _suite(settings)

    for name, text in texts.items():
        app.command(name, cls=RunCommand)(command_of(name, suite, text))
    text = "On a new machine: doctor, peak, verify, run, and a .zip of what came of them to send, without what is private."
    app.command("first-run")(first_run_command(_first_run, text))


def _tree(root: Path | None) -> Tree:
    from common.python.project import default_root

    return discover(root or default_root())


def main() -> None:
    """Run the command line; every error is one sentence on stderr and an exit code."""
    output = Output()
    sys.exit(output.ended(run_command_line(sys.argv[1:])))


def run_command_line(arguments: list[str]) -> int:
    """Exit code of `arguments`; errors are printed to stderr."""
    try:
        # rich and our settings cost more than listing targets takes, so that commands which need neither import neither, and a process
        # so short collects no garbage.
        if arguments[:1] in (["list-targets"], ["list-techniques"], ["show"], ["new"], ["--version"]):
            gc.disable()
        else:
            _add_suite_commands()
        _refuse_unreadable(arguments)
        _refuse_empty_paths(arguments)
        stated = defaults_here(working_folder())
        with whole_words(arguments):
            code = app(arguments, prog_name="benchmark_cli", standalone_mode=False, default_map=stated)
        return int(code or ExitCode.GOOD)
    except BenchmarkError as error:
        print(f"error: {error}" if error.exit_code else str(error), file=sys.stderr)
        return int(_code_of(error))
    except typer.TyperException as error:
        if sentence := _usage_error(error, arguments):
            print(f"error: {sentence}", file=sys.stderr)
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return int(ExitCode.INTERRUPTED)
    finally:
        gc.enable()


@functools.cache
def _commands() -> dict[str, Any]:
    """By name; typer needs as long to make them as `discover` to read the tree."""
    _add_suite_commands()
    made: dict[str, Any] = vars(typer.main.get_command(app))["commands"]
    return made


def parsed(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """The command and its flags, as `run_command_line` reads them; nothing is run.

    Raises BenchmarkError for what it would refuse, and for no command.
    """
    commands = _commands()
    name, *rest = arguments or [""]
    if name not in commands:
        raise BenchmarkError(f"No such command {name!r}; expected one of {', '.join(commands)}")
    try:
        return name, commands[name].make_context(name, rest).params
    except typer.TyperException as error:
        raise BenchmarkError(_usage_error(error, arguments)) from error


def _code_of(error: BenchmarkError) -> ExitCode:
    """The exit code of an error: that of a full disk where a file found no room."""
    if error.exit_code is not ExitCode.USAGE:
        return error.exit_code
    from common.python.storage import fills_disk

    return ExitCode.FULL_DISK if fills_disk(error) else error.exit_code


def _refuse_unreadable(arguments: list[str]) -> None:
    """Raise BenchmarkError for bytes that are no text: run.json holds what was asked for, and is UTF-8."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise BenchmarkError(f"argument {argument!r}: found bytes that are not UTF-8; expected UTF-8") from error


def _refuse_empty_paths(arguments: list[str]) -> None:
    """Raise BenchmarkError for `--root ""`, as an unset variable leaves it, which would else be the working directory."""
    if arguments[:1] in (["report"], ["compare"]) and any(
        not argument and not before.startswith("-") for before, argument in itertools.pairwise(arguments)
    ):
        raise BenchmarkError(f'{arguments[0]} "": found no folder; expected that of a run')
    for flag in _OF_FILES:
        if f"{flag}=" in arguments or (flag, "") in itertools.pairwise(arguments):
            raise BenchmarkError(
                f'{flag} "": found no folder; expected {"one that holds pairs" if flag == "--root" else "the name of one"}'
            )


def _usage_error(error: typer.TyperException, arguments: list[str]) -> str:
    """One sentence with the flag, what was found and what was expected; empty where typer has printed the help instead."""
    sentence = " ".join(str(error).split()).removeprefix("Value error, ").rstrip(".")
    sentence = re.sub(r"is not a valid (int|float)\b.*", lambda kind: f"is not {_NUMBERS[kind[1]]}", sentence)
    if isinstance(error, typer.BadParameter) and error.param is not None and (flag := error.param.opts[0]).startswith("-"):
        spelt = [part for argument in arguments for part in (argument.split("=", 1) if argument.startswith("--") else [argument])]
        if not set(error.param.opts) & set(spelt):
            return f"{stated_in(working_folder())}: {flag.removeprefix('--')} in [{TABLE}]: {sentence}"
        return f"{flag} {dict(itertools.pairwise(spelt)).get(flag, '')}: {sentence}"
    return sentence and f"{sentence}; expected {_expected(error, sentence) or 'what --help lists'}"


def _expected(error: typer.TyperException, sentence: str) -> str:
    """The command or flag that was meant by one that does not exist; "" for another error, or where nothing is near."""
    found = vars(error)
    if command := re.fullmatch(r"No such command '(.*)'", sentence):
        return _near(command[1], [str(each.name) for each in app.registered_commands])
    if found.get("ctx") is None:
        return ""
    flags = _flags(found["ctx"].command)
    if extra := re.fullmatch(r"Got unexpected extra arguments? \((\S+).*\)", sentence.replace("argument(s)", "argument")):
        return f"--targets {extra[1]}" if "--targets" in flags else ""
    if not (wrong := found.get("option_name", "")):
        return ""
    commands = vars(found["ctx"].find_root().command).get("commands", {})
    others = [name for name, command in commands.items() if wrong in _flags(command)]
    return _near(wrong, flags) or (f"it behind {' or '.join(others)}" if others else "")


def _flags(command: Any) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts if name.startswith("-")]


def _near(wrong: str, names: list[str]) -> str:
    """The one of `names` that means what `wrong` does elsewhere, or is spelt nearly so."""
    plain = {name.lstrip("-"): name for name in names}
    close = [plain[name] for name in difflib.get_close_matches(wrong.lstrip("-"), plain, n=1)]
    return next((f"one like {name}" for name in [*_MEANT.get(wrong, ()), *close] if name in names), "")


if __name__ == "__main__":
    main()
