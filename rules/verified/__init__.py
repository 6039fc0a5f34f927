"""WebArena Verified: its tasks, the agent's response, the trace of the run, and the verdict.

``dataset`` reads tasks, ``response`` the agent's answer, ``network`` what the run sent;
``evaluator`` holds them to each other in either mode, ``backend`` asks the sites themselves.
``synthesis`` builds runs that must pass, ``linter`` says which specifications no run can meet.
"""
