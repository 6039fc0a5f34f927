"""What a task cost: tokens of model calls, and where its time went."""
