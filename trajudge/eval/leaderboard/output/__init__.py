"""A leaderboard as a page, as CSV and on a terminal."""
