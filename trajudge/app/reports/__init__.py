"""The report of runs: what their judges scored and the trajectories they got wrong, in one file."""
