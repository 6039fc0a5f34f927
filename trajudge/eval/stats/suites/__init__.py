"""Statistics of benchmark suites: trees of outcomes, bootstraps, profiles, regret."""
