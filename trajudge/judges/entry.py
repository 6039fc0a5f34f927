"""Registry entry of a judge: what is known of it without importing it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from trajudge.judges.model import Judge
from trajudge.trajectories.model import Record
from trajudge.trajectories.needs import Needs


@dataclass(frozen=True)
class JudgeEntry:
    """``judge`` and ``options`` name a factory (options -> Judge) and its options' class, both in
    ``module``; ``id_options`` those that tell variants apart in the judge's id.

    ``representations`` are what it may be shown of a page, the first one by default; none: it
    reads no page. ``models`` are the options (``AuxiliaryModel``) that give it other models
    than the run's own, such as ``captioner`` for ``--captioner-model``. ``pictures`` is whose
    model must take images whatever the representation: "" nobody's, "judge" or one of ``models``.
    A user's judge (``judges.registry``) has a ``label`` that begins its id, and the ``digest`` of
    its file; without ``options`` its ``judge`` is the judge itself, not a factory.
    ``composed``: its members, other judges, are named with ``--members``.
    ``logprobs``: the model's endpoint must give token probabilities.
    ``prompt`` is the folder under ``prompts/``, where it is not named as the judge is.
    ``answer_option`` is the option with which it is sent the agent's answer, where its own options
    (``needs``) leave it with what the actions hold of it.
    ``needs`` is what a user's judge must see of a run; ours say so in their options' class
    (``needs_of``). ``function`` is a judge that was handed over as it is (``judges.registry``).
    """

    module: str
    judge: str
    options: str
    needs_model: bool
    summary: str
    id_options: tuple[str, ...] = ()
    representations: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    pictures: str = ""
    prompt: str = ""
    composed: bool = False
    logprobs: bool = False
    label: str = ""
    digest: str = ""
    answer_option: str = ""
    needs: Needs | None = None
    function: Judge | None = None

    @property
    def options_class(self) -> type[Record]:
        if not self.options:
            return Record
        kind: type[Record] = getattr(import_module(self.module), self.options)
        return kind

    def needs_pictures(self, role: str, representation: str | None) -> bool:
        """Tell whether the model of ``role`` ("judge" or one of ``models``) is shown screenshots.
        ``representation`` None: the default one."""
        shown = representation or next(iter(self.representations), "none")
        by_representation = self.pictures == "" and shown in ("screenshot", "both")
        return role == self.pictures or (role == "judge" and by_representation)
