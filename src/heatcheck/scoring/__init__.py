"""Maps and marks of one case become rows of scores."""
