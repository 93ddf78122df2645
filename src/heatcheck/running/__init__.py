"""What every study's run shares: the registry, the run itself, its cases, progress and comparison."""
