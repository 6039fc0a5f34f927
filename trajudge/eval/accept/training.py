"""Training data in the layouts of trainers, from the runs that a judge accepted.

A layout is a table of columns (``LAYOUTS``). The judged runs are listed while they are accepted or
rejected; which of them become rows is known at the end, so that these are read a second time.
"""

from __future__ import annotations

import base64
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import orjson

from trajudge.annotations.agentrewardbench import family_of
from trajudge.eval.accept.conversations import (
    ChatFormat,
    ChatTurn,
    chat_turns,
)
from trajudge.eval.accept.settings import AcceptConfig, FormatName, TrainingConfig, Unit
from trajudge.eval.reporting.sentences import threshold_text
from trajudge.eval.select.decision import Decision
from trajudge.trajectories.images import (
    MAX_DECODED_PIXELS,
    MAX_DECODED_SIDE,
    PictureLimits,
    load_picture,
)
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey
from trajudge.util import jsonl as python_json
from trajudge.util.errors import ImageUnreadable, UserError
from trajudge.util.files import make_folder, open_regular, read_regular, save_bytes
from trajudge.util.terminal import count_of

TRAIN, TEST = "train", "test"
IMAGES = "images"
_SUFFIXES = {"image/png": "png", "image/jpeg": "jpg"}
# OpenAI's limits: bytes of an image, images of an example.
_MOST_IMAGES = 10
_LIMITS = PictureLimits(MAX_DECODED_SIDE, MAX_DECODED_PIXELS, 10_000_000, frozenset(_SUFFIXES))
_NOTABLE = 0.25  # of the smaller share, by which the share of test rows may miss
_PLACEHOLDER = re.compile(r"<(image|video|audio)>")
_HOST = re.compile(r"\bhttps?://[^/\s\"'()]+")


class TrainingTurn(NamedTuple):
    """One turn: its text, the file of its screenshot below the folder of the training data, and
    whether the trainer learns to write it."""

    role: str
    text: str
    image: str | None = None
    learned: bool = False


@dataclass(frozen=True)
class Example:
    """A conversation. ``origin`` goes into the row's column ``trajudge``; ``success`` is the
    judge's answer. In a pair ``turns`` ends with the turn to prefer and ``rejected`` is the other,
    ``margin`` the difference of their scores. ``folder`` holds the screenshots, None: they are left
    out."""

    turns: tuple[TrainingTurn, ...]
    origin: dict[str, Any]
    success: bool
    folder: Path | None
    rejected: TrainingTurn | None = None
    margin: float = 0.0

    @property
    def images(self) -> list[str]:
        """The screenshots in the order of the turns."""
        return [turn.image for turn in self.turns if turn.image]


def _parts(example: Example, turns: Iterable[TrainingTurn]) -> list[dict[str, Any]]:
    """Write turns as TRL and the hub read them: text, or parts where there are screenshots."""
    if not example.folder:
        return [{"role": turn.role, "content": turn.text} for turn in turns]
    image = {"type": "image", "text": None}
    return [
        {"role": t.role, "content": [image] * bool(t.image) + [{"type": "text", "text": t.text}]}
        for t in turns
    ]


def _with_placeholders(turns: Iterable[TrainingTurn]) -> list[dict[str, Any]]:
    """Put ``<image>`` before the text; what a page wrote in this form is no placeholder."""
    texts = [(turn, _PLACEHOLDER.sub(r"< \1>", turn.text)) for turn in turns]
    return [
        {"role": turn.role, "content": f"<image>{text}" if turn.image else text}
        for turn, text in texts
    ]


def _axolotl(example: Example) -> list[dict[str, Any]]:
    """Write the messages for ``type: chat_template``, each with ``training``."""
    messages = []
    for turn in example.turns:
        content: Any = turn.text
        if example.folder:
            image = [{"type": "image", "path": turn.image}] if turn.image else []
            content = [*image, {"type": "text", "text": turn.text}]
        messages.append({"role": turn.role, "content": content, "training": turn.learned})
    return messages


def _openai(example: Example) -> list[dict[str, Any]]:
    messages = []
    for turn in example.turns:
        message: dict[str, Any] = {"role": turn.role, "content": turn.text}
        if example.folder and turn.image:
            image = {"type": "image_url", "image_url": {"url": _url(example.folder / turn.image)}}
            message["content"] = [image, {"type": "text", "text": turn.text}]
        if turn.role == "assistant":
            message["weight"] = int(turn.learned)
        messages.append(message)
    return messages


def _url(file: Path) -> str:
    kind = "png" if file.suffix == ".png" else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(read_regular(file)).decode()}"


def _extra_info(example: Example) -> dict[str, Any]:
    """Name the recorded run, not as ``trajectory_id``: that is of the new rollout."""
    names = ("benchmark", "task_id", "agent", "attempt", "split")
    return {name: example.origin[name] for name in names}


class LayoutColumn(NamedTuple):
    """What stands in a column of an example's row, and its type in Parquet: turns, or a type of
    Arrow, or by field."""

    build: Callable[[Example], Any]
    kind: str | Mapping[str, str] = "turns"


class Layout(NamedTuple):
    """The rows that a trainer reads. ``per`` are the units that it takes, the default first;
    ``both``: it learns from rejected runs too; ``parquet``: or else JSON lines. ``placeholders``:
    a screenshot is a mark in the text, not a part."""

    columns: Mapping[str, LayoutColumn]
    per: tuple[Unit, ...] = ("trajectory", "step")
    both: bool = False
    parquet: bool = True
    placeholders: bool = False


_CONVERSATION = Layout({"messages": LayoutColumn(lambda e: _parts(e, e.turns))})
_PROMPT = LayoutColumn(lambda e: _parts(e, e.turns[:-1]))
_LAST = LayoutColumn(lambda e: _parts(e, e.turns[-1:]))
_VERL_STRUCT = {**dict.fromkeys(("benchmark", "task_id", "agent", "split"), "string")}

LAYOUTS: dict[FormatName, Layout] = {
    "trl-messages": _CONVERSATION,  # SFTTrainer with assistant_only_loss
    "trl-prompt-completion": Layout({"prompt": _PROMPT, "completion": _LAST}, ("step",)),
    "trl-preference": Layout(  # DPOTrainer and RewardTrainer
        {
            "prompt": _PROMPT,
            "chosen": _LAST,
            "rejected": LayoutColumn(lambda e: _parts(e, [e.rejected] if e.rejected else [])),
            "margin": LayoutColumn(lambda e: e.margin, "float64"),
        },
        ("step",),
        both=True,
    ),
    "trl-kto": Layout(
        {
            "prompt": _PROMPT,
            "completion": _LAST,
            "label": LayoutColumn(lambda e: e.success, "bool"),
        },
        ("step",),
        both=True,
    ),
    "llamafactory": Layout(
        {"messages": LayoutColumn(lambda e: _with_placeholders(e.turns))},
        parquet=False,
        placeholders=True,
    ),
    "axolotl": Layout({"messages": LayoutColumn(_axolotl)}, parquet=False),
    "verl": Layout(  # one task for reinforcement learning: the first page, no answer to it
        {
            "data_source": LayoutColumn(lambda e: f"trajudge/{e.origin['benchmark']}", "string"),
            "prompt": LayoutColumn(lambda e: _with_placeholders(e.turns)),
            "ability": LayoutColumn(lambda e: "web", "string"),
            "reward_model": LayoutColumn(
                lambda e: {"style": "model", "ground_truth": ""},
                {"style": "string", "ground_truth": "string"},
            ),
            "extra_info": LayoutColumn(_extra_info, {**_VERL_STRUCT, "attempt": "int64"}),
        },
        ("trajectory",),
        placeholders=True,
    ),
    "openai-sft": Layout({"messages": LayoutColumn(_openai)}, parquet=False),
    "hf": _CONVERSATION,
}

_ORIGIN = {
    **dict.fromkeys(("benchmark", "agent", "task_id", "judge", "decision", "credit"), "string"),
    **dict.fromkeys(("score", "threshold", "precision_at_least", "confidence"), "float64"),
    **dict.fromkeys(("attempt", "step"), "int64"),
}
_TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
}
_AXOLOTL_CONFIG = """\
datasets:
  - path: {path}
    ds_type: json
    type: chat_template
    field_messages: messages
    message_property_mappings:
      role: role
      content: content
    message_field_training: training
    roles_to_train: []
    train_on_eos: turn
"""


class JudgedRun(NamedTuple):
    """A run that may become training data: the judge's score and answer, and a hash of its
    goal and of what the agent wrote."""

    key: TrajectoryKey
    score: float
    success: bool
    written: bytes


@dataclass
class ChosenRuns:
    """The file (train, test) that each chosen run goes to, and how many were left out, by the
    reason."""

    runs: dict[TrajectoryKey, tuple[JudgedRun, str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def written_hash(turns: Iterable[ChatTurn], goal: str) -> bytes:
    """Return what is equal for two runs of a goal in which the agent wrote the same."""
    hashed = sha256(goal.encode("utf-8", "surrogatepass"))
    for turn in turns:
        if turn.role == "assistant":
            hashed.update(b"\0" + turn.content.encode("utf-8", "surrogatepass"))
    return hashed.digest()


def choose_runs(listed: Iterable[JudgedRun], config: TrainingConfig) -> ChosenRuns:
    """Drop duplicates within a task, cap its runs, and split the tasks.

    Successes and failures of a task are capped apart. All tasks of a family go to one file; at
    least one family to the test file where a share is asked for and two remain. The draws depend
    on the seed and the keys, not on the order in which the runs come.
    """
    by_task: dict[tuple[str, str], list[JudgedRun]] = defaultdict(list)
    for run in sorted(listed, key=lambda run: run.key.order):
        by_task[run.key.benchmark, run.key.task_id].append(run)
    rng = np.random.default_rng(config.seed)
    families = {task: (task[0], family_of(by_task[task][0].key)) for task in sorted(by_task)}
    all_families, tested = sorted(set(families.values())), set()
    if config.test_share and len(all_families) > 1:
        count = max(round(config.test_share * len(all_families)), 1)
        tested = _draw(all_families, min(count, len(all_families) - 1), rng)
    chosen = ChosenRuns()
    for task, family in families.items():
        distinct = {(run.success, run.written): run for run in by_task[task][::-1]}
        chosen.left_out["duplicate"] += len(by_task[task]) - len(distinct)
        for success in (True, False):
            same = [run for run in [*distinct.values()][::-1] if run.success is success]
            kept = same
            if config.per_task is not None and len(same) > config.per_task:
                drawn = rng.choice(len(same), config.per_task, replace=False)
                kept = [same[number] for number in sorted(drawn.tolist())]
            chosen.left_out["above the cap per task"] += len(same) - len(kept)
            file = TEST if family in tested else TRAIN
            chosen.runs.update({run.key: (run, file) for run in kept})
    return ChosenRuns(chosen.runs, +chosen.left_out)


def _draw(
    families: Sequence[tuple[str, str]], count: int, rng: np.random.Generator
) -> set[tuple[str, str]]:
    return {families[n] for n in rng.choice(len(families), count, replace=False).tolist()}


def first_difference(good: Sequence[ChatTurn], bad: Sequence[ChatTurn]) -> int | None:
    """Find the first of the agent's turns whose action (or answer) differs, the pages until then
    being equal; None where there is none.

    Addresses are compared without their host: a site that is started anew for every run has
    another.
    """

    def action(turn: ChatTurn) -> str:
        return _HOST.sub("", turn.content.rpartition("</think>\n")[2])

    for at in range(2, min(len(good), len(bad)), 2):
        if _HOST.sub("", good[at - 1].content) != _HOST.sub("", bad[at - 1].content):
            return None
        if action(good[at]) != action(bad[at]):
            return at
    return None


def _pair_runs(chosen: ChosenRuns) -> dict[TrajectoryKey, TrajectoryKey]:
    """Pair the n-th accepted run of a task with its n-th rejected one, by their keys."""
    by_task: dict[tuple[str, str], tuple[list[TrajectoryKey], list[TrajectoryKey]]]
    by_task = defaultdict(lambda: ([], []))
    for key in sorted(chosen.runs, key=lambda key: key.order):
        by_task[key.benchmark, key.task_id][chosen.runs[key][0].success].append(key)
    partners = {}
    for bad, good in by_task.values():
        for one, other in zip(good, bad, strict=False):
            partners.update({one: other, other: one})
        chosen.left_out["no partner of the same task"] += abs(len(good) - len(bad))
    return partners


@dataclass(frozen=True)
class TrainingCounts:
    """Rows by file, runs, tasks and agents behind them, and what was left out by the reason."""

    rows: Mapping[str, int]
    runs: int
    tasks: int
    agents: Mapping[str, int]
    left_out: Mapping[str, int]
    screenshots: Mapping[str, int]

    def facts(self) -> dict[str, Any]:
        """Return the numbers that ``acceptance.json`` holds."""
        names = ("rows", "runs", "tasks", "left_out", "screenshots")
        return {name: getattr(self, name) for name in names}

    def warnings(self, config: TrainingConfig) -> list[str]:
        """List what the user should know of the rows."""
        warnings = []
        reasons = ", ".join(f"{reason}: {n:,}" for reason, n in self.left_out.items())
        if not self.rows:
            warnings.append(f"no row of training data ({reasons or 'nothing was accepted'})")
        elif reasons:
            warnings.append(f"left out of the training data ({reasons})")
        wanted, rows = config.test_share, sum(self.rows.values())
        share = self.rows.get(TEST, 0) / rows if rows else wanted
        if wanted and abs(share - wanted) > _NOTABLE * min(wanted, 1 - wanted):
            why = "all rows are of one task, which is not divided"
            if self.tasks != 1:
                why = (
                    f"whole tasks are drawn, and the {count_of(self.tasks, 'task')} are few or of "
                    "unequal size (another --seed draws others)"
                )
            warnings.append(
                f"--test-share {wanted:g}: {100 * share:.3g} % of the rows are in test, for {why}"
            )
        return warnings + [
            f"{n} turns without their screenshot: {problem}"
            for problem, n in self.screenshots.items()
        ]


class TrainingData:
    """The runs that may become training data; ``write`` makes rows of them.

    ``accepted_by`` are judge, threshold and the decision's hash; ``spec`` names the trajectories.

    Raises UserError for a unit that the layout does not have, and for a ``rejected_below`` above
    the threshold.
    """

    def __init__(
        self,
        config: AcceptConfig,
        form: FormatName,
        *,
        accepted_by: Mapping[str, Any],
        decision: Decision | None,
        spec: str,
        chat: ChatFormat,
    ) -> None:
        self._config, self._layout = config.training, LAYOUTS[form]
        training, threshold = config.training, float(accepted_by["threshold"])
        self._unit = training.per or self._layout.per[0]
        if self._unit not in self._layout.per:
            raise UserError(
                f"--per {training.per}: a row of --format {training.format} is a "
                f"{self._layout.per[0]}"
            )
        below = training.rejected_below
        self._below = threshold if below is None else below
        if self._below > threshold:
            raise UserError(
                f"--rejected-below {below:g} is above the threshold {threshold:g}: "
                "accepted runs would be examples of failure"
            )
        self._accepted_by, self._spec, self._chat = accepted_by, spec, chat
        self._data_name = config.data or spec
        self._guarantee = guarantee_of(decision)
        self._listed: list[JudgedRun] = []
        self._problems: Counter[str] = Counter()

    def add(
        self,
        trajectory: Trajectory,
        turns: Sequence[ChatTurn],
        score: float,
        is_accepted: bool,
        is_below: bool,
    ) -> None:
        """List an accepted run, or a clearly rejected one where the trainer learns from both."""
        if is_accepted or (self._layout.both and is_below and score < self._below):
            written = written_hash(turns, trajectory.goal)
            self._listed.append(JudgedRun(trajectory.key, score, is_accepted, written))

    def write(self, out: Path) -> TrainingCounts:
        """Write the rows, their card and the trainer's file into ``out``/``format``.

        Raises UserError for a folder that cannot be written.
        """
        config, layout = self._config, self._layout
        if config.format == "verl":  # its rows are tasks
            config = config.model_copy(update={"per_task": 1})
        folder = out / str(config.format)
        chosen = choose_runs(self._listed, config)
        rows: Counter[str] = Counter()
        used: dict[tuple[Any, ...], str] = {}
        try:
            make_folder(folder, "--out")
            # A file of an earlier call that is not written again would stay.
            for file in [*folder.glob("train*.*"), *folder.glob("test*.*")]:
                file.unlink()
            with TemporaryDirectory(dir=folder) as scratch, ExitStack() as stack:
                # Parquet and OpenAI hold the screenshots inside.
                is_inside = layout.parquet or config.format == "openai-sft"
                pictures = Path(scratch) if is_inside else folder
                staged: dict[str, Any] = {}
                for name, example in self._examples(chosen, pictures):
                    if config.format == "openai-sft" and len(example.images) > _MOST_IMAGES:
                        chosen.left_out["more images than the trainer takes"] += 1
                        continue
                    rows[name] += 1
                    keys = ("benchmark", "task_id", "agent", "attempt")
                    used[tuple(example.origin[key] for key in keys)] = example.origin["agent"]
                    for file_name, line in self._lines(name, example):
                        if file_name not in staged:
                            path = Path(scratch) / file_name
                            staged[file_name] = stack.enter_context(path.open("wb"))
                        staged[file_name].write(python_json.encode(line) + b"\n")
                for name, opened in staged.items():
                    opened.close()
                    if layout.parquet:
                        self._to_parquet(Path(opened.name), folder / f"{name}.parquet", pictures)
                    else:
                        Path(opened.name).replace(folder / f"{name}.jsonl")
        except OSError as error:
            raise UserError(f"--out {folder}: cannot be written ({error.strerror})") from error
        counts = TrainingCounts(
            rows=rows,
            runs=len(used),
            tasks=len({key[:2] for key in used}),
            agents=dict(sorted(Counter(used.values()).items())),
            left_out=+chosen.left_out,
            screenshots=self._problems,
        )
        suffix = "parquet" if layout.parquet else "jsonl"
        files = [f"{name}.{suffix}" for name in (TRAIN, TEST) if name in rows]
        save_bytes(folder / "README.md", self._card(counts, files).encode())
        if config.format == "llamafactory":
            columns = {"messages": "messages"} | (
                {IMAGES: IMAGES} if self._images(pictures) else {}
            )
            shared = {"formatting": "sharegpt", "columns": columns, "tags": _TAGS}
            info = {f"trajudge_{Path(f).stem}": {"file_name": f, **shared} for f in files}
            content = orjson.dumps(info, option=orjson.OPT_INDENT_2) + b"\n"
            save_bytes(folder / "dataset_info.json", content)
        if config.format == "axolotl":
            content = _AXOLOTL_CONFIG.format(path=next(iter(files), "train.jsonl")).encode()
            save_bytes(folder / "axolotl.yml", content)
        return counts

    def _images(self, folder: Path) -> Path | None:
        return folder if self._config.with_screenshots else None

    def _examples(self, chosen: ChosenRuns, pictures: Path) -> Iterator[tuple[str, Example]]:
        """Read the chosen runs again; yield their examples with the file that each goes to."""
        is_pair = self._config.format == "trl-preference"
        partners = _pair_runs(chosen) if is_pair else {}
        waiting: dict[TrajectoryKey, tuple[list[ChatTurn], dict[str, Any], float]] = {}
        for trajectory in open_source(self._spec):
            if not isinstance(trajectory, Trajectory) or trajectory.key not in chosen.runs:
                continue
            run, file = chosen.runs[trajectory.key]
            turns = chat_turns(trajectory, self._chat)
            origin = self._origin(trajectory, run) | {"split": file}
            if not is_pair:
                whole = self._unit == "trajectory"
                for last in [len(turns) - 1] if whole else range(2, len(turns), 2):
                    example = self._example(turns, last, origin, pictures, whole=whole)
                    yield file, replace(example, success=run.success)
            elif (partner := partners.get(run.key)) is not None:
                # A run is held until its partner comes.
                own, other = (turns, origin, run.score), waiting.pop(partner, None)
                if other is None:
                    waiting[run.key] = own
                    continue
                good, bad = (own, other) if run.success else (other, own)
                at = first_difference(good[0], bad[0])
                if at is None:
                    chosen.left_out["the pages differ before the actions do"] += 1
                    continue
                example = self._example(good[0], at, good[1], pictures)
                rejected = TrainingTurn("assistant", bad[0][at].content, learned=True)
                yield file, replace(example, rejected=rejected, margin=good[2] - bad[2])

    def _example(
        self,
        turns: Sequence[ChatTurn],
        last: int,
        origin: dict[str, Any],
        pictures: Path,
        *,
        whole: bool = False,
    ) -> Example:
        """Make an example that ends with ``turns[last]``, one of the agent's. Of a ``whole``
        trajectory every turn of the agent is learned; of a step only the last, and of the earlier
        ones the address and the agent's turns are read, but neither their pages nor their
        screenshots."""
        made = []
        turns = turns[:3] if self._config.format == "verl" else turns[: last + 1]
        for number, turn in enumerate(turns):
            if not whole and number < last - 1:
                made.append(TrainingTurn(turn.role, turn.without_page or turn.content))
                continue
            image = self._save(turn.screenshot, pictures) if turn.role == "user" else None
            made.append(TrainingTurn(turn.role, turn.content, image, turn.role == "assistant"))
        if self._config.format == "verl":
            made = made[:2]
        step = None if whole else last // 2 - 1
        facts = {**origin, "credit": "outcome", "step": step}
        return Example(tuple(made), facts, True, self._images(pictures))

    def _save(self, ref: ImageRef | None, folder: Path) -> str | None:
        """Write a screenshot, named by its content; return its path below the folder, None where
        there is none. Raises UserError for a folder that cannot be written."""
        if not self._config.with_screenshots:
            return None
        if ref is None:
            self._problems["not recorded"] += 1
            return None
        try:
            picture = load_picture(ref, _LIMITS)
        except ImageUnreadable:
            self._problems["unreadable"] += 1
            return None
        name = f"{IMAGES}/{picture.sha256}.{_SUFFIXES[picture.media_type]}"
        if not (folder / name).exists():
            save_bytes(folder / name, picture.data)
        return name

    def _origin(self, trajectory: Trajectory, run: JudgedRun) -> dict[str, Any]:
        low, confidence = self._guarantee
        shown = {"score": run.score, "precision_at_least": low, "confidence": confidence}
        return {**trajectory.key.model_dump(), **self._accepted_by, **shown}

    def _lines(self, name: str, example: Example) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the lines of a row by file: OpenAI takes no column of ours."""
        layout = self._layout
        row = {column: each.build(example) for column, each in layout.columns.items()}
        origin = {key: value for key, value in example.origin.items() if key != "split"}
        if self._config.format == "openai-sft":
            yield name, row
            yield f"{name}-provenance", origin
            return
        if example.folder and (layout.parquet or layout.placeholders):
            row[IMAGES] = example.images
        yield name, {**row, "trajudge": origin}

    def _to_parquet(self, staged: Path, target: Path, pictures: Path) -> None:
        import datasets  # noqa: PLC0415 - slow to import

        datasets.disable_progress_bars()
        text = datasets.Value("string")
        content: Any = text
        if self._config.with_screenshots and not self._layout.placeholders:
            content = datasets.List({"type": text, "text": text})
        turns = datasets.List({"role": text, "content": content})

        def feature(kind: str | Mapping[str, str]) -> Any:
            if isinstance(kind, str):
                return turns if kind == "turns" else datasets.Value(kind)
            return {name: datasets.Value(each) for name, each in kind.items()}

        columns = {name: feature(each.kind) for name, each in self._layout.columns.items()}
        if self._config.with_screenshots:
            columns[IMAGES] = datasets.List(datasets.Image())
        features = datasets.Features({**columns, "trajudge": feature(_ORIGIN)})
        with TemporaryDirectory(dir=target.parent) as cache:
            images = self._images(pictures)
            made = datasets.Dataset.from_generator(
                _read_rows,
                features=features,
                gen_kwargs={"staged": str(staged), "images": images and str(images)},
                cache_dir=cache,
            )
            made.to_parquet(str(target))

    def _card(self, counts: TrainingCounts, files: Sequence[str]) -> str:
        """Write the card in Markdown, with the header that the hub reads: what accepted the runs,
        how sure that is, and what was left out."""
        config, by = self._config, self._accepted_by
        low, confidence = self._guarantee
        precision = (
            "No decision stands behind this judge: the share of true successes is not known."
        )
        if low is not None and confidence is not None:
            precision = (
                f"Of the accepted runs at least {100 * low:.1f} % are true successes, with a "
                f"confidence of {100 * confidence:g} %, for the tasks, agents and settings that "
                "decision.json names."
            )
        facts = [
            ("judge", f"{_cell(by['judge'])} at threshold {threshold_text(by['threshold'])}"),
            ("decision", by["decision"] or "none"),
            ("runs from", _cell(self._data_name)),
            ("agents (runs)", ", ".join(f"{_cell(a)} ({n})" for a, n in counts.agents.items())),
            ("runs, tasks", f"{counts.runs}, {counts.tasks}"),
            *((f"rows in {name}", str(n)) for name, n in counts.rows.items()),
            *((f"left out: {reason}", str(n)) for reason, n in counts.left_out.items()),
            *((f"screenshots {reason}", str(n)) for reason, n in counts.screenshots.items()),
        ]
        if config.per_task is not None or config.test_share:
            facts.append(("seed", str(config.seed)))
        capped = [
            "A cap per task gives rare tasks more weight than they had where precision was "
            "measured: the share of true successes among these rows may differ from it.",
            "",
        ]
        splits = [f"  - split: {Path(name).stem}\n    path: {name}" for name in files]
        lines = [
            *("---", "license: other", "configs:", "- config_name: default", "  data_files:"),
            *splits,
            *("---", "", "# Runs of web agents that a judge accepted", ""),
            f"Written by `trajudge accept --format {config.format}`. {precision}",
            *("", "| | |", "|---|---|"),
            *(f"| {name} | {value} |" for name, value in facts),
            "",
            *(capped if counts.left_out.get("above the cap per task") else []),
            "The label of a run is copied to each of its steps (`credit: outcome`). The licence is "
            "that of the recorded runs and of the pages in them: name it before you publish this.",
            "",
        ]
        return "\n".join(lines)


def guarantee_of(decision: Decision | None) -> tuple[float | None, float | None]:
    """Return what a decision showed of the precision of its choice: at least, with confidence."""
    if decision is None or decision.chosen is None:
        return None, None
    if decision.recertified is not None:
        return decision.recertified.low, decision.plan.confidence
    precision = decision.findings[decision.chosen].precision
    return precision.low, 1 - precision.level


def _cell(text: str) -> str:
    """Keep a name from ending a table's cell or line."""
    return " ".join(text.replace("|", "\\|").split())


def _read_rows(staged: str, images: str | None) -> Iterator[dict[str, Any]]:
    with open_regular(staged) as file:
        for line in file:
            row = orjson.loads(line)
            if images is not None:
                row[IMAGES] = [
                    {"bytes": read_regular(Path(images) / name), "path": Path(name).name}
                    for name in row[IMAGES]
                ]
            yield row
