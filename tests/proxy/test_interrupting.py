"""``trajudge proxy run`` that is interrupted keeps what the agent met until then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proxy.site import open_site
from tests.screens import one_screen

AGENT = """
import sys, time, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "/b").status, flush=True)
time.sleep(60)
"""
ROOT = Path(__file__).parents[2]
CLEAN = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_has_its_files(number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["proxy", "run", "--out", "run", "--", sys.executable, "-c", AGENT]
    command = [sys.executable, "-m", "trajudge", *words]
    with (
        open_site() as site,
        subprocess.Popen(
            [*command, site.origin],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=CLEAN | {"PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout and process.stderr
        assert process.stdout.readline() == "200\n"
        os.killpg(process.pid, number)  # as a terminal does, to the agent too
        assert process.wait(30) == 130
        shown = process.stdout.read()
    one_screen(shown, 100)
    assert "written: run/events.jsonl, traces/, summary.json and plan.json" in shown
    (task,) = json.loads((out / "summary.json").read_text())["tasks"]
    assert task["requests"] >= 1
    assert (out / "plan.json").is_file()
