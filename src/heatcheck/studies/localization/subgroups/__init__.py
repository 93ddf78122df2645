"""Scores, AUROC and floors by view, sex, age group or any other fact of the cases."""
