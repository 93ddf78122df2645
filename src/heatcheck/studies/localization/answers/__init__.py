"""What the model itself says: discrimination, calibration, and the views of one examination."""
