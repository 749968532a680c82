"""The benchmark of transfers writes what was measured here apart from what others published, and sees pages that did not land."""

import json
import subprocess
import sys

from common.python.project import PROJECT_ROOT

SCRIPT = PROJECT_ROOT / "ch15/transfer_engine_benchmark.py"


def test_measured_and_published_are_kept_apart(tmp_path):
    out = tmp_path / "rdma_transferengine.json"
    command = [sys.executable, SCRIPT, "--out", out, "--writes", "2", "--most-bytes", "65536"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    assert set(written) == {"here", "published"}
    rows = [row for row in written["here"]["rows"] if row["backend"] == "ipc"]
    assert [row["status"] for row in rows] == ["OK", "OK"]
    assert all(row["us"] > 0 and row["gbit_per_s"] > 0 for row in rows)
    nixl = [row for row in written["here"]["rows"] if row["backend"] == "nixl"]
    assert all(row["status"] == "OK" or "expected" in row["why"] for row in nixl)
    assert all(figure["source"] for figure in written["published"]["figures"])


def test_pages_that_did_not_land_are_seen(tmp_path):
    code = "import sys, torch, transfer_engine_benchmark as demo\n"
    code += "from common.serving.transfer import Window\n"
    code += "Window.write = lambda self, source, pages, places: self.counter.add_(len(pages))\n"
    code += f"sys.argv = ['x', '--out', {str(tmp_path / 'x.json')!r}, '--backend', 'ipc', '--writes', '1', '--most-bytes', '65536']\n"
    code += "sys.exit(demo.main()) if __name__ == '__main__' else None"
    script = tmp_path / "lying.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(SCRIPT.parent)!r})\n{code}\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert "WRONG" in done.stdout


def test_a_size_below_the_smallest_is_refused():
    done = subprocess.run([sys.executable, SCRIPT, "--most-bytes", "10"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "found --writes 20, --most-bytes 10; expected" in done.stderr.splitlines()[-1]
