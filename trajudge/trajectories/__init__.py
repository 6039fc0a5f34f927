"""Trajectories: records of runs.

``model`` has the types (Trajectory, Step, Observation, TrajectoryKey), ``loaders/`` one module per
file format, ``store`` trajudge's own format, ``hub`` copies of published data sets, ``represent``
the parts of a trajectory that a judge is shown, ``images`` all reading of pixels, ``sample/`` the
bundled trajectories. The public names are those of ``trajudge``.
"""
