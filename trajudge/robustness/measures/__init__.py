"""What a judge's verdicts survive, in numbers."""
