"""Built-in images, drawn so that the truth is known exactly."""
