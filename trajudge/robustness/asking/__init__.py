"""Judges that are asked otherwise about runs that stay as they are: the runs to make for it, and
what they say beside the judge as it is."""
