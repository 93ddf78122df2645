"""What sections are built from: prose, tables, plots, films, cards, and folds around them."""
