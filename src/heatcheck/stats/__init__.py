"""From scores to estimates: intervals and tests in which the patient, not the image, is the unit."""
