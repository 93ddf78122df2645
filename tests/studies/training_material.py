"""A training small enough for a test."""

import yaml

from heatcheck.runs.spec import read_spec

PHANTOM = {"name": "phantom_chest", "size": 40, "second_view": 0, "readers": 0}
SMALL = {
    "study": "training",
    "seed": 1,
    "threads": 1,
    "model": "densenet_compact",
    "size": [32, 32],
    "training": {**PHANTOM, "patients": 24},
    "validation": {**PHANTOM, "patients": 8, "first": 100},
    "test": {**PHANTOM, "patients": 12, "first": 200},
    "fit": {"epochs": 2, "batch_size": 8},
}
PROTOCOL = {
    **SMALL,
    "training": {**PHANTOM, "patients": 24, "uncertain": 0.3},
    "validation": {**PHANTOM, "patients": 12, "first": 100, "second_view": 1},
    "test": {**PHANTOM, "patients": 12, "first": 200, "second_view": 0.5},
    "uncertainty": ["ignore", "three_class"],
    "runs": 2,
    "views": "max",
    "fit": {"epochs": 2, "batch_size": 8, "learning_rate": 0.003},
    "checkpoints": {"every_steps": 2, "keep": 2, "by": ["Edema", "Atelectasis"]},
    "ensemble": 3,
}


def training_spec(folder, base, **changes):
    """The spec in a file, read."""
    path = folder / "training.yaml"
    path.write_text(yaml.safe_dump({**base, **changes}))
    return read_spec(str(path))
