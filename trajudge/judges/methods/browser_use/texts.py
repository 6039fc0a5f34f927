"""The texts of a run for browser-use's judge: steps as its history lists them, each text cut from
the beginning."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from trajudge.judges.model import Skipped
from trajudge.judges.options import read_json
from trajudge.prompts.published import Untrusted
from trajudge.prompts.published_browser_use import load_published_judge
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_text

# Of 23 characters, which a text that is cut gives way to.
CUT = "[... text is cut here.]"


class RunTexts(NamedTuple):
    """What is shown of a run; ``ground_truth`` None: there is none. "" where nothing is known."""

    goal: str
    steps: str
    answer: str
    ground_truth: str | None

    def cut(self, characters: int, mark: str = CUT) -> RunTexts:
        """Cut task, steps and answer to ``characters`` each."""
        goal, steps, answer = (cut_end(text, characters, mark) for text in self[:3])
        return RunTexts(goal, steps, answer, self.ground_truth)


class JudgePrompt(Protocol):
    """Writes the system and the user text; ``mark`` stands where a text was cut."""

    prompt_hash: str
    mark: str

    def system(self, *, ground_truth: bool) -> str: ...

    def user(self, texts: RunTexts, pictures: int) -> str: ...


class OwnPrompt:
    """``prompts/browser-use``."""

    mark = CUT

    def __init__(self, date: str | None) -> None:
        self._prompt, self._date = load_prompt("browser-use"), date
        self.prompt_hash = self._prompt.hash

    def system(self, *, ground_truth: bool) -> str:
        return self._prompt.render("system", ground_truth=ground_truth, date=self._date)

    def user(self, texts: RunTexts, pictures: int) -> str:
        return self._prompt.render("user", pictures=pictures, **texts._asdict())


class PackagePrompt:
    """The installed package's own prompts; it names the date in them."""

    def __init__(self, date: str, untrusted: Untrusted) -> None:
        """Load the prompts. Raises UserError if the package is not installed."""
        self._prompt, self._date = load_published_judge(untrusted), date
        self.prompt_hash, self.mark = self._prompt.hash, self._prompt.mark

    def system(self, *, ground_truth: bool) -> str:
        return self._prompt.system(ground_truth=ground_truth, date=self._date)

    def user(self, texts: RunTexts, pictures: int) -> str:
        return self._prompt.user(
            task=texts.goal,
            steps=texts.steps,
            result=texts.answer,
            ground_truth=texts.ground_truth,
            images=pictures,
        )

    def changes(self, texts: RunTexts) -> int:
        """Count the places of the texts that are not sent as they were recorded."""
        return self._prompt.untrusted.changes(texts)


def texts_of(trajectory: Trajectory, ground_truth: str | None) -> RunTexts:
    """Return the whole texts of a run: for each step its number, its action, what that extracted
    and the errors it had where the run's recorder kept them, else the error that the next page
    reports of it. Of several actions in a step, each text has the number of its action."""
    extracted, errors = _kept(trajectory, "results"), _kept(trajectory, "errors")
    observed = [step.observation.page_error for step in trajectory.steps]
    lines = []
    for step, error in zip_longest(trajectory.steps, observed[1:]):
        line = f"Step {step.index + 1}:\n"
        if step.action is not None:
            line += f"Actions: {step.action}\n"
        own = [error] if errors is None else _of_step(errors, step.index)
        both = zip_longest(_of_step(extracted, step.index), own)
        for number, (result, failure) in enumerate(both, 1):
            line += f"Result {number}: {result}\n" if result else ""
            line += f"Error {number}: {failure}\n" if failure else ""
        lines.append(line)
    return RunTexts(trajectory.goal, "\n".join(lines), trajectory.answer or "", ground_truth)


def _kept(trajectory: Trajectory, name: str) -> list[Any] | None:
    """Return what the run's recorder kept of each step: ``metadata["results"]``, the texts that its
    actions extracted (None for one that extracted none), and ``metadata["errors"]``, likewise, as
    the loader of browser-use's histories gives them; None where it kept nothing."""
    kept = trajectory.metadata.get(name)
    return kept if isinstance(kept, list) else None


def _of_step(kept: list[Any] | None, index: int) -> list[str | None]:
    texts = kept[index] if kept is not None and index < len(kept) else None
    if not isinstance(texts, list):
        return []
    return [text if isinstance(text, str) else None for text in texts]


def cut_end(text: str, characters: int, mark: str) -> str:
    """Cut ``text`` to its beginning where it is longer, the last 23 characters for the mark."""
    return text if len(text) <= characters else text[: characters - 23] + mark


class GroundTruths:
    """The texts of a JSON file by task id; without a file no run has one."""

    def __init__(self, path: Path | None) -> None:
        """Read the file. Raises UserError for one that cannot be read or holds anything else."""
        self._path = path
        self._texts = {} if path is None else _read(path)
        self.content = "" if path is None else read_text(path)

    def of(self, trajectory: Trajectory) -> str | None:
        """Return the run's ground truth. Raises Skipped if the file has none for its task."""
        if self._path is None:
            return None
        for name in (trajectory.key.task_id, trajectory.raw_task_id):
            if name in self._texts:
                return self._texts[name]
        raise Skipped(f"{self._path} holds no ground truth of task {trajectory.key.task_id}")


def _read(path: Path) -> dict[str, str]:
    wanted = 'give a JSON object {"TASK_ID": "what is true of the task"}'
    truths = read_json("ground_truth", path, wanted)
    is_map = isinstance(truths, dict) and all(isinstance(text, str) for text in truths.values())
    if not is_map:
        raise UserError(f"ground_truth {path}: holds something else than texts by task; {wanted}")
    return dict(truths)
