"""Privileged verification: labels and the facts they rest on, from the state before and after a
run, its last message and its trace.

``verifying`` is the entry and takes one ``RunEvidence``; ``frame`` reads the difference of the
states, ``truth`` asks the states for the right answers, ``candidates`` finds what a message offers
as an answer, ``answers`` compares the two, ``labels`` turns facts into labels. Nothing here sees
what an agent meant to do.
"""

from __future__ import annotations

from trajudge.environments.verify.evidence import RunEvidence
from trajudge.environments.verify.labels import ExecutedAction, Viewpoint
from trajudge.environments.verify.model import (
    AnswerFact,
    ChangeFact,
    Labels,
    Predicate,
    VerificationResult,
)
from trajudge.environments.verify.verifying import expected, verify

__all__ = [
    "AnswerFact",
    "ChangeFact",
    "ExecutedAction",
    "Labels",
    "Predicate",
    "RunEvidence",
    "VerificationResult",
    "Viewpoint",
    "expected",
    "verify",
]
