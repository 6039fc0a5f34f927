"""A person plays a run: the page with the goal, and what is printed and kept."""

from __future__ import annotations

import re
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from tests.environments.cases import agent, job, sound
from tests.environments.hosting.served import FORM
from trajudge.annotations import store as annotation_store
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.hosting.person import verdict_rows
from trajudge.environments.kit.html import NONCE
from trajudge.environments.model.case import write_cases
from trajudge.environments.recording.recorder import recorded_offline
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory


def ask(url: str, form: dict[str, str] | None = None, **headers: str) -> tuple[int, str]:
    parts = urlsplit(url)
    connection = HTTPConnection("127.0.0.1", parts.port or 80, timeout=60)
    sent = {"Host": parts.netloc, **FORM, **headers}
    body = None if form is None else urlencode(form)
    connection.request("GET" if form is None else "POST", parts.path or "/", body, sent)
    response = connection.getresponse()
    return response.status, response.read().decode()


def test_a_person_plays_a_task_and_is_shown_the_verdict(tmp_path: Path) -> None:
    case = sound("price")
    write_cases(tmp_path / "cases.jsonl", [case])
    words = ["env", "play", case.id, "--cases", "cases.jsonl", "--record", "played"]
    playing = subprocess.Popen(
        [sys.executable, "-m", "trajudge.eval.cli", *words],
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert playing.stdout is not None
        goal, _, site, done = (playing.stdout.readline() for _ in range(4))
        assert case.goal.startswith(f"{goal.strip()} End with")
        site, done = (re.findall("http://[^ \n]+", line)[0] for line in (site, done))
        assert ask(site)[0] == 200
        status, page = ask(done)
        assert status == 200 and goal[:20] in page and site in page
        nonce = re.findall(rf'name="?{NONCE}"? value="?([\w-]+)', page)[0]
        finish = f"{done}do/_answer"
        assert ask(done, Host="rebound.example")[0] == 404
        assert ask(finish, {NONCE: "another", "value0": "$1"})[0] == 403
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert ask(finish, {NONCE: nonce, "value0": "$1"}, **foreign)[0] == 403
        assert "Nothing may be left empty" in ask(finish, {NONCE: nonce, "value0": ""})[1]
        _, verdict = ask(finish, {NONCE: nonce, "value0": "$1"})
        (style,) = re.findall(r'href="?/(assets/style[^" >]+)', page)
        assert "body" in ask(f"{done}{style}")[1]
        assert "Verdict" in verdict and "Success" in verdict
        printed, errors = playing.communicate(timeout=60)
    finally:
        playing.kill()
    assert playing.returncode == 0, errors
    assert re.search(r"Success +no", printed) and "recorded in played" in printed
    (run,) = store.read(tmp_path / "played")
    assert isinstance(run, Trajectory)
    assert run.key.agent == "person" and run.answer == '{"answer": "$1"}'
    (label,) = annotation_store.load(tmp_path / "played" / "labels.jsonl")
    assert label.success is False


def test_a_verdict_says_why_an_answer_is_wrong() -> None:
    found = {}
    for name, behaviour in (("right", Behaviour.ORACLE), ("wrong", Behaviour.FABRICATES)):
        finding = recorded_offline(job(sound("price"), agent(behaviour)), 0).finding
        (answer,) = finding.answers
        rows = dict(verdict_rows(finding))
        found[name] = rows["Success"], rows[f"Answer: {', '.join(answer.expected)}"]
        assert name == "right" or answer.reason == found[name][1] != "no"
    assert found["right"] == ("yes", "right")
    assert found["wrong"][0] == "no"
