"""Pages of one HTML file: a template of this folder, filled in, which needs no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trajudge.util.files import save_bytes


def save_page(
    file: Path,
    template: str,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> None:
    """Fill in a template of ``trajudge/eval``, with every text escaped, and write it.

    Equal values give equal bytes. Raises UserError for a file that cannot be written.
    """
    # A command that writes no page starts without the library for templates.
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        loader=PackageLoader("trajudge.eval", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters or {}
    save_bytes(file, environment.get_template(template).render(values).encode())
