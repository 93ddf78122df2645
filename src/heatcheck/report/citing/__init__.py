"""How to describe a run in a paper and what to cite: the methods paragraph, and the references as BibTeX."""
