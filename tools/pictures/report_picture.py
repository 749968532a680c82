"""Draws the first screen of a run's report.html as a PNG, with a headless Chromium where one is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.project import PROJECT_ROOT
from common.python.report.html import html
from common.python.report.run_folder import load
from common.python.storage import write_whole

RUN = PROJECT_ROOT / "tools" / "pictures" / "run_h200"
PICTURE = PROJECT_ROOT / "common" / "docs" / "report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 950, 605
"""Pixels: as wide as a README is shown, and as high as what a reader sees first."""
MOST_BYTES = 200_000
_LIMIT_S = 60.0


def find_browser(which: Callable[[str], str | None] = shutil.which) -> str:
    """The path of a Chromium. Raises BenchmarkError where none is installed."""
    for name in BROWSERS:
        if path := which(name):
            return path
    raise BenchmarkError(f"found none of {', '.join(BROWSERS)} on the PATH; expected one, for example from `apt-get install chromium`")


def draw(page: Path, picture: Path, browser: str) -> None:
    """Write what `browser` shows of the file `page` in a window of its first screen. Raises BenchmarkError if it writes nothing."""
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1"]
        command += [f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}", page.resolve().as_uri()]
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False)
    if ended.returncode or not picture.is_file():
        said = ended.stderr.strip().splitlines()
        raise BenchmarkError(f"{browser}: found exit code {ended.returncode} and {said[-1:]}; expected a picture in {picture}")


def main(arguments: list[str] | None = None) -> int:
    """Draw the committed run's report into common/docs, or what is named."""
    parser = Arguments(description=__doc__)
    parser.add_argument("run", nargs="?", type=Path, default=RUN, help="a run's folder")
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE, help="the PNG to write")
    chosen = parser.parse_args(arguments)
    try:
        browser = find_browser()
        run, rows = load(chosen.run)
        with tempfile.TemporaryDirectory() as place:
            page, drawn = Path(place) / "report.html", Path(place) / "report.png"
            write_whole(page, html(run, rows))
            draw(page, drawn, browser)
            size = drawn.stat().st_size
            if size > MOST_BYTES:
                raise BenchmarkError(f"found a picture of {size} bytes; expected at most {MOST_BYTES}")
            chosen.picture.write_bytes(drawn.read_bytes())
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    print(f"{chosen.picture}: {size} bytes")
    return ExitCode.GOOD


if __name__ == "__main__":
    exit_with(main)
