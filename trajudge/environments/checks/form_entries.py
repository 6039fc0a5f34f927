"""Ways to fill in a form that a search for the shortest way tries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from trajudge.environments.model.page import Field, Form, Label

FILTERS = 2
ENTRIES = 64  # ways to fill in one form


def filled_forms(
    form: Form, entered: Mapping[Label, set[Label]], named: set[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield ways to fill a form in and send it: the actions that it takes, and what is sent."""
    most = FILTERS if form.page else len(form.fields)
    options = {
        entry.name: _entries(entry, entered, named, bool(form.page)) for entry in form.fields
    }
    plain = {entry.name: entry.value for entry in form.fields}
    ticks = {entry.name for entry in form.fields if entry.input == "tick"}
    count = 0
    for size in range(most + 1):
        for names in combinations([name for name, values in options.items() if values], size):
            for values in product(*(options[name] for name in names)):
                count += 1
                if count > ENTRIES:
                    return
                chosen = {**plain, **dict(zip(names, values, strict=True))}
                sent = {n: v for n, v in chosen.items() if n not in ticks or v == "on"}
                yield size + 1, {**form.hidden, **sent}


def _entries(
    entry: Field, entered: Mapping[Label, set[Label]], named: set[str], asks: bool
) -> Sequence[str]:
    """Return what may be entered in a field beside what stands there."""
    used = entered.get(entry.label, set())
    if entry.input == "tick":
        return ["" if entry.value == "on" else "on"] if used or asks else []
    if entry.input == "choice":
        values = [o.value for o in entry.options if asks or o.label in used]
        return [value for value in values if value != entry.value]
    texts_ = {str(text) for text in used} | (named if asks and entry.input == "search" else set())
    return sorted(texts_ - {entry.value})
