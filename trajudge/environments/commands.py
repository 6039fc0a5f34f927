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

from trajudge.environments.agents.plugin import AgentPlugin, is_plugin
from trajudge.environments.agents.protocol import Halted
from trajudge.environments.agents.script import is_scripted
from trajudge.environments.analysis import agent_results, agent_tables, blind_replay, pass_at_k
from trajudge.environments.analysis.outcomes import read_outcomes
from trajudge.environments.analysis.over_cases import over_cases
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
from trajudge.environments.prism.own import own_report
from trajudge.environments.prism.report import Graded, GradedReport, grade, read_reports, satisfied
from trajudge.environments.recheck.rechecking import other_goals, rechecked
from trajudge.environments.recording import screens, validation_run
from trajudge.environments.recording.campaign import RecordedModel, RecordingPlan
from trajudge.environments.recording.jobs import chosen
from trajudge.environments.settings import (
    EquivalenceConfig,
    GenerateConfig,
    HostConfig,
    PlayConfig,
    PrismConfig,
    RecordConfig,
    ReplayConfig,
    ResultsConfig,
    RulesConfig,
    ValidateConfig,
    VerifyConfig,
)
from trajudge.environments.specifications import report as rules_report
from trajudge.environments.specifications.comparing import by_configuration, compare, recorded_runs
from trajudge.environments.stages import SuiteSpecification, produce
from trajudge.environments.stages import report as stages_report
from trajudge.environments.stages.planning import planned
from trajudge.environments.variants.jobs import chosen_variants
from trajudge.judges.calls.handle import ModelHandle, single_model
from trajudge.trajectories.represent import Representation
from trajudge.util.commands import FAILURES, OK, saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.files import check_file, read_regular, save_bytes
from trajudge.util.machine import listen
from trajudge.util.tables import Table, print_tables
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
    stages_report.check_place(out)
    calls = config.calls.model_copy(update={"max_tokens": config.max_tokens})
    model = single_model(config.model, calls) if config.model else None
    steps = planned(specification, model)
    errors = terminal_console(stderr=True)
    with progress_bar() as show:

        def progress(cases: int, tried: int) -> None:
            show(f"generating ({tried:,} tried)", cases, specification.count)

        produced = produce(specification, steps, progress, workers=config.workers)
    counted = stages_report.summary(specification, steps, produced)
    with saved_behind_output() as save:
        save(stages_report.write_report, out, counted, produced)
        print_tables(stages_report.tables(counted))
        for remark in stages_report.remarks(specification, steps, produced):
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
    failures = validation_run.validate_cases(
        cases, config.out, thorough=config.thorough, seed=config.seed, workers=config.workers
    )
    passed = [case for case in cases if failures[case.id] is None]
    rejects = ({"case": name, **broken} for name, broken in failures.items() if broken is not None)
    lines = b"".join(orjson.dumps(reject) + b"\n" for reject in rejects)
    rows = validation_run.summary(cases, failures)
    floors = validation_run.floors_of(cases)
    guessed = {name: floor._asdict() for name, floor in floors.items()}
    with saved_behind_output() as save:
        save(write_cases, config.out / "cases.jsonl", passed)
        save(save_bytes, config.out / "rejects.jsonl", lines)
        save(save_result, config.out / "summary.json", rows)
        save(save_result, config.out / "guessing.json", guessed)
        print_tables([validation_run.summary_table(rows), validation_run.floors_table(floors)])
    return OK if len(passed) == len(cases) else FAILURES


def record(config: RecordConfig) -> int:
    """Record the agents; return 1 if a run failed."""
    plan = plan_of(config)
    try:
        screen, failed = screens.recorded(
            plan, config.out, config.workers, config.faults, pictures=not config.text_only
        )
    except Halted as halted:
        sys.stderr.write(f"stopped: {one_line(str(halted))}; the same command resumes\n")
        return FAILURES
    sys.stdout.write(screen)
    sys.stderr.writelines(f"{line}\n" for line in screens.failure_lines(failed))
    return FAILURES if failed else OK


def plan_of(config: RecordConfig) -> RecordingPlan:
    """Open the model, if one is named, and plan the recording. Raises UserError."""
    if config.text_only and config.faults is None:
        raise UserError("--text-only: goes with --faults PLAN: add it, or leave --text-only out")
    every = ("resilient",) if config.faults else ("all",)
    words = config.agent or (() if config.model else every)
    plugins = _plugins_of(config, [word for word in words if is_plugin(word)])
    agents = chosen([word for word in words if not is_plugin(word)])
    seen = Representation(config.representation)
    model = _model_of(config)
    return RecordingPlan(
        config.cases,
        agents,
        config.seed,
        RecordedModel(model, seen, config.attempts) if model else None,
        config.attempts,
        config.payloads,
        _variants_of(config),
        plugins,
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


def rules(config: RulesConfig) -> int:
    """Compare rules with the state, show the rates and write them."""
    cases = by_configuration(read_cases(config.cases))
    content = rules_report.report(compare(recorded_runs(config.folders, cases)))
    with saved_behind_output() as save:
        save(save_result, config.save, content)
        if config.full:
            print_tables(rules_report.tables(content))
        else:
            rest = f"every difference, with reasons: {config.save}"
            sys.stdout.write(rules_report.screen(content, rest=rest))
    return OK


def replay(config: ReplayConfig) -> int:
    """Replay recorded actions blindly and write the success rates."""
    outcomes = over_cases(read_cases(config.cases), config.seed, "replaying", blind_replay.replay)
    rows = blind_replay.summary(outcomes)
    content = {"conditions": rows, "outcomes": [outcome._asdict() for outcome in outcomes]}
    with saved_behind_output() as save:
        save(save_result, config.save, content)
        print_tables([blind_replay.table(rows)])
    return OK


def equivalence(config: EquivalenceConfig) -> int:
    """Compare blind replay with pass@k on real runs and write both."""
    cases, tries = read_cases(config.cases), config.attempts
    tried = over_cases(
        cases,
        config.seed,
        "attempting",
        lambda recorder, case: pass_at_k.attempts(recorder, case, tries),
    )
    rows = pass_at_k.summary(tried, tries)
    content = {"rows": rows, "attempts": [attempt._asdict() for attempt in tried]}
    shown = [
        (str(row["k"]), f"{100 * row['pass_at_k']:.1f}", f"{100 * row['replay']:.1f}")
        for row in rows
    ]
    title = f"Blind replay beside pass@k, {len(cases)} cases, {tries} attempts each (%)"
    table = Table(title, ("k", "pass@k", "replay with k kept"), shown, names=1)
    with saved_behind_output() as save:
        save(save_result, config.save, content)
        print_tables([table])
    return OK


def prism(config: PrismConfig) -> int:
    """Grade the benchmarks; return 0 if all satisfy the five principles."""
    read = [report for path in config.reports for report in read_reports(path)]
    reports = read or [own_report(config.checked, config.seed)]
    graded = [grade(report) for report in reports]
    pairs = list(zip(reports, graded, strict=True))
    saved = [
        GradedReport(report=report, grades={one.principle: one.grade for one in grades})
        for report, grades in pairs
    ]
    with saved_behind_output() as save:
        save(save_result, config.save, [one.model_dump(mode="json") for one in saved])
        print_tables([_prism_table(report.name, grades) for report, grades in pairs])
    return OK if all(map(satisfied, graded)) else FAILURES


def _prism_table(name: str, graded: Sequence[Graded]) -> Table:
    return Table(f"PRISM: {name}", ("principle", "grade", "evidence"), graded, names=3)
