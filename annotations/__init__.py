"""What experts said of trajectories: records, loaders, splits, agreement."""
