"""Studies beside scoring: wrong verdicts, held-out features, a model without a page."""
