"""Maps that were made elsewhere: the verbs score and tune."""
