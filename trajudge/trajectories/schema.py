"""JSON Schema of one line of ``trajectories.jsonl``, generated from the models.

``schema.json`` is its committed copy; ``python -m trajudge.trajectories.schema`` prints it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from trajudge.trajectories.model import FORMAT, Trajectory

_IMAGE = {
    "description": "SHA-256 of the image file images/<sha256>.<png|jpg|gif|webp|bin>; 64 zeros for "
    "an image that the run had and that could not be read",
    "pattern": "^[0-9a-f]{64}$",
    "type": "string",
}

DESCRIPTIONS = {
    "TrajectoryKey": {
        "benchmark": "Name of the benchmark, in lower case as its files have it",
        "agent": "Name of the agent, as the benchmark's files have it",
        "task_id": "Canonical task id: without segments that mark a re-hosted variant",
        "attempt": "Number of the run among several of the same agent on the same task, from 0",
    },
    "Observation": {
        "url": "Address of the active page; null if not recorded",
        "axtree": "Accessibility tree as text; null if not recorded",
        "axtree_pruned": "Accessibility tree without elements that an agent can do without",
        "screenshot": "SHA-256 of the screenshot's file in images/; null if there is none",
        "page_error": "What went wrong with the action before this observation; null if nothing",
    },
    "Step": {
        "index": "Number of the step, from 0",
        "observation": "What the browser showed before the action",
        "reasoning": "What the agent thought; null in the last step",
        "action": "What the agent did; null in the last step",
    },
    "Trajectory": {
        "key": "Joins trajectories, annotations, judgments and rewards",
        "raw_task_id": "The task id as the source wrote it",
        "goal": "The task as given to the agent, verbatim",
        "goal_images": "SHA-256 of the images that belong to the goal, in order",
        "steps": "o1, (r1, a1), ..., on: the last step has no action",
        "answer": "The agent's last message to the user; null without one",
        "official_reward": "The benchmark's own rule-based reward, possibly a fraction; null "
        'or the string "NaN" where it is not known',
        "terminated": "Whether the run ended by itself; null if not recorded",
        "truncated": "Whether the run was cut by a limit; null if not recorded",
        "telemetry": "Numbers of the run: steps, tokens, seconds, errors; not finite ones as "
        'the strings "NaN", "Infinity", "-Infinity"',
        "metadata": 'Anything else; "warnings" lists sentences about what could not be read',
    },
}

_NO_NUMBER = {"const": "NaN", "type": "string"}
_NOT_FINITE = {"enum": ["NaN", "Infinity", "-Infinity"], "type": "string"}


def schema() -> dict[str, Any]:
    """Build the JSON Schema (2020-12) of one line."""
    generated = Trajectory.model_json_schema(mode="validation")
    definitions = generated.pop("$defs")
    definitions["ImageRef"] = _IMAGE
    definitions["Trajectory"] = generated
    for name, fields in DESCRIPTIONS.items():
        for field, description in fields.items():
            definitions[name]["properties"][field]["description"] = description
    del definitions["Trajectory"]
    properties = generated["properties"]
    properties["official_reward"]["anyOf"].append(_NO_NUMBER)
    properties["telemetry"]["additionalProperties"] = {"anyOf": [{"type": "number"}, _NOT_FINITE]}
    properties["format"] = {
        "const": FORMAT,
        "description": "Version of this format",
        "type": "integer",
    }
    generated["required"] = ["format", *generated["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **generated,
        "$defs": definitions,
    }


def text() -> str:
    """Render the schema as the committed file has it."""
    return json.dumps(schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
