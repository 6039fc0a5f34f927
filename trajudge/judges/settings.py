"""Settings of ``trajudge judges``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from trajudge.util.settings import Argument, Option, Settings


class ListConfig(Settings):
    """List every judge: the model it needs, and what it asks."""

    full: Annotated[
        bool,
        Option("what judges see, their calls, answers and papers, as lines with tabs in a pipe"),
    ] = False


class ShowConfig(Settings):
    """Show a judge's card, options and prompts, or a template to start your own prompt from.

    trajudge judges show webjudge
    trajudge judges show simplified --prompt > mine.jinja
    """

    exclusive: ClassVar[Sequence[tuple[str, ...]]] = (("prompt", "system_prompt", "full"),)

    name: Annotated[str, Argument("NAME", "the judge")]
    judge_option: Annotated[
        dict[str, Any], Option("an option of the judge; may be repeated", "NAME=VALUE")
    ] = Field(default_factory=dict)
    prompt: Annotated[
        bool, Option("print the template of its user's turn, to start your own --prompt from")
    ] = False
    system_prompt: Annotated[
        bool, Option("print the template of its system prompt, to save as system.jinja beside it")
    ] = False
    full: Annotated[
        bool,
        Option("the whole card, and the prompts for a run of the sample, instead of one screen"),
    ] = False


class FidelityConfig(Settings):
    """Show what judges follow of their sources."""

    name: Annotated[str | None, Argument("NAME", "one judge (default: all)")] = None
    full: Annotated[bool, Option("every item, as lines with tabs in a pipe")] = False
