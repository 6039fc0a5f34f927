"""The record of a run.

``model`` has the nouns (Trajectory, Step, Observation, TrajectoryKey), ``loaders/`` one module
a file format, ``store`` our own format, ``hub`` copies of published data sets, ``represent`` what a
judge is shown of a trajectory, ``images`` the only place where pixels are read, ``sample/`` the
bundled trajectories. The public names are those of ``trajudge``.
"""
