"""Metrics of maps of several modalities, and of what each modality contributes."""
