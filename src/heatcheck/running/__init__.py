"""Shared by the runs of all studies: the registry, the run itself, its cases, progress and comparison."""
