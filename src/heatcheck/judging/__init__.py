"""One judgement behind every claim: an estimate, its corrected interval and a size that matters."""
