"""Training data in the layouts of trainers, from the runs that a judge accepted."""
