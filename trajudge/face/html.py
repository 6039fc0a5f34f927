"""Tables as HTML for notebooks; every cell is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from trajudge.trajectories.util.tables import Table, shown

if TYPE_CHECKING:
    from jinja2 import Template

_TEMPLATE = """\
<div class="trajudge">
{%- for line in above %}
<p>{{ line }}</p>
{%- endfor %}
{%- for table in tables %}
<table>
<caption style="text-align: left; font-weight: bold">{{ table.title }}</caption>
<thead><tr>
{%- for name in table.head %}
<th style="text-align: {{ 'left' if loop.index0 < table.names else 'right' }}">{{ name }}</th>
{%- endfor %}
</tr></thead>
<tbody>
{%- for row in table.rows %}
<tr>
{%- for cell in row -%}
<td style="text-align: {{ 'left' if loop.index0 < table.names else 'right' }}">{{ cell }}</td>
{%- endfor -%}
</tr>
{%- endfor %}
</tbody>
</table>
{%- endfor %}
{%- for note in notes %}
<p>{{ note }}</p>
{%- endfor %}
</div>
"""


def tables_html(
    tables: Sequence[Table], notes: Sequence[str] = (), *, above: Sequence[str] = ()
) -> str:
    """Return the lines ``above``, the tables below each other, then the notes; a line is a
    paragraph."""
    cells = [shown(table) for table in tables]
    return _template().render(above=above, tables=cells, notes=notes)


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - only notebooks need it

    return Environment(autoescape=True, undefined=StrictUndefined).from_string(_TEMPLATE)


def screen_html(screen: str) -> str:
    """Return a first screen as HTML, its columns as they are printed."""
    return f"<pre>{escape(screen)}</pre>"


def folded_html(tables: str) -> str:
    """Fold all tables, which are HTML, behind a line that shows them."""
    return f"<details><summary>All tables</summary>{tables}</details>"
