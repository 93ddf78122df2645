"""Failed cases of a finished run are run again in its folder, after they were repaired."""
