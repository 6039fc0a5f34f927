"""What recorded runs say: agents' results, blind replay, replay beside pass@k."""
