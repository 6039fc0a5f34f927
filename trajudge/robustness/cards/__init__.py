"""What ``trajudge robust`` writes to be read and published: a card for every judge, and the cases
that show best what moves it."""
