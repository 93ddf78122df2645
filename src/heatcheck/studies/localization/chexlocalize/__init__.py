"""The CheXlocalize benchmark's own tables and files."""
