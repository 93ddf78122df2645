"""The command line: one file per verb, which parses its arguments, calls one function and prints the result."""
