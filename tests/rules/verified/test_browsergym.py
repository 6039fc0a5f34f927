"""Episodes of BrowserGym's form in a real browser: recorded whole, and rewarded by the rules."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rules_evaluate as main
from tests.conftest import missing
from tests.rules.recordings import Requests, shop
from tests.rules.verified.tasks import answer, mutation, task
from trajudge.rules.verified import register_browsergym
from trajudge.rules.verified.browsergym import PREFIX, RecordedTask, answer_in, attempt_folder
from trajudge.rules.verified.network import load_trace
from trajudge.rules.verified.tasks import Task, task_record
from trajudge.util.errors import UserError

GREETING = {"role": "assistant", "message": "Hi! What can I help you with?"}
ASKED = [GREETING, {"role": "user", "message": "Do it."}]
START: dict[str, Any] = {"start_urls": ("__SHOPPING__/tea",)}
CART = {
    "url": "__SHOPPING__/cart",
    "http_method": "POST",
    "response_status": 302,
    "post_data": {"qty": "2"},
}
BUY = mutation({"expected": CART}, task_id=1, **START)
PRICE = {"url": "__SHOPPING__/data?q=1", "response_content": {"$.price": 12}}
READ = task([12], None, {"expected": PRICE, "last_event_only": False}, task_id=2, **START)
# Run by the other interpreter: BrowserGym's own environment, actions as its agents write them.
EPISODES = """
import functools, json, sys
import gymnasium
from browsergym.core import _get_global_playwright
from trajudge.rules.verified import register_browsergym
tasks, out, shop, chromium = sys.argv[1:]
names = register_browsergym(tasks, out, {"shopping": shop})
kind = _get_global_playwright().chromium  # also launches the window of the chat
kind.launch = functools.partial(kind.launch, executable_path=chromium)
response = {"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": None}
told = f"send_msg_to_user({json.dumps(response)!r})"
for actions in (["noop()"], [told], ["buy", told]):
    env = gymnasium.make(names[0])
    observation, info = env.reset(seed=0)
    for action in actions:
        if action == "buy":
            page = env.unwrapped.page
            page.evaluate("document.forms[0].submit()")
            page.wait_for_url("**/done")
            continue
        observation, reward, done, _, info = env.step(action)
    env.close()
    print(json.dumps([names, reward, done, info["task_info"].get("outcome")]))
"""


@pytest.fixture
def served() -> Iterator[tuple[str, Requests]]:
    with shop() as facts:
        yield facts


def _said(response: object) -> list[dict[str, Any]]:
    return [*ASKED, {"role": "assistant", "message": json.dumps(response)}]


def _tasks(folder: Path, *tasks: Task) -> Path:
    (folder / "tasks.json").write_text(json.dumps([task_record(one) for one in tasks]))
    return folder / "tasks.json"


def _evaluated(tasks: Path, runs: Path, out: Path) -> dict[str, str]:
    assert main(["--tasks", str(tasks), "--runs", str(runs), "--out", str(out)]) == 0
    files = (out / "tasks").glob("*.json")
    return {file.stem: json.loads(file.read_bytes())["outcome"] for file in files}


@pytest.mark.browser
@pytest.mark.slow
def test_an_episode_is_rewarded_and_leaves_what_evaluate_reads(
    chromium: Path, served: tuple[str, Requests], tmp_path: Path
) -> None:
    from playwright.sync_api import sync_playwright

    address, heard = served
    hosts, out = {"__SHOPPING__": address}, tmp_path / "runs"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        bought = RecordedTask(0, BUY, out, hosts)
        goal, _ = bought.setup(page)
        assert goal.startswith(BUY.intent)
        page.evaluate("window.prices")
        assert bought.validate(page, ASKED) == (0.0, False, "", {})
        page.evaluate("document.forms[0].submit()")
        page.wait_for_url("**/done")
        page.evaluate("window.prices")
        said = _said(answer(task_type="mutate"))
        assert bought.validate(page, said) == (1.0, True, "", {"outcome": "pass", "reasons": []})
        bought.teardown()
        seen = load_trace(out / "0/1/network.har").events
        asked = Counter((method, path) for method, path, _ in heard if path != "/favicon.ico")
        assert Counter((one.method, one.url.removeprefix(address)) for one in seen) == asked
        page.close()
        for task_, response in ((READ, answer([12])), (BUY, answer(task_type="mutate"))):
            page = browser.new_page()
            again = RecordedTask(0, task_, out, hosts)
            again.setup(page)
            page.evaluate("window.prices")
            reward, done, _, info = again.validate(page, _said(response))
            assert (reward, done) == ((1.0, True) if task_ is READ else (0.0, True)), info
            page.close()
        page = browser.new_page()
        silent = RecordedTask(0, BUY, out, hosts)
        silent.setup(page)
        silent.teardown()
        browser.close()
    tasks = _tasks(tmp_path, BUY, READ)
    assert _evaluated(tasks, out / "0", tmp_path / "o0") == {"1": "pass", "2": "pass"}
    assert _evaluated(tasks, out / "1", tmp_path / "o1") == {"1": "fail"}
    assert not (out / "2/1/agent_response.json").exists()


def test_episodes_that_end_side_by_side_have_a_folder_each(tmp_path: Path) -> None:
    """One that took the other's would write over its trace."""
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: attempt_folder(tmp_path / "runs", "7"), range(80)))
    assert sorted(made) == sorted(tmp_path / "runs" / str(n) / "7" for n in range(80))


def test_the_last_message_after_the_goal_is_the_answer() -> None:
    assert answer_in([GREETING]) is None
    assert answer_in(ASKED) is None
    spoken = [{"role": role, "message": role} for role in ("assistant", "user", "infeasible")]
    assert answer_in([*ASKED, *spoken]) == "infeasible"


def test_runners_of_studies_import_no_package_for_the_tasks_names() -> None:
    """They do for names that begin with a benchmark's, as ``browsergym.experiments.loop`` says."""
    known = ("miniwob", "workarena", "webarena", "visualwebarena", "assistantbench", "weblinx")
    assert not PREFIX.startswith(known)


def test_without_browsergym_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="pip install browsergym-core"):
        register_browsergym(tmp_path / "tasks.json", tmp_path, {})


@pytest.mark.browser
def test_browsergym_itself_runs_the_tasks(
    chromium: Path, served: tuple[str, Requests], tmp_path: Path
) -> None:
    """In an environment that has browsergym-core beside this project's requirements."""
    python = os.environ.get("TRAJUDGE_BROWSERGYM_PYTHON")
    if not python:
        missing("browsergym", "TRAJUDGE_BROWSERGYM_PYTHON names no interpreter with BrowserGym")
    assert python
    tasks, out = _tasks(tmp_path, BUY), tmp_path / "runs"
    words = [python, "-c", EPISODES, str(tasks), str(out), served[0], str(chromium)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    names = ["browsergym/recorded.webarena_verified.1"]
    assert told == [
        [names, 0.0, False, None],
        [names, 0.0, True, "fail"],
        [names, 1.0, True, "pass"],
    ]
    outcomes = [_evaluated(tasks, out / str(n), tmp_path / f"o{n}")["1"] for n in range(3)]
    assert outcomes == ["fail", "fail", "pass"]
