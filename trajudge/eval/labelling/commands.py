"""``trajudge label people``, ``import`` and ``export``."""

from __future__ import annotations

import sys
from pathlib import Path

from trajudge.annotations import open_annotations
from trajudge.annotations.queue import LabelQueue
from trajudge.annotations.queue_files import (
    export_queue,
    import_labels,
    labels_of_annotations,
    read_argilla,
    read_label_studio,
)
from trajudge.eval.labelling.settings import LabelExportConfig, LabelImportConfig, PeopleConfig
from trajudge.eval.store.task_goals import FILE as GOALS
from trajudge.eval.store.task_goals import read_goals, save_goals
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of


def label_people(config: PeopleConfig) -> int:
    """List the people of a queue, or add some and print their tokens; the exit code."""
    queue = LabelQueue(config.queue)
    if config.add:
        for person, token in queue.add_people(config.add, config.role):
            sys.stdout.write(f"{person.name}: token {token}\n")
    else:
        for person in queue.people():
            own = queue.progress(person.id)
            counts = f"{own.own_submitted:,} labelled, {own.own_skipped:,} skipped"
            sys.stdout.write(f"{person.name} ({person.role}): {counts}\n")
    queue.close()
    return OK


def label_import(config: LabelImportConfig) -> int:
    """Take labels from a file into a queue; the exit code."""
    queue = LabelQueue(config.queue)
    if config.layout == "trajudge":
        labels = [*labels_of_annotations(queue, open_annotations(config.annotations))]
    else:
        read = read_argilla if config.layout == "argilla" else read_label_studio
        labels = [*read(Path(config.annotations))]
    if not labels:
        raise UserError(f"--annotations {config.annotations}: holds no label: name another file")
    taken, left_out = import_labels(queue, labels)
    queue.close()
    sys.stdout.write(f"{count_of(taken, 'label')} taken, {left_out:,} left out\n")
    return OK


def label_export(config: LabelExportConfig) -> int:
    """Write the labels of a queue as files; the exit code."""
    queue = LabelQueue(config.queue)
    files = export_queue(queue, config.out, stage=config.stage, layout=config.layout)
    if goals := read_goals(config.queue):
        save_goals(config.out, goals)
        files.append(config.out / GOALS)
    queue.close()
    sys.stdout.write("".join(f"wrote {file}\n" for file in files))
    return OK
