"""A prompt of the user's own, ``--prompt mine.jinja``, with ``system.jinja`` beside it or without.

The template is the user's turn of a judge of ours and is given what that judge's own template is
given, truncated and neutralised alike. It is rendered in Jinja2's sandbox. Its mistakes are found
before a model is asked, and are one sentence with file and line.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path

from jinja2 import TemplateError, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import field_validator

from trajudge.prompts.render import Prompt, load_prompt, prompt_of
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import read_text
from trajudge.util.terminal import listed

SYSTEM = "system.jinja"
_MAX_BYTES = 2**20


class OwnPrompt(Record):
    """The texts of a user's templates, kept in the manifest of a run. ``system`` None: the judge's
    own. As a text it is the ``name`` of the file without its ending, a part of the judge's id."""

    name: str
    user: str
    system: str | None = None

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        return re.sub(r"[^\w.]+", "-", name)[-60:]

    def __str__(self) -> str:
        return Path(self.name).stem

    def load(self, judge: str) -> Prompt:
        """Put the templates into the folder of a judge of ours, whose card and other templates
        stay: the same texts give the same hash."""
        files = {**load_prompt(judge).files, "user.jinja": self.user}
        return prompt_of(files if self.system is None else {**files, SYSTEM: self.system})


def read_own_prompt(path: Path) -> OwnPrompt:
    """Read a template, and ``system.jinja`` in its folder where there is one. Raises UserError."""
    if path.name == SYSTEM:
        raise UserError(
            f"--prompt {path}: is the system prompt: name the template beside it, which is the "
            "user's turn"
        )
    system = path.with_name(SYSTEM)
    return OwnPrompt(
        name=path.name, user=_read(path), system=_read(system) if system.is_file() else None
    )


def _read(path: Path) -> str:
    try:
        return read_text(path, _MAX_BYTES)
    except OSError as error:
        raise UserError(
            f"--prompt {path}: cannot be read ({error.strerror}): name a file with a template, to "
            "start from  trajudge judges show simplified --prompt > mine.jinja"
        ) from error


def check_own_prompt(
    own: OwnPrompt,
    variables: Mapping[str, Iterable[str]],
    trials: Iterable[tuple[str, Mapping[str, object]]],
    judge: str,
    *,
    in_tags: bool,
) -> None:
    """Refuse templates with a mistake: one that is no Jinja2, uses a name that is none of the
    ``variables`` of its file (``user``, ``system``), or fails with the values of one of the
    ``trials``; a user's turn without a variable; and a prompt that asks for no verdict, in a tag or
    else as a field. Raises UserError."""
    used: dict[str, set[str]] = {}
    for template, text in (("user", own.user), ("system", own.system)):
        if text is not None:
            used[template] = _check_names(_file(own, template), text, list(variables[template]))
    prompt = own.load(judge)
    rendered = ""
    for template, values in trials:
        try:
            rendered += prompt.render(template, **values)
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            place = _file(own, template) + _line(error)
            raise UserError(f"--prompt {place}: {_why(error)}: correct the template") from error
    if not used["user"]:
        raise UserError(
            f"--prompt {own.name}: uses no variable, so that every run would get the same text: "
            f"use some of {listed(list(variables['user']))}"
        )
    if ("<success>" if in_tags else "success") not in rendered:
        form = "<success>yes</success> or <success>no</success>"
        raise UserError(
            f"--prompt {own.name}, line {max(len(own.user.splitlines()), 1)}: asks for no verdict, "
            "and neither does the system prompt: ask for "
            + (form if in_tags else 'a JSON object with "success"')
        )


def _check_names(file: str, text: str, known: list[str]) -> set[str]:
    """Return the variables that a template uses. Raises UserError for one that it is not given."""
    environment = ImmutableSandboxedEnvironment()
    try:
        tree = environment.parse(text)
        used = find_undeclared_variables(tree)
    except TemplateSyntaxError as error:
        raise UserError(
            f"--prompt {file}, line {error.lineno}: {error.message}: correct the template"
        ) from error
    if unknown := used - {*known}:
        named = (node for node in tree.find_all(nodes.Name) if node.name in unknown)
        first = min(named, key=lambda node: node.lineno)
        raise UserError(
            f"--prompt {file}, line {first.lineno}: no variable {first.name!r}"
            f"{did_you_mean(first.name, known)}: it has {listed(known)}"
        )
    return used


def _file(own: OwnPrompt, template: str) -> str:
    return SYSTEM if template == "system" else own.name


def _line(error: Exception) -> str:
    """Name the line of the template in which a rendering failed, "" if Jinja2 does not tell it."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == "<template>"]
    return f", line {lines[-1]}" if lines else ""


def _why(error: Exception) -> str:
    if isinstance(error, TemplateNotFound):
        return f"there is no template {error.name!r} to include"
    text = str(error).rstrip(".")
    return text if isinstance(error, TemplateError) else f"{type(error).__name__}: {text}"
