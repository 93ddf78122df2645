"""From the tables of a modality run to its estimates: importances, means of scores, and what is claimed of methods."""
