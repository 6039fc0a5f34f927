"""What batches cost, noted in the folder of the run that they belong to."""

from __future__ import annotations

from pathlib import Path

from trajudge.eval.data.index.call_ledger import PAYMENTS
from trajudge.judges.batch.ledger import Ledger
from trajudge.judges.engine.store.payments import PaymentsFile, read_attempts


def note_payments(ledger: Ledger, run: str) -> None:
    """Note what the batches of a run have cost, as far as its folder does not hold it yet; nothing
    where the folder is gone. Raises UserError."""
    path = Path(run) / PAYMENTS
    if not path.parent.is_dir():
        return
    noted = read_attempts(path)
    payments = PaymentsFile(path)
    try:
        for line in ledger.paid(run):
            if line.attempt not in noted:
                payments.note(line.attempt, line.request, line.dollars)
    finally:
        payments.close()
