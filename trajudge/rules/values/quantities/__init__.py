"""Values that are quantities: numbers, amounts, dates, durations, places."""
