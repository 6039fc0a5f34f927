"""What a choice among label policies changes: said in one sentence, so that nobody takes another
policy's labels for these."""

from __future__ import annotations

from trajudge.annotations import label_policies, open_annotations, parse_labels
from trajudge.annotations.model import Labels, primary_labels
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of

# The share of other labels from which the choice is part of the result.
NOISE = 0.05


def policy_note(spec: str) -> str:
    """Say how many labels the policy of ``KIND/POLICY:PATH`` gives, and what the others would give
    on the same runs; "" where no policy is named."""
    named = parse_labels(spec)
    if named.policy is None:
        return ""
    labels = primary_labels(open_annotations(spec))
    sentences = [f"labels: {named.policy}, {_counts(labels)}"]
    for other in label_policies(named.kind):
        if other in (named.policy, "each"):
            continue
        try:
            others = primary_labels(open_annotations(str(named._replace(policy=other))))
        except UserError:  # the files of this policy were not fetched
            continue
        sentences.append(_difference(labels, other, others))
    return "; ".join(sentences)


def _counts(labels: Labels) -> str:
    decided = [label.success for label in labels.values() if label.success is not None]
    unsure = len(labels) - len(decided)
    left_out = f", {unsure} unsure left out" if unsure else ""
    return f"{count_of(len(decided), 'run')} ({sum(decided)} successful){left_out}"


def _difference(labels: Labels, other: str, others: Labels) -> str:
    pairs = [
        (label.success, others[key].success)
        for key, label in labels.items()
        if key in others and label.success is not None and others[key].success is not None
    ]
    differing = sum(one != another for one, another in pairs)
    text = f"{other} would give {_counts(others)}"
    if not pairs:
        return text
    share = differing / len(pairs)
    text += f" and differ on {differing} of {len(pairs)} ({share:.1%})"
    return text + (": the labels are noisy, name the policy" if share > NOISE else "")
