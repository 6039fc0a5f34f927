"""Statistics of judges: confusion, comparison, agreement, calibration, few labels."""
