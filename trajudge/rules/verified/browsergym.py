"""Tasks of WebArena Verified as BrowserGym environments, with recorded traces and the rules'
rewards.

::

    from trajudge.rules.verified import register_browsergym

    register_browsergym("webarena-verified.json", out="runs", sites={"shopping": "http://..."})
    env = gymnasium.make("browsergym/recorded.webarena_verified.21")

Each episode writes ``OUT/ATTEMPT/TASK_ID`` with ``agent_response.json``, ``network.har`` and
``run_config.json``, which ``trajudge rules evaluate --runs OUT/ATTEMPT`` and the released package
read. The agent's last message to the user is its response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trajudge.rules.files import write_json, write_text
from trajudge.rules.har import TraceRecorder, har_document, write_har
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import parse_host, trace_of_list
from trajudge.rules.verified.runs import ANSWER_FILE, CONFIG_FILE
from trajudge.rules.verified.tasks import Task, load_tasks, placeholder, placeholders
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder

if TYPE_CHECKING:
    from playwright.sync_api import Page

PROTOCOL = """

When you are done, send the user one message that is a JSON object and nothing else:
{"task_type": "RETRIEVE", "MUTATE" or "NAVIGATE", "status": "SUCCESS", "ACTION_NOT_ALLOWED_ERROR", \
"PERMISSION_DENIED_ERROR", "NOT_FOUND_ERROR", "DATA_VALIDATION_ERROR" or "UNKNOWN_ERROR", \
"retrieved_data": a list of what was asked for, or null, "error_details": a text, or null}"""


PREFIX = "recorded.webarena_verified"


def register_browsergym(
    tasks: str | Path,
    out: str | Path,
    sites: Mapping[str, str],
    *,
    mode: str = Mode.SOUND,
    prefix: str = PREFIX,
) -> list[str]:
    """Register every task whose sites are given as ``browsergym/PREFIX.TASK_ID``; return the names.

    Names do not begin with ``webarena``, because runners of studies (``browsergym.experiments``,
    AgentLab) then import BrowserGym's own WebArena packages.

    Raises UserError for tasks or sites that cannot be read, and without BrowserGym.
    """
    try:
        register = import_module("browsergym.core.registration").register_task
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error.name} is missing: install BrowserGym with  pip install browsergym-core"
        ) from error
    hosts = dict(parse_host(f"{site}={url}") for site, url in sites.items())
    names = []
    for task in load_tasks(Path(tasks)):
        if {placeholder(site) for site in task.sites} <= hosts.keys():
            own = {"task": task, "out": Path(out), "hosts": hosts, "mode": mode}
            register(f"{prefix}.{task.task_id}", RecordedTask, task_kwargs=own)
            names.append(f"browsergym/{prefix}.{task.task_id}")
    return names


class RecordedTask:
    """One episode, with the methods and attributes of BrowserGym's ``AbstractBrowserTask``.

    The reward is 1 for a pass, else 0; ``task_info`` has the outcome, which may be unknown, and the
    reasons.
    """

    viewport: Mapping[str, int] = {"width": 1280, "height": 720}
    slow_mo, timeout = 0, 10_000  # ms
    locale: str | None = None
    timezone_id: str | None = None

    def __init__(
        self, seed: int, task: Task, out: Path, hosts: Mapping[str, str], mode: str = Mode.SOUND
    ) -> None:
        self._task, self._out, self._hosts = task, out, hosts
        addresses = {name: (url,) for name, url in hosts.items()}
        self._evaluator = VerifiedEvaluator(Mode(mode), addresses)
        self._recorder: TraceRecorder | None = None

    def setup(self, page: Page) -> tuple[str, dict[str, Any]]:
        """Open each start page in its own tab; return the goal."""
        contents = any(check.expected.response_content for check in self._task.network_checks)
        self._recorder = TraceRecorder(page.context, secrets=True, contents=contents)
        for number, url in enumerate(self._task.start_urls):
            (page.context.new_page() if number else page).goto(self._located(url))
        page.bring_to_front()
        return self._task.intent + PROTOCOL, {"task_id": self._task.task_id}

    def _located(self, url: str) -> str:
        for name in placeholders(url) & self._hosts.keys():
            url = url.replace(name, self._hosts[name].rstrip("/"))
        return url

    def validate(
        self, page: Page, chat_messages: Sequence[Mapping[str, Any]]
    ) -> tuple[float, bool, str, dict[str, Any]]:
        """Judge the run once its agent has answered; before that the reward is 0 and the episode
        continues."""
        answer = answer_in(chat_messages)
        if answer is None or self._recorder is None:
            return 0.0, False, "", {}
        page.wait_for_load_state("domcontentloaded")
        entries = self._saved(self._recorder, answer)
        verdict = self._evaluator.evaluate(self._task, answer, trace_of_list(entries))
        info = {"outcome": str(verdict.outcome), "reasons": list(verdict.reasons)}
        return float(verdict.outcome is Outcome.PASS), True, "", info

    def teardown(self) -> None:
        """Write the trace of a run that ended without an answer."""
        if self._recorder is not None:
            self._saved(self._recorder, None)

    def _saved(self, recorder: TraceRecorder, answer: str | None) -> list[dict[str, Any]]:
        """Write the run, once; return the entries of its trace. Raises UserError."""
        browser, self._recorder = recorder.context.browser, None
        entries = recorder.entries()
        own = str(self._task.task_id)
        folder = attempt_folder(self._out, own)
        document = har_document(entries, browser.version if browser else "")
        write_har(folder / "network.har", document)
        if answer is not None:
            write_text(folder / ANSWER_FILE, answer)
        environments = {name: {"urls": [url]} for name, url in self._hosts.items()}
        write_json(folder / CONFIG_FILE, {"environments": environments})
        return entries


def attempt_folder(out: Path, task_id: str) -> Path:
    """Create the folder of a task's next attempt, which differs between processes that end
    episodes at the same time. Raises UserError."""
    for attempt in (out / str(number) for number in count()):
        make_folder(attempt, "out")
        with suppress(FileExistsError):
            (attempt / task_id).mkdir()
            break
    return attempt / task_id


def answer_in(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the agent's last message after the user's; BrowserGym's greeting does not count."""
    answer, asked = None, False
    for message in messages:
        role = message.get("role")
        asked = asked or str(role).startswith("user")
        if asked and role in ("assistant", "infeasible"):
            answer = str(message.get("message", ""))
    return answer
