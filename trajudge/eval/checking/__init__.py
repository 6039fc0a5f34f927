"""Whether a run may be compared with others: ``check.check_run`` lists what speaks against it."""
