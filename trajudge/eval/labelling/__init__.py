"""What to label, by its statistical use, and what the labels of a queue say."""
