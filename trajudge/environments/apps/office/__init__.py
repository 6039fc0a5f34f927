"""An office with mail, a shop, a request desk, a magazine, a forum, a console and an almanac: tasks
over several applications, with roles."""
