"""Settings of ``trajudge env``, a record for each command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from trajudge.environments.agents import MEMORY, SECONDS
from trajudge.environments.apps import APPS
from trajudge.environments.model.config import Engine, Split
from trajudge.judges.calls.settings import CallConfig
from trajudge.util.commands import MOST_CASES
from trajudge.util.settings import (
    Argument,
    Count,
    Only,
    Option,
    Output,
    Port,
    Positive,
    Seed,
    Settings,
    Workers,
)

Cases = Annotated[Path, Option("the generated cases", "FILE")]
Recorded = Annotated[tuple[Path, ...], Argument("RECORDED", "folder that env record wrote")]
WorkersOption = Annotated[Workers, Option("processes or browsers at once")]
Attempts = Annotated[int, Field(ge=1, le=1_000), Option("runs per case")]
SeedOption = Annotated[Seed, Option("seed of what is drawn (default: 0)")]
Full = Annotated[bool, Option("print all tables, not one screen")]

_DOMAINS = ", ".join(dict.fromkeys(APPS.values()))


class GenerateConfig(Settings):
    """Generate checked tasks.

      trajudge env generate --app shop --level 2 --count 50

    Plans, generates and refines cases until there are as many as were asked for, offline and
    without a model; with --model a model chooses among the scenarios and words their goals anew.
    Writes the cases as JSON Lines (never an answer: the verifier asks the state again) and a
    summary beside them, and in CASES.tasks.json the same tasks in WebArena Verified's form, which
    hold the answers. The same options give the same bytes.
    """

    first: ClassVar = (
        *("domain", "app", "scenario", "level", "count", "seed", "noise", "workers", "save"),
        "model",
    )
    sections: ClassVar = {"model": "a model that words goals (optional)"}
    exclusive: ClassVar = (("domain", "app"), ("level", "vector"))

    domain: Annotated[str | None, Option(f"one of {_DOMAINS}", "D")] = None
    app: Annotated[
        str | None, Option(f"one of {', '.join(APPS)}, or of an installed package", "A")
    ] = None
    scenario: Annotated[str | None, Option("only this scenario", "S")] = None
    level: Annotated[Literal[1, 2, 3] | None, Option("only cases of this level")] = None
    vector: Annotated[str | None, Option("only cases with exactly these grades", "N,N,...")] = None
    count: Annotated[int, Field(ge=1, le=MOST_CASES), Option("number of cases")] = 20
    seed: SeedOption = 0
    noise: Annotated[bool, Option("cookie bars, promotions, latency, errors to retry")] = False
    workers: WorkersOption = 1
    save: Annotated[Path, Output("file to write")] = Path("cases.jsonl")
    model: Annotated[str | None, Option("e.g. gpt-4o, claude-..., provider/name")] = None
    calls: Annotated[CallConfig, Only("base_url", "adapter", "cache")] = CallConfig()
    max_tokens: Annotated[Count, Option("tokens per reply")] = 4096


class ValidateConfig(Settings):
    """Solve cases in real Chromium.

      trajudge env validate --cases cases.jsonl --out DIR

    The oracle's plan must solve every case at two viewports, with noise and without. cases.jsonl in
    DIR holds those that passed, rejects.jsonl the others with the failed step, beside its tree and
    its screenshot; summary.json the rates, guessing.json how often the best guess is right in each
    scenario. The same command continues a validation that was killed.
    """

    cases: Cases
    out: Annotated[Path, Output("folder to write", "DIR")] = Path("validated")
    thorough: Annotated[bool, Option("every viewport with every noise")] = False
    seed: SeedOption = 0
    workers: WorkersOption = 1


class RecordConfig(Settings):
    """Record agents in the environments.

      trajudge env record --cases cases.jsonl --out DIR

    Every agent does every case of trajudge env generate: scripted agents with known behaviour, your
    own (--agent ./my_agent.py: a class with act(observation), or a function make(goal, **options)),
    or with --model any model. DIR gets trajectories.jsonl.zst with images/ (--data trajudge:DIR),
    labels.jsonl (which follow from the final state), facts.jsonl (what they rest on), traces/ (HAR
    files), and a card. The same command gives the same files but for times; it continues a
    recording that was killed, without repeating a model's call, and repeats runs that failed (exit
    code 1). --faults records every run once more for each fault.
    """

    first: ClassVar = (
        *("cases", "out", "agent", "engine", "model", "attempts", "representation", "max_cost"),
        *("workers", "seed"),
    )
    sections: ClassVar = {"model": "a model as agent"}

    cases: Cases
    out: Annotated[Path, Output("folder to write", "DIR")] = Path("recorded")
    agent: Annotated[
        tuple[str, ...],
        Option(
            "a scripted agent by name or behaviour; all, resilient or ladder; or your own: "
            "FILE.py, package:NAME or an entry point (default: all, none with --model)",
            several=True,
        ),
    ] = ()
    agent_option: Annotated[
        dict[str, Any], Option("an option of your own agent; may be repeated", "NAME=VALUE")
    ] = Field(default_factory=dict)
    agent_timeout: Annotated[
        Positive, Option("seconds that your own agent may take for an action")
    ] = SECONDS
    agent_memory: Annotated[Count, Option("mebibytes that your own agent may use", "MIB")] = MEMORY
    engine: Annotated[Engine, Option("text needs no browser and takes no pictures")] = "chromium"
    faults: Annotated[
        Path | None,
        Option(
            "record a clean arm and one for each fault of this plan, by default with the agents "
            "that recover (resilient)"
        ),
    ] = None
    text_only: Annotated[bool, Option("with --faults: no pictures")] = False
    payloads: Annotated[
        Path | None,
        Option(
            "YAML of instructions to a judge (goals: {NAME: [TEXT]}) that stand in what the "
            "applications' users wrote, one a run"
        ),
    ] = None
    variants: Annotated[
        tuple[str, ...],
        Option(
            "record the scripted runs once more with one thing changed, for trajudge robust: all, "
            "or theme, undo, page-visited-native, own-note-native, and with --payloads "
            "page-native; the last two also with -benign",
            several=True,
        ),
    ] = ()
    seed: SeedOption = 0
    workers: WorkersOption = 1
    model: Annotated[str | None, Option("e.g. gpt-4o, claude-..., provider/name")] = None
    representation: Annotated[
        Literal["axtree", "screenshot", "both"], Option("what the model sees of a page")
    ] = "axtree"
    attempts: Attempts = 1
    calls: Annotated[
        CallConfig,
        Only(
            *("adapter", "script", "base_url", "temperature", "max_tokens", "rpm", "tpm"),
            *("context", "timeout", "max_cost", "models", "prices", "cache"),
            *("reasoning_effort", "thinking_budget", "extra_body", "extra_headers"),
        ),
    ] = CallConfig()


Tasks = Annotated[
    Path | None, Option("generated cases (default: drawn of the applications)", "FILE")
]
Minutes = Annotated[Positive, Option("minutes that a run may take")]


class HostConfig(Settings):
    """Serve runs to agents that bring their own browser.

      trajudge env serve --cases cases.jsonl --out served

    Two listeners: pages, at an origin of each run's own, and control, JSON over HTTP. The harness
    opens a run (POST /v1/runs) and gives the agent its goal, its first address and its token; the
    agent finishes it (POST /v1/runs/ID/finish) or submits its answer on the page for it; the
    harness reads the verdict (GET /v1/runs/ID/verdict). The harness's token is in --token-file, or
    drawn and written to DIR/harness-token. What the runs come to is in DIR as from env record:
    --data trajudge:DIR, trajudge env results DIR. Ctrl-C ends it.
    """

    first: ClassVar = (
        *("cases", "split", "with_test", "out", "host", "port", "site_port"),
        *("token_file", "openenv_port", "minutes"),
    )
    sections: ClassVar = {"open_runs": "limits"}

    cases: Tasks = None
    split: Annotated[Split, Option("split of tasks that are drawn, unless asked")] = "train"
    with_test: Annotated[bool, Option("also draw tasks of the test split")] = False
    out: Annotated[Path, Output("folder to write", "DIR")] = Path("served")
    host: Annotated[str, Option("address to listen on", "ADDRESS")] = "127.0.0.1"
    port: Annotated[Port, Option("of the control listener; 0: a free one (default: 8378)")] = 8378
    site_port: Annotated[Port, Option("of the pages; 0: a free one (default: 8379)")] = 8379
    origin: Annotated[
        str | None,
        Option("where browsers find a run's pages (default: http://{run}.localhost:PORT)", "URL"),
    ] = None
    token_file: Annotated[Path | None, Option("file with the harness's token")] = None
    openenv_port: Annotated[
        Port | None,
        Option("also serve trainers that speak OpenEnv, on this port of loopback; 0: a free one"),
    ] = None
    open_runs: Annotated[Count, Option("runs that are open at once")] = 64
    minutes: Minutes = 60.0
    requests: Annotated[Count, Option("requests that a run may make")] = 1_000

    @model_validator(mode="after")
    def _test_is_served(self) -> Self:
        if self.split == "test" and not self.with_test:
            raise ValueError("--split test: the test split is served with --with-test alone")
        return self

    @field_validator("origin")
    @classmethod
    def _is_origin(cls, origin: str | None) -> str | None:
        if origin is not None and not re.fullmatch(r"https?://\{run\}\.[\w.-]+(:\d+)?", origin):
            raise ValueError("write it like http://{run}.gym.example:8080")
        return origin


class PlayConfig(Settings):
    """Do a task in your own browser.

      trajudge env play shop.buy --record played

    Prints the goal and the address of the site, and that of a page with the goal, a field for the
    answer and "I am done"; then the verdict with what it rests on. With --record the run is kept as
    a trajectory of the agent "person", with its label.
    """

    task: Annotated[
        str,
        Argument("TASK", "an application, application.scenario, or a case (default: any)"),
    ] = ""
    cases: Tasks = None
    level: Annotated[Literal[1, 2, 3] | None, Option("only a task of this level")] = None
    seed: SeedOption = 0
    minutes: Minutes = 60.0
    record: Annotated[Path | None, Output("folder to write the run to", "DIR")] = None


class VerifyConfig(Settings):
    """Verify recorded runs again.

    The state that a run left is made from facts.jsonl, without a browser, and the labels that it
    gives are compared with labels.jsonl. Folders of trajudge data perturb are verified alike: goal
    and last message as they stand after the change, on the state that the run left. With
    --other-goals the checkers of other instances of each task are asked as well; what they say of
    each run is written to a file, which stands beside the recording as goals.jsonl for
    perturbations that exchange goals.
    """

    folders: Annotated[tuple[Path, ...], Argument("RECORDED", "folder with facts.jsonl")]
    other_goals: Annotated[
        int | None,
        Field(ge=1, le=MOST_CASES),
        Option("ask the checkers of N other instances of each task, and write what they say", "N"),
    ] = None
    save: Annotated[
        Path | None, Output("with --other-goals: file to write (default: goals.jsonl)")
    ] = None


class ResultsConfig(Settings):
    """Show the success of recorded agents.

      trajudge env results RECORDED... --cases cases.jsonl

    Success by agent, the mean over applications of the mean over their scenarios, with the
    hierarchical bootstrap (Statistical Precipice, section 4.3, arXiv 2605.08261): scenarios, levels
    of the axes and runs are resampled, the applications stay fixed. Also success by level,
    application and difficulty dimension, how far each axis moves it (matched pairs, section 16
    there), turns and cost. Runs whose success is ambiguous are left out and counted. A folder or
    run that is given twice is refused.
    """

    folders: Recorded
    cases: Cases
    save: Annotated[Path, Output("file to write")] = Path("results.json")
    full: Full = False
    seed: SeedOption = 0
