"""The blame table: whether a low score is the fault of the model or of the method."""
