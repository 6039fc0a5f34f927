"""The soundness of a run on its way: faults that judges find, and the steps they place them at."""
