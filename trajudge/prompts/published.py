"""Published prompts, read from where they were published: installed packages (AgentRewardBench,
browser-use), and checkouts of repositories (Online-Mind2Web, WebVoyager, InSTA, fara).

Their files are parsed, not imported: they bring much else with them, and run code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from string import Formatter
from typing import Any, Literal, NamedTuple

from trajudge.prompts.render import TAG, sendable
from trajudge.prompts.untrusted import VERSION, count_changes, neutralise
from trajudge.trajectories.truncate import TruncatedView
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import read_text

OURS = "trajudge"
"""The ``prompts`` of a judge that are our own."""

CHANGES = "changed_places"

"""The score of a verdict that counts the places of a run that were not sent as recorded."""

Untrusted = Literal["neutralised", "as-recorded"]


class PromptOrigin(NamedTuple):
    """Where a source's prompts stand: in an installed ``package``, whose folder is ``module``, or
    in a checkout of ``repository``, which is named with its path."""

    package: str = ""
    module: str = ""
    repository: str = ""


ORIGINS: Mapping[str, PromptOrigin] = {
    "agentrewardbench": PromptOrigin("agent-reward-bench", "agent_reward_bench"),
    "browser-use": PromptOrigin("browser-use", "browser_use"),
    "online-mind2web": PromptOrigin(repository="OSU-NLP-Group/Online-Mind2Web"),
    "webvoyager": PromptOrigin(repository="MinorJerry/WebVoyager"),
    "insta": PromptOrigin(repository="data-for-agents/insta"),
    "fara": PromptOrigin(repository="microsoft/fara"),
}


def check_source(prompts: str) -> str:
    """Return the source that ``prompts`` names, SOURCE or SOURCE:PATH. Raises ValueError for an
    unknown one, and for one that is to be named with a path, or without."""
    name, colon, path = prompts.partition(":")
    if name == OURS and not colon:
        return name
    if name not in ORIGINS:
        known = did_you_mean(name, ORIGINS) or f": use {', '.join([OURS, *ORIGINS])}"
        raise ValueError(f"{name} is no source of prompts{known}")
    origin = ORIGINS[name]
    if origin.repository and not path:
        raise ValueError(f"name a checkout of {origin.repository}:  {name}:PATH")
    if origin.package and colon:
        raise ValueError(
            f"{name} is read from the installed package {origin.package}: leave {colon}{path} out"
        )
    return name


def source_folder(prompts: str, option: str = "") -> Path:
    """Return the folder that holds the prompts of a source, which ``option`` asks for (default:
    ``--prompts``). Raises UserError for a package that is not installed, and for a checkout that is
    no folder."""
    option = option or f"--prompts {prompts}"
    name, _, path = prompts.partition(":")
    origin = ORIGINS[name]
    if origin.repository:
        if not Path(path).is_dir():
            raise UserError(
                f"{option}: {path} is no folder: name a checkout of {origin.repository}"
            )
        return Path(path)
    spec = find_spec(origin.module)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            f"{option} reads the judge's own prompts from the package '{origin.package}', which is "
            f"not installed: install it with  pip install --no-deps {origin.package}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


class Slot(NamedTuple):
    """A place in a text: the expression that fills it, and what stands there for an empty value."""

    name: str
    default: str = ""


Template = tuple[str | Slot, ...]


@dataclass(frozen=True)
class PublishedTexts:
    """Texts of a published prompt by name.

    What pages and agents wrote is ``shown`` without the tags of the prompt and the marks of chat
    templates, or as recorded but for characters that no API takes.
    """

    texts: Mapping[str, Template]
    untrusted: Untrusted

    @property
    def hash(self) -> str:
        """SHA-256 over the texts and how untrusted text is written into them."""
        how = f"version {VERSION}" if self.untrusted == "neutralised" else self.untrusted
        return sha256(repr([*self.texts.items(), how]).encode()).hexdigest()

    @property
    def text_hash(self) -> str:
        """SHA-256 over the texts alone, in order, each slot as ``{NAME}``, with NUL in between."""
        texts = (
            "".join(part if isinstance(part, str) else f"{{{part.name}}}" for part in text)
            for text in self.texts.values()
        )
        return sha256("\0".join(texts).encode()).hexdigest()

    def shown(self, text: str) -> str:
        """Return untrusted text as it is sent."""
        return sendable(neutralise(text, self._tags) if self.untrusted == "neutralised" else text)

    @cached_property
    def _tags(self) -> frozenset[str]:
        words = (part for text in self.texts.values() for part in text if isinstance(part, str))
        return frozenset(tag for part in words for tag in TAG.findall(part))

    def changes(self, texts: Iterable[str | None]) -> int:
        """Count the places of the texts that are not sent as they were recorded."""
        return sum(count_changes(text, self.shown) for text in texts if text is not None)

    def fill(self, name: str, **values: str) -> str:
        """Fill a text; the values are never read as templates."""
        parts = self.texts[name]
        return "".join(p if isinstance(p, str) else values[p.name] or p.default for p in parts)

    def write(self, name: str, **values: str | None) -> str:
        """Fill a text with untrusted values, each as it is ``shown``; None is written ``None``, as
        Python's formatting does."""
        return self.fill(name, **{slot: self.shown(str(text)) for slot, text in values.items()})

    def steps(self, view: TruncatedView) -> str:
        """Render the steps of a view by the text ``step``, with nothing in between and
        a mark where some are left out."""
        steps = [
            self.write("step", step_number=str(number), url=url, action=action, reasoning=reasoning)
            for number, url, action, reasoning in view.steps
        ]
        if view.elided:
            steps.insert(view.head, left_out(view.elided))
        return "".join(steps)


def left_out(steps: int) -> str:
    """Mark that steps are left out, which no source can express."""
    return f"\n[... {steps} steps left out ...]\n"


class Excerpt(NamedTuple):
    """Where a text stands: what is assigned to ``variable``, of the module or of a ``function``,
    for the ``nth`` time, from 0. ``slots`` are the names that it must leave open; None: it is used
    as it is. ``stripped``: the source uses it without blanks at its ends; ``marks``: what it fills,
    ``{name}``, ``<name>`` or ``$name``.

    The variable ``text`` is the first ``{"type": "text", "text": ...}`` of the function (or class),
    ``format`` a text whose ``format`` is called at once, ``literal`` any string literal; an
    f-string's slots are ``0``, ``1``, ... Without a variable it is the whole file.
    """

    file: str
    variable: str = ""
    function: str = ""
    nth: int = 0
    slots: tuple[str, ...] | None = None
    stripped: bool = False
    marks: Literal["{}", "<>", "$"] = "{}"


_DEFAULTS, _AER, _NNETNAV = (
    "judge/defaults.py",
    "judge/existing/aer.py",
    "judge/existing/nnetnav.py",
)
_STEP = Excerpt(_DEFAULTS, "STEP_TEMPLATE", slots=("step_number", "url", "action", "reasoning"))


def _webjudge(file: str, verdict: str) -> dict[str, Excerpt]:
    file = f"src/methods/{file}.py"
    named = ("task", "key_points", "last_actions", "thoughts")
    return {
        "key_points_system": Excerpt(file, "system_msg", "identify_key_points"),
        "key_points_user": Excerpt(file, "prompt", "identify_key_points", slots=("task",)),
        "screenshot_system": Excerpt(file, "system_msg", "judge_image"),
        "screenshot_user": Excerpt(file, "prompt", "judge_image", slots=("task", "key_points")),
        "system": Excerpt(file, "system_msg", verdict),
        "user": Excerpt(file, "prompt", verdict, slots=named),
        "user_without": Excerpt(file, "prompt", verdict, 1, slots=named[:3]),
    }


_FARA = "webeval/src/webeval/rubric_agent"


def _fara(variable: str, *slots: str) -> Excerpt:
    return Excerpt(f"{_FARA}/prompts.py", variable, slots=slots or None, marks="$")


def _fara_parts(file: str, function: str, words: str) -> dict[str, Excerpt]:
    """Name string literals of a function: NAME=NUMBER, or NAME=NUMBER:SLOTS with so many slots."""
    parts = {}
    for name, numbers in (word.split("=") for word in words.split()):
        nth, _, count = numbers.partition(":")
        slots = tuple(map(str, range(int(count)))) if count else None
        parts[name] = Excerpt(f"{_FARA}/{file}", "literal", function, int(nth), slots)
    return parts


_FARA_AGENT = "mm_rubric_agent.py"
_FARA_TASK = ("task_definition", "init_url_context")
_FARA_POLICY = ("critical_point_context", "user_simulator_policy")
_FARA_ASKED = (*_FARA_TASK, "action_history", "agent_predicted_output")
_FARA_SCORED = (
    *(*_FARA_TASK, *_FARA_POLICY, "action_history"),
    *("cp_decision_rules", "rubric_summary", "evidence_summary"),
)

_UNIVERSAL_VERIFIER: Mapping[str, Excerpt] = {
    "critical_point_system": Excerpt(f"{_FARA}/templates/cp_classifier_system.j2"),
    "critical_point": Excerpt(f"{_FARA}/templates/cp_classifier_user.j2"),
    "critical_point_types": Excerpt(f"{_FARA}/critical_point_types.yaml"),
    **_fara_parts("_cp_schema.py", "Confidence", "HIGH=2 MEDIUM=4 LOW=6"),
    **_fara_parts(_FARA_AGENT, "MMRubricAgent", "system=4"),
    "rubric": _fara(
        "RUBRIC_GENERATION_PROMPT_TEMPLATE", "task_id", "init_url_context", *_FARA_POLICY
    ),
    "dependencies": _fara(
        "RUBRIC_DEPENDENCY_CHECKING_PROMPT", "task_id", "init_url_context", "rubric"
    ),
    "baseline": _fara(
        "ACTION_ONLY_RUBRIC_SCORER_PROMPT",
        *(*_FARA_TASK, *_FARA_POLICY, "rubric", "action_history", "predicted_target"),
    ),
    "relevance": _fara("MM_SCREENSHOT_CRITERION_RELEVANCE_PROMPT", *_FARA_TASK, "rubric_criteria"),
    "evidence_of_one": _fara(
        "MM_SCREENSHOT_EVIDENCE_ANALYSIS_PROMPT",
        *(*_FARA_ASKED, "criterion_info", "conditional_check", "conditional_output"),
    ),
    "evidence": _fara(
        "MM_SCREENSHOT_BATCHED_EVIDENCE_ANALYSIS_PROMPT", *_FARA_ASKED, "criteria_info_block"
    ),
    "conditions": _fara(
        "CONDITIONAL_CRITERIA_DISAMBIGUATION_PROMPT",
        *(*_FARA_TASK, "num_conditional", "conditional_criteria_with_evidence"),
    ),
    "reality": _fara(
        "RUBRIC_REALITY_CHECK_PROMPT",
        *(*_FARA_TASK, "num_criteria", "last_criterion_idx", "criteria_with_evidence"),
    ),
    "rescore": _fara(
        "MM_RUBRIC_RESCORING_PROMPT",
        *(*_FARA_ASKED, "full_rubric_with_baselines", "all_screenshot_evidence", "num_criteria"),
    ),
    "side_effects": _fara(
        "PENALIZE_UNSOLICITED_SIDE_EFFECTS_PROMPT",
        *(*_FARA_TASK, "action_history", "scored_rubric_summary", "all_concatenated_evidence"),
    ),
    "outcome": _fara("OUTCOME_VERIFICATION_PROMPT", *_FARA_SCORED, "predicted_output"),
    "violation": _fara("CP_VIOLATION_CHECK_PROMPT", *_FARA_SCORED),
    "policy_rubric_off": _fara("USER_SIMULATOR_DISABLED_RUBRIC_BLOCK"),
    "policy_rubric_on": _fara("USER_SIMULATOR_ENABLED_RUBRIC_BLOCK"),
    "policy_outcome_off": _fara("USER_SIMULATOR_DISABLED_OUTCOME_BLOCK"),
    "policy_outcome_on": _fara("USER_SIMULATOR_ENABLED_OUTCOME_BLOCK"),
    "rules_none": _fara("_CP_RULES_NO_CRITICAL_POINT"),
    "rules_no_permission": _fara("_CP_RULES_NO_PERMISSION"),
    "rules_permission": _fara("_CP_RULES_PERMISSION_GRANTED"),
    **_fara_parts("formatting.py", "get_init_url_context", "init_url=9:1"),
    **_fara_parts("formatting.py", "format_action_history", "error=9:2"),
    **_fara_parts(
        "critical_point_classifier.py",
        "render_critical_point_context_block",
        "point_unknown=1 point_nothing=2 point_expected=8:2 simulator_on=10 simulator_off=11 "
        "point=12:7",
    ),
    **_fara_parts(
        _FARA_AGENT,
        "_score_screenshot_criterion_relevance",
        "relevance_name=2:2 relevance_description=3:1",
    ),
    **_fara_parts(
        _FARA_AGENT,
        "_analyze_screenshot_evidence",
        "one_name=1:2 one_description=2:1 one_max=3:1 one_condition=7:1 one_output=8",
    ),
    **_fara_parts(
        _FARA_AGENT,
        "_analyze_screenshot_evidence_batched",
        "each_name=39:2 each_description=40:1 each_max=41:1 each_condition=43:1",
    ),
    **_fara_parts(
        _FARA_AGENT,
        "_disambiguate_conditional_criteria",
        "condition_name=4:2 condition_condition=5:1 condition_description=6:1 condition_max=7:1 "
        "condition_shot=10:1 condition_evidence=11:1 condition_analysis=12:1 "
        "condition_discrepancies=13:1 condition_met=15:1",
    ),
    **_fara_parts(
        _FARA_AGENT,
        "_rubric_reality_check",
        "reality_name=2:2 reality_description=3:1 reality_max=4:1 reality_shot=7:1 "
        "reality_evidence=8:1 reality_analysis=9:1 reality_discrepancies=10:1 reality_nothing=11",
    ),
    **_fara_parts(
        _FARA_AGENT,
        "_build_full_rubric_with_baselines",
        "again_name=1:2 again_description=2:1 again_notes=4:1 again_condition=6:1 again_met=7:1 "
        "again_max=8:1 again_baseline=9:2 again_reason=10:1",
    ),
    **_fara_parts(_FARA_AGENT, "_rescore_rubric_with_screenshots", "unmet=7"),
    **_fara_parts(
        _FARA_AGENT,
        "_detect_unsolicited_side_effects",
        "effects_name=2:2 effects_evidence=3:1 effects_analysis=4:1 effects_discrepancies=5:1",
    ),
    **_fara_parts(
        "formatting.py",
        "build_scored_rubric_summary",
        "scored_name=1:2 scored_description=2:1 scored_notes=4:1 scored_condition=6:1 "
        "scored_met=7:1 scored_max=8:1 scored_baseline=9:2 scored_final=10:2 scored_reason=11:1 "
        "scored_penalty=13 scored_total=15:2",
    ),
    **_fara_parts(
        "formatting.py",
        "build_all_screenshot_evidence_text",
        "seen_name=1:2 seen_nothing=2 seen_shot=6:2 seen_evidence=7:1 seen_analysis=8:1 "
        "seen_discrepancies=9:1 seen_environment=10:1",
    ),
}

_GENERAL = "webjudge_general_eval"
_WEBVOYAGER = "evaluation/auto_eval.py"
_INSTA = "insta/judge_prompts/verbose_judge_prompt.py"

EXCERPTS: Mapping[tuple[str, str], Mapping[str, Excerpt]] = {
    ("simplified", "agentrewardbench"): {
        "system_first": Excerpt(_DEFAULTS, "SYSTEM_PROMPT"),
        "system_last": Excerpt(_DEFAULTS, "INVERTED_SYSTEM_PROMPT"),
        "final": Excerpt(_DEFAULTS, "FINAL_MSG"),
        "step": _STEP,
        "goal": Excerpt(_DEFAULTS, "GOAL_TEMPLATE", slots=("goal",)),
        "steps": Excerpt(_DEFAULTS, "ACTION_TEMPLATE", slots=("steps",)),
        "axtree": Excerpt(_DEFAULTS, "AXTREE_TEMPLATE", slots=("axtree",)),
        "screenshot": Excerpt("judge/__init__.py", "text", "format_content_for_image"),
    },
    ("aer", "agentrewardbench"): {
        "system": Excerpt(_AER, "sys_prompt", stripped=True),
        "step": _STEP,
        "caption": Excerpt(
            _AER, "user_prompt_template", slots=("intent", "last_actions", "cap"), stripped=True
        ),
        "screenshot": Excerpt(
            _AER, "user_prompt_template_vis", slots=("intent", "last_actions"), stripped=True
        ),
        "captioner": Excerpt(_AER, "prompt", "format_msg_for_captioning"),
    },
    ("nnetnav", "agentrewardbench"): {
        "system": Excerpt(_NNETNAV, "JUDGE_SYS_PROMPT"),
        "user": Excerpt(_NNETNAV, "JUDGE_USER_PROMPT_TEMPLATE", slots=("goal", "descriptions")),
        "describe_system": Excerpt(_NNETNAV, "DELTA_LM_SYS_PROMPT", slots=("action_str",)),
        "describe_user": Excerpt(
            _NNETNAV, "DELTA_LM_USER_PROMPT", slots=("prev_axtree", "curr_axtree", "action")
        ),
        "actions": Excerpt(_NNETNAV, "webarena_action_str"),
    },
    ("webjudge-online-mind2web", "online-mind2web"): _webjudge(
        "webjudge_online_mind2web", "WebJudge_Online_Mind2Web_eval"
    ),
    ("webjudge-general", "online-mind2web"): {
        **_webjudge(_GENERAL, "WebJudge_general_eval"),
        "goal_images": Excerpt(f"src/methods/{_GENERAL}.py", "text", "judge_image"),
    },
    ("webvoyager", "webvoyager"): {
        "system": Excerpt(_WEBVOYAGER, "SYSTEM_PROMPT"),
        "user": Excerpt(_WEBVOYAGER, "USER_PROMPT", slots=("task", "answer", "num"), marks="<>"),
        "closing": Excerpt(_WEBVOYAGER, "text", "auto_eval_by_gpt4v"),
    },
    ("insta", "insta"): {
        "system": Excerpt(_INSTA, "SYSTEM_PROMPT"),
        "user": Excerpt(_INSTA, "USER_PROMPT_TEMPLATE", slots=("instruction", "summary")),
        "page": Excerpt("insta/judge.py", "format", "get_user_prompt", slots=("0", "1")),
        "action": Excerpt("insta/judge.py", "format", "get_user_prompt", 1, slots=("0", "1")),
    },
    ("universal-verifier", "fara"): _UNIVERSAL_VERIFIER,
}
"""The texts of a judge, or of its variant, in a source."""


def load_texts(judge: str, prompts: str, untrusted: Untrusted = "neutralised") -> PublishedTexts:
    """Load the texts of a judge (a first part of ``EXCERPTS``) that ``prompts`` names. Raises
    UserError if they cannot be read, or are not those that this version of trajudge knows."""
    return read_texts(judge, prompts, source_folder(prompts), untrusted)


def read_texts(
    judge: str, prompts: str, folder: Path, untrusted: Untrusted = "neutralised"
) -> PublishedTexts:
    """Read the texts in the folder of a package or a checkout. Raises UserError as
    ``load_texts``."""
    source = prompts.partition(":")[0]
    texts: dict[str, Template] = {}
    modules: dict[Path, ast.Module] = {}
    for name, excerpt in EXCERPTS[judge, source].items():
        file = folder / excerpt.file
        template: Template | None
        if not excerpt.variable:
            template = (_read(file, source),)
        else:
            if file not in modules:
                modules[file] = _parsed(file, source)
            template = _excerpted(modules[file], excerpt)
        if template is None:
            place = f"{excerpt.variable} of {excerpt.function}".removesuffix(" of ")
            raise UserError(
                f"{file} lacks the prompt {place} as it is known: {_another_version(source)}"
            )
        texts[name] = template
    return PublishedTexts(texts, untrusted)


def _read(path: Path, source: str) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read as the prompts of {source} ({error}): "
            f"{_another_version(source)}"
        ) from error


def _parsed(path: Path, source: str) -> ast.Module:
    text = _read(path, source)
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(
            f"{path} cannot be read as the prompts of {source} ({error}): "
            f"{_another_version(source)}"
        ) from error


def _another_version(source: str) -> str:
    origin = ORIGINS[source]
    if origin.repository:
        return f"name a checkout of {origin.repository}, of the version that the card names"
    known = {"agentrewardbench": "0.1.2", "browser-use": "0.13"}[source]
    return f"install {origin.package} {known}, with  pip install --no-deps {origin.package}"


def _excerpted(module: ast.Module, excerpt: Excerpt) -> Template | None:
    """Return the text of an excerpt, None where there is none, or its slots are others."""
    nodes: Iterable[ast.AST] = module.body
    if excerpt.function:
        nodes = list(_function(module, excerpt.function))
    if excerpt.variable == "literal":
        literals = _literals(nodes)
        return _numbered(literals[excerpt.nth], excerpt) if len(literals) > excerpt.nth else None
    if excerpt.variable == "text":
        texts = list(_text_parts(nodes))
    elif excerpt.variable == "format":
        texts = list(_formatted(nodes))
    else:
        texts = _string_constants(nodes).get(excerpt.variable, [])
    if len(texts) <= excerpt.nth:
        return None
    text = texts[excerpt.nth] if excerpt.function else texts[-1]
    return _template(text.strip() if excerpt.stripped else text, excerpt)


_DOLLAR = re.compile(r"\$\$|\$\{(\w+)\}|\$(\w+)|[{}]", re.ASCII)


def _braced(mark: re.Match[str]) -> str:
    """Write ``$name`` as ``{name}``, ``$$`` as ``$``, and a brace twice."""
    name = mark[1] or mark[2]
    return f"{{{name}}}" if name else {"$$": "$", "{": "{{", "}": "}}"}[mark[0]]


def _template(text: str, excerpt: Excerpt) -> Template | None:
    """Split a text at its slots; None if they are not the excerpt's."""
    if excerpt.slots is None:
        return (text,)
    if excerpt.marks == "$":
        text = _DOLLAR.sub(_braced, text)
    elif excerpt.marks == "<>":
        text = text.replace("{", "{{").replace("}", "}}")
        for slot in excerpt.slots:
            text = text.replace(f"<{slot}>", f"{{{slot}}}")
    parts: list[str | Slot] = []
    try:
        for number, (words, name, _, _) in enumerate(Formatter().parse(text)):
            parts += [words] if words else []
            parts += [] if name is None else [Slot(name or str(number))]
    except ValueError:  # a single brace
        return None
    return _checked(parts, excerpt)


def _checked(parts: Sequence[str | Slot], excerpt: Excerpt) -> Template | None:
    """Return the parts, None if their slots are not the excerpt's."""
    named = sorted({part.name for part in parts if isinstance(part, Slot)})
    return tuple(parts) if named == sorted(excerpt.slots or ()) else None


def _literals(nodes: Iterable[ast.AST]) -> list[ast.Constant | ast.JoinedStr]:
    """List the string literals in order, without those within an f-string."""
    nodes = list(nodes)
    strings = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    within = {id(part) for string in strings for part in ast.walk(string) if part is not string}
    return [
        node
        for node in nodes
        if id(node) not in within
        and (
            isinstance(node, ast.JoinedStr)
            or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        )
    ]


def _numbered(literal: ast.Constant | ast.JoinedStr, excerpt: Excerpt) -> Template | None:
    """Return a literal, the values of an f-string as the slots 0, 1, ...; None if they are not the
    excerpt's, or are formatted."""
    parts: list[str | Slot] = []
    for value in literal.values if isinstance(literal, ast.JoinedStr) else [literal]:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value))
        elif isinstance(value, ast.FormattedValue) and value.conversion == -1:
            if value.format_spec is not None:
                return None
            parts.append(Slot(str(sum(isinstance(part, Slot) for part in parts))))
    return _checked(parts, excerpt)


def _string_constants(nodes: Iterable[ast.AST]) -> dict[str, list[str]]:
    """Collect what ``NAME = "text"`` and ``NAME = NAME.strip()`` assign, in order."""
    texts: dict[str, list[str]] = {}
    for node in nodes:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        name, value = node.targets[0].id, node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            texts.setdefault(name, []).append(value.value)
        elif name in texts and ast.unparse(value) == f"{name}.strip()":
            texts[name].append(texts[name][-1].strip())
    return texts


def _text_parts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the texts of ``{"type": "text", "text": "..."}``."""
    for node in nodes:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                named = isinstance(key, ast.Constant) and key.value == "text"
                if named and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value


def _formatted(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the texts of ``"...".format(...)``."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
                yield text


def _function(module: ast.Module, name: str) -> Iterator[ast.AST]:
    """Yield the nodes of a function, method or class in the order of their lines, none where there
    is no such one."""
    for node in ast.walk(module):
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        if isinstance(node, kinds) and node.name == name:
            inner = [one for one in ast.walk(node) if isinstance(one, ast.stmt | ast.expr)]
            yield from sorted(inner, key=lambda one: (one.lineno, one.col_offset))
            return


# AgentRewardBench's judges by their names


def read_judge_args(option: str) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, Any]]:
    """Read the judges of AgentRewardBench by name, each with its model and what it is shown, and
    the parameters of all of them, which ``option`` asks for. Raises UserError if the package is not
    installed, or is not as it is known."""
    source = "agentrewardbench"
    file = source_folder(source, option) / "judge" / "args.py"
    values: dict[str, Any] = {}
    for node in _parsed(file, source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                values[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    judges, common = values.get("judge_args"), values.get("default_judge_args")
    if not isinstance(judges, dict) or not isinstance(common, dict):
        raise UserError(f"{file} names no judges as it is known: {_another_version(source)}")
    return judges, common


def read_defaults(function: str, file: str) -> dict[str, Any]:
    """Read the plain default values of a function in AgentRewardBench's ``file``. Raises UserError
    as ``read_judge_args``."""
    source = "agentrewardbench"
    for node in ast.walk(_parsed(source_folder(source) / file, source)):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            named = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            pairs = zip(named, node.args.defaults, strict=True)
            return {a.arg: v.value for a, v in pairs if isinstance(v, ast.Constant)}
    return {}


# browser-use

# The texts by their variable, with the values that each is filled with.
_VALUES = {
    "ground_truth_section": set[str](),
    "system_prompt": {"ground_truth_section", "current_date"},
    "ground_truth_prompt": {"ground_truth"},
    "user_prompt": {
        "task_truncated",
        "ground_truth_prompt",
        "steps_text_truncated",
        "final_result_truncated",
        "len(encoded_images)",
    },
}


class PublishedJudge(PublishedTexts):
    """The prompts of browser-use's built-in judge."""

    @property
    def mark(self) -> str:
        """What stands where a text was cut."""
        return self.fill("mark")

    def system(self, *, ground_truth: bool, date: str) -> str:
        """Render the system prompt; ``date`` as the package writes it: 2026-01-31 12:00 UTC."""
        section = self.fill("ground_truth_section") if ground_truth else ""
        values = {"ground_truth_section": section, "current_date": date}
        return sendable(self.fill("system_prompt", **values))

    def user(
        self, *, task: str, steps: str, result: str, ground_truth: str | None, images: int
    ) -> str:
        """Render the user's text, whose values are untrusted; ``images`` is how many follow."""
        truth = ""
        if ground_truth is not None:
            truth = self.fill("ground_truth_prompt", ground_truth=self.shown(ground_truth))
        values = {
            "task_truncated": self.shown(task),
            "ground_truth_prompt": truth,
            "steps_text_truncated": self.shown(steps),
            "final_result_truncated": self.shown(result),
            "len(encoded_images)": str(images),
        }
        return sendable(self.fill("user_prompt", **values))


@cache
def load_published_judge(untrusted: Untrusted = "neutralised") -> PublishedJudge:
    """Load the prompts of the installed package. Raises UserError if it is not installed, or if its
    file does not hold the texts that this version of trajudge knows."""
    return read_published_judge(source_folder("browser-use") / "agent" / "judge.py", untrusted)


def read_published_judge(path: Path, untrusted: Untrusted = "neutralised") -> PublishedJudge:
    """Read the prompts in the package's ``agent/judge.py``."""
    module = _parsed(path, "browser-use")
    assigned = dict(_assigned(_function(module, "construct_judge_messages")))
    mark = _mark(_function(module, "_truncate_text"))
    for name, values in _VALUES.items():
        named = {part.name for part in assigned.get(name, ()) if isinstance(part, Slot)}
        if name not in assigned or named != values or not mark:
            raise UserError(
                f"{path} does not hold the judge's {name} as it is known: install browser-use "
                "0.13, or leave --prompts out"
            )
    texts = {name: assigned[name] for name in _VALUES}
    return PublishedJudge({**texts, "mark": (mark,)}, untrusted)


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, Template]]:
    """Yield the strings and f-strings that are assigned, but for the empty ones."""
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            parts = value.values if isinstance(value, ast.JoinedStr) else [value]
            template = tuple(map(_part, parts))
            if all(part is not None and part != "" for part in template):
                yield node.targets[0].id, tuple(part for part in template if part is not None)


def _part(value: ast.expr) -> str | Slot | None:
    """Return a piece of text, or the place of ``name`` or of ``name or "what stands there else"``;
    None for any other value."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else None
    if not isinstance(value, ast.FormattedValue):
        return None
    inner = value.value
    if isinstance(inner, ast.BoolOp) and isinstance(inner.op, ast.Or) and len(inner.values) == 2:
        first, default = inner.values
        if isinstance(default, ast.Constant):
            return Slot(ast.unparse(first), str(default.value))
    return Slot(ast.unparse(inner))


def _mark(nodes: Iterable[ast.AST]) -> str:
    """Return what a function puts behind a text that it cut, "" if it is not as it is known."""
    for node in nodes:
        match node:
            case ast.BinOp(left=ast.Subscript(), right=ast.Constant(value=value)):
                return str(value)
    return ""
