"""What batches cost, noted in the folder of the run that they belong to."""

from __future__ import annotations

from pathlib import Path

from trajudge.eval.store.table import PAYMENTS
from trajudge.judges.batch.ledger import Ledger
from trajudge.judges.engine.budget import Payments, dollars_by_request, read_attempts


def note_payments(ledger: Ledger, run: str) -> dict[str, float]:
    """Note what the batches of a run have cost, as far as its folder does not hold it yet; nothing
    where the folder is gone. Return all dollars that the folder holds, by request. Raises
    UserError."""
    path = Path(run) / PAYMENTS
    if not path.parent.is_dir():
        return {}
    attempts = read_attempts(path)
    payments = Payments(path)
    try:
        for line in ledger.paid(run):
            if line.attempt not in attempts:
                payments.note(line.attempt, line.request, line.dollars)
                attempts[line.attempt] = line.request, line.dollars
    finally:
        payments.close()
    return dollars_by_request(attempts)
