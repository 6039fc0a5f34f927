"""The work of ``trajudge env``: each command takes its settings and returns the exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import Any

import orjson

from trajudge.environments import generation
from trajudge.environments.agents.plugin import AgentPlugin, is_plugin
from trajudge.environments.agents.protocol import Halted
from trajudge.environments.agents.script import is_scripted
from trajudge.environments.analysis import agent_results, agent_tables
from trajudge.environments.analysis.outcomes import read_outcomes
from trajudge.environments.apps import APPS, DOOR, load_app
from trajudge.environments.checks.difficulty import DIMENSIONS
from trajudge.environments.checks.draws import NoSuchTask
from trajudge.environments.hosting.listeners import (
    Listener,
    default_origin,
    new_token,
    play_run,
    port_of,
    serve_runs,
)
from trajudge.environments.hosting.openenv import OpenEnvServer
from trajudge.environments.hosting.runs import HostLimits, RunHost, TaskRequest
from trajudge.environments.hosting.tasks import Tasks
from trajudge.environments.model.case import Vector, read_cases, write_cases
from trajudge.environments.model.variant import RunVariant
from trajudge.environments.planning import SuiteSpecification, planned
from trajudge.environments.recheck import other_goals, rechecked
from trajudge.environments.recording import campaign, validation
from trajudge.environments.settings import (
    GenerateConfig,
    HostConfig,
    PlayConfig,
    RecordConfig,
    ResultsConfig,
    ValidateConfig,
    VerifyConfig,
)
from trajudge.environments.variants import chosen_variants
from trajudge.judges.calls.handle import ModelHandle, single_model
from trajudge.trajectories.represent import Representation
from trajudge.util.commands import FAILURES, OK, saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.files import check_file, read_regular, save_bytes
from trajudge.util.machine import listen
from trajudge.util.tables import print_tables
from trajudge.util.terminal import count_of, one_line, progress_bar, terminal_console
from trajudge.util.validation import read_token

GOALS = "goals.jsonl"
_SHOWN = 20  # differing runs of a folder


def save_result(path: Path, content: Any) -> None:
    """Write a result as indented JSON. Raises UserError."""
    save_bytes(path, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def generate(config: GenerateConfig) -> int:
    """Generate cases; return 0 with as many as were asked for, 1 with fewer."""
    specification, out = specification_of(config), config.save
    generation.check_place(out)
    calls = config.calls.model_copy(update={"max_tokens": config.max_tokens})
    model = single_model(config.model, calls) if config.model else None
    steps = planned(specification, model)
    errors = terminal_console(stderr=True)
    with progress_bar() as show:

        def progress(cases: int, tried: int) -> None:
            show(f"generating ({tried:,} tried)", cases, specification.count)

        produced = generation.produce(specification, steps, progress, workers=config.workers)
    counted = generation.summary(specification, steps, produced)
    with saved_behind_output() as save:
        save(generation.write_report, out, counted, produced)
        print_tables(generation.tables(counted))
        for remark in generation.remarks(specification, steps, produced):
            errors.print(one_line(remark), soft_wrap=True)
    if not produced.cases:
        return FAILURES
    solve = f"trajudge env validate --cases {quote(str(out))}"
    terminal_console().print(
        f"written to {out}; solve them in Chromium with\n  {solve}", soft_wrap=True
    )
    return OK if len(produced.cases) == specification.count else FAILURES


def specification_of(config: GenerateConfig) -> SuiteSpecification:
    """Read what is to be generated. Raises UserError."""
    return SuiteSpecification(
        apps=_apps(config.app, config.domain),
        vector=_vector(config.vector),
        **config.model_dump(include={"scenario", "level", "count", "seed", "noise"}),
    )


def _apps(app: str | None, domain: str | None) -> tuple[str, ...]:
    """Return the applications to choose from: all of ours, those of a domain, or one, which may be
    of an installed package. Raises UserError."""
    apps = tuple(name for name, of in APPS.items() if app in (None, name) and domain in (None, of))
    if apps:
        return apps
    if app is not None and DOOR.knows(app):
        return (load_app(app).id,)
    known = ", ".join(f"{name} ({of})" for name, of in APPS.items())
    theirs = "".join(f", {name} (of the package {package})" for name, package in DOOR.installed())
    name, value = ("app", app) if domain is None else ("domain", domain)
    raise UserError(f"--{name} {value}: there is no such application; choose from {known}{theirs}")


def _vector(text: str | None) -> Vector | None:
    if text is None:
        return None
    grades = [int(part) if part in ("1", "2", "3") else 0 for part in text.split(",")]
    if len(grades) != len(DIMENSIONS) or 0 in grades:
        raise UserError(
            f"--vector is {text!r}: give seven numbers from 1 to 3 for {', '.join(DIMENSIONS)}, "
            "such as 3,1,2,3,2,3,1"
        )
    depth, breadth, interaction, visual, information, reasoning, risk = grades
    return (depth, breadth, interaction, visual, information, reasoning, risk)


def validate(config: ValidateConfig) -> int:
    """Validate the cases; return 0 if all passed."""
    cases = read_cases(config.cases)
    failures = validation.validate_cases(
        cases, config.out, thorough=config.thorough, seed=config.seed, workers=config.workers
    )
    passed = [case for case in cases if failures[case.id] is None]
    rejects = ({"case": name, **broken} for name, broken in failures.items() if broken is not None)
    lines = b"".join(orjson.dumps(reject) + b"\n" for reject in rejects)
    rows = validation.summary(cases, failures)
    floors = validation.floors_of(cases)
    guessed = {name: floor._asdict() for name, floor in floors.items()}
    with saved_behind_output() as save:
        save(write_cases, config.out / "cases.jsonl", passed)
        save(save_bytes, config.out / "rejects.jsonl", lines)
        save(save_result, config.out / "summary.json", rows)
        save(save_result, config.out / "guessing.json", guessed)
        print_tables([validation.summary_table(rows), validation.floors_table(floors)])
    return OK if len(passed) == len(cases) else FAILURES


def record(config: RecordConfig) -> int:
    """Record the agents; return 1 if a run failed."""
    plan = plan_of(config)
    try:
        screen, failed = campaign.recorded(
            plan, config.out, config.workers, config.faults, pictures=not config.text_only
        )
    except Halted as halted:
        sys.stderr.write(f"stopped: {one_line(str(halted))}; the same command resumes\n")
        return FAILURES
    sys.stdout.write(screen)
    sys.stderr.writelines(f"{line}\n" for line in campaign.failure_lines(failed))
    return FAILURES if failed else OK


def plan_of(config: RecordConfig) -> campaign.RecordingPlan:
    """Open the model, if one is named, and plan the recording. Raises UserError."""
    if config.text_only and config.faults is None:
        raise UserError("--text-only: goes with --faults PLAN: add it, or leave --text-only out")
    if config.engine == "text" and (config.faults or config.representation != "axtree"):
        option = "--faults" if config.faults else f"--representation {config.representation}"
        raise UserError(f"{option}: needs --engine chromium")
    every = ("resilient",) if config.faults else ("all",)
    words = config.agent or (() if config.model else every)
    plugins = _plugins_of(config, [word for word in words if is_plugin(word)])
    agents = campaign.chosen([word for word in words if not is_plugin(word)])
    seen = Representation(config.representation)
    model = _model_of(config)
    return campaign.RecordingPlan(
        config.cases,
        agents,
        config.seed,
        campaign.RecordedModel(model, seen, config.attempts) if model else None,
        config.attempts,
        config.payloads,
        _variants_of(config),
        plugins,
        config.engine,
    )


def _plugins_of(config: RecordConfig, specs: Sequence[str]) -> list[AgentPlugin]:
    """Load the user's agents, each once. Raises UserError."""
    options, seconds, memory = config.agent_option, config.agent_timeout, config.agent_memory
    if options and not specs:
        raise UserError(
            "--agent-option: goes with --agent FILE.py or package:NAME: add one, or leave it out"
        )
    plugins = [AgentPlugin(spec, options, seconds, memory) for spec in specs]
    names = [plugin.name for plugin in plugins]
    for plugin in plugins:
        if names.count(plugin.name) > 1 or is_scripted(plugin.name) or plugin.name == config.model:
            raise UserError(
                f"--agent {plugin.spec}: another agent is called {plugin.name!r}, too: rename it"
            )
        plugin.check()
    return plugins


def _model_of(config: RecordConfig) -> ModelHandle | None:
    """Open the model; None for none. Raises UserError."""
    if config.model is None:
        for name in sorted(config.calls.model_fields_set):
            raise UserError(f"--{name.replace('_', '-')} goes with --model NAME")
        return None
    if is_scripted(config.model):
        raise UserError(f"--model {config.model}: must not be the name of a scripted agent")
    return single_model(config.model, config.calls.model_copy(update={"seed": config.seed}))


def _variants_of(config: RecordConfig) -> list[RunVariant]:
    """Read what is recorded once more. Raises UserError."""
    if config.faults and config.variants:
        raise UserError(
            "--variants: runs are recorded once more without faults: leave --faults out"
        )
    return chosen_variants(config.variants, payloads=config.payloads is not None)


def serve(config: HostConfig) -> int:
    """Serve runs until it is interrupted; return 0. Raises UserError."""
    cases = read_cases(config.cases) if config.cases else []
    limits = HostLimits(runs=config.open_runs, minutes=config.minutes, requests=config.requests)
    drawn = config.token_file is None
    danger = "read the verdicts" if drawn else ""
    with (
        listen(config.host, config.site_port, danger) as site,
        listen(config.host, config.port, danger) as control,
    ):
        tasks = Tasks(cases, config.split, with_test=config.with_test)
        host = RunHost(tasks, limits, config.out, _subject(config.cases))
        host.origin = config.origin or default_origin(site)
        if config.token_file is None:
            token, file = new_token(config.out)
        else:
            token, file = read_token(config.token_file).get_secret_value(), config.token_file
        sys.stdout.write(
            f"pages    {host.origin}\n"
            f"control  http://{config.host}:{port_of(control)} (token: {file})\n"
        )
        others = [] if config.openenv_port is None else [_openenv(config, host.tasks)]
        sys.stdout.flush()
        try:
            asyncio.run(serve_runs(host, token, site, control, others))
        finally:
            if drawn:
                file.unlink(missing_ok=True)
    return OK


def _openenv(config: HostConfig, tasks: Tasks) -> Listener:
    """Listen for trainers, and say where. Raises UserError."""
    address = listen("127.0.0.1", config.openenv_port or 0)
    sys.stdout.write(f"openenv  http://127.0.0.1:{port_of(address)}\n")
    return OpenEnvServer(tasks).application(), address


def play(config: PlayConfig) -> int:
    """Let a person play a task; return 0. Raises UserError."""
    cases = read_cases(config.cases) if config.cases else []
    host = RunHost(
        Tasks(cases, with_test=True),
        HostLimits(minutes=config.minutes),
        config.record,
        _subject(config.cases),
    )
    wish = TaskRequest(task=config.task or None, level=config.level, seed=config.seed)
    with listen("127.0.0.1", 0) as site, listen("127.0.0.1", 0) as control:
        host.origin = default_origin(site)
        try:
            asyncio.run(play_run(host, wish, site, control))
        except NoSuchTask as error:
            raise UserError(f"{config.task or '--level'}: {error}") from error
    if config.record:
        sys.stdout.write(f"recorded in {config.record}\n")
    return OK


def _subject(cases: Path | None) -> dict[str, Any]:
    """Tell the recording of served runs from another."""
    return {"cases": None if cases is None else sha256(read_regular(cases)).hexdigest()}


def verify(config: VerifyConfig) -> int:
    """Verify the folders; return 1 if a label is not what the state gives."""
    if config.save and not config.other_goals:
        raise UserError(
            f"--save {config.save}: only --other-goals N writes a file: give both, or neither"
        )
    save = (config.save or Path(GOALS)) if config.other_goals else None
    if save:
        check_file(save, "--save")
    wrong, goals = 0, list[bytes]()
    for folder in config.folders:
        runs = list(rechecked(folder))
        differing = [run for run in runs if run.differences]
        wrong += len(differing)
        for run in differing[:_SHOWN]:
            difference = one_line(f"{run.trajectory.key}: {'; '.join(run.differences)}")
            sys.stderr.write(f"{difference}\n")
        if len(differing) > _SHOWN:
            sys.stderr.write(f"and {len(differing) - _SHOWN:,} more of {folder}\n")
        agreeing = len(runs) - len(differing)
        sys.stdout.write(
            f"{folder}: the labels of {agreeing:,} of {len(runs):,} runs are what the state gives\n"
        )
        if save and config.other_goals:
            lines = other_goals(folder, config.other_goals)
            goals += [orjson.dumps(line) + b"\n" for line in lines]
    if save:
        save_bytes(save, b"".join(goals))
        sys.stdout.write(f"{save}: other goals of {count_of(len(goals), 'run')}\n")
    return FAILURES if wrong else OK


def results(config: ResultsConfig) -> int:
    """Show the success of recorded agents and write it."""
    outcomes = read_outcomes(config.folders, config.cases)
    content = agent_results.results(outcomes, config.seed)
    notes = [*agent_results.without_success(outcomes), *agent_tables.agent_notes(content)]
    with saved_behind_output() as save:
        save(save_result, config.save, content)
        if config.full:
            print_tables(agent_tables.tables(content))
            sys.stdout.writelines(
                f"note: {one_line(note)}\n" for note in (agent_tables.METHOD, *notes)
            )
        else:
            rest = f"By group, by axis and in pairs: --full; everything is in {config.save}"
            sys.stdout.write(agent_tables.screen(content, notes, rest=rest))
    return OK
