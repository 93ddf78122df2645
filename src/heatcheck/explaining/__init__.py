"""Maps from classifiers and methods: for the batches of a study, or for single images."""
