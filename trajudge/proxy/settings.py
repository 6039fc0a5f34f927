"""Settings of ``trajudge proxy``, a record for each command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from trajudge.util.commands import MOST_PAGE_LOADS
from trajudge.util.settings import Argument, Option, Output, Port, Seed, Settings


class TaskConfig(Settings):
    """The task for which a plan's faults are drawn."""

    task: Annotated[str, Option("name of the task", "ID")] = "task"
    horizon: Annotated[
        int | None,
        Field(ge=1, le=MOST_PAGE_LOADS),
        Option("page loads that a task takes, for random(n)", "N"),
    ] = None
    seed: Annotated[Seed | None, Option("seed of the run (default: the plan's)", "N")] = None

    @field_validator("task")
    @classmethod
    def _check_task(cls, task: str) -> str:
        if not task.strip():
            raise ValueError("names no task: give a name, or leave --task out")
        return task


class ShowPlanConfig(TaskConfig):
    """Show what a fault plan does in a task.

      trajudge proxy plan --faults plan.json --task ID

    The same plan, seed and task give the same page loads in every run, on every machine.
    """

    faults: Annotated[Path, Option("the fault plan, as JSON", "FILE")]


class ProxyConfig(TaskConfig):
    """Settings of a proxy."""

    first: ClassVar = ("faults", "task", "seed", "site", "api", "port", "out")

    faults: Annotated[
        Path | None, Option("the fault plan, as JSON (default: none, only measure)", "FILE")
    ] = None
    site: Annotated[
        tuple[str, ...],
        Option(
            "host of the site, with the address of its server if the name leads elsewhere; other "
            "hosts are answered 403 (default: localhost, *.localhost and 127.0.0.1)",
            "SITE=URL",
        ),
    ] = ()
    api: Annotated[
        tuple[str, ...],
        Option("measure the calls of a model API: openai or anthropic, or openai=URL", "NAME"),
    ] = ()
    task_signature: Annotated[
        str | None,
        Option(
            "a page load whose 'METHOD URL' matches begins a task, named by the first group",
            "REGEX",
        ),
    ] = None
    page_requests: Annotated[
        str | None,
        Option(
            "for an agent that is no browser: a request whose 'METHOD URL' matches loads a page "
            "('^GET ': each that is read)",
            "REGEX",
        ),
    ] = None
    port: Annotated[Port, Option("port to listen on (default: any free)")] = 0
    mitmdump: Annotated[
        Path | None,
        Option("mitmproxy's program (default: TRAJUDGE_MITMDUMP, else on the PATH)", "FILE"),
    ] = None
    out: Annotated[
        Path | None, Output("where events and traces go (default: a new one in proxy-runs/)", "DIR")
    ] = None


class AgentRunConfig(ProxyConfig):
    """Run an agent behind the proxy.

      trajudge proxy run --faults plan.json -- COMMAND ...

    The proxy is mitmproxy (pipx install mitmproxy). The agent needs nothing but an HTTP proxy:
    HTTP_PROXY and HTTPS_PROXY are set, and a browser takes the flags in TRAJUDGE_PROXY_CHROMIUM.
    With --api its model calls are measured as well, by OPENAI_BASE_URL and ANTHROPIC_BASE_URL. The
    exit code is the agent's, and 130 after Ctrl-C (what it met is kept).
    """

    command: Annotated[tuple[str, ...], Argument("COMMAND", "the agent, after --")]


class ServeConfig(ProxyConfig):
    """Run the proxy until it is interrupted.

      trajudge proxy serve --faults plan.json

    The first line on standard output is JSON: where the proxy is, its control address, a nonce and
    the process. GET CONTROL/health answers with the same nonce; POST CONTROL/task {"id": ...,
    "seed": ...} begins a task, POST CONTROL/end ends it, POST CONTROL/port opens one more port with
    its own task.
    """

    stop_with_stdin: Annotated[
        bool,
        Option("end when standard input does, as it does when the program that holds it ends"),
    ] = False
