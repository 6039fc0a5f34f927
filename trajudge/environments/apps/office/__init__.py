"""An office with mail, a shop and a request desk: tasks over several applications, with roles."""
