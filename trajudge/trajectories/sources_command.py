"""``trajudge data sources``: the data sets that are known, with licence, labels and caveats."""

from __future__ import annotations

import argparse
import sys

from trajudge.util.commands import OK, Parser, command


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge data sources", description=__doc__)
    made.add_argument("name", nargs="?", metavar="NAME", help="all that is known of one data set")
    made.add_argument("--json", action="store_true", help="print the register as JSON")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Print the register or one card; return the exit code."""
    from trajudge.trajectories.sources import source_card, source_cards  # noqa: PLC0415 - --help needs none

    cards = [source_card(options.name)] if options.name else [*source_cards().values()]
    if options.json:
        import orjson  # noqa: PLC0415

        content = [card.model_dump(mode="json") for card in cards]
        sys.stdout.write(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n")
        return OK
    from trajudge.util.tables import Table, text  # noqa: PLC0415

    rows: list[tuple[str, ...]] = [("name", "licence", "redistribution", "labels")]
    rows += [(c.name, c.licence, c.redistribution, ", ".join(c.labels) or "–") for c in cards]
    if options.name:
        fields = cards[0].model_dump().items()
        rows = [(name, ", ".join(v) if isinstance(v, tuple) else v or "–") for name, v in fields]
    head, *rows = rows
    sys.stdout.write(text(Table("", head, rows, names=len(head))).lstrip("\n"))
    return OK


if __name__ == "__main__":
    sys.exit(main())
