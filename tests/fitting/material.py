"""A training small enough for a test."""

import numpy as np
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


CLASSES = ("high", "middle", "low")


def write_classes(folder, name, count):
    """Noise with a bright bar in one of three places, as a source; one class excludes the others."""
    rng = np.random.default_rng([count, *name.encode()])
    (folder / name).mkdir()
    lines = [f"image,{','.join(CLASSES)}"]
    for number in range(count):
        image = rng.random((24, 24), dtype=np.float32) / 2
        image[8 * (number % 3) : 8 * (number % 3) + 6, 4:20] += 0.5
        np.save(folder / name / f"{name}{number:02d}.npy", image)
        lines.append(f"{name}{number:02d},{','.join(str(int(index == number % 3)) for index in range(3))}")
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return {"name": "folder", "images": name, "labels": f"{name}.csv"}


def class_spec(folder, **changes):
    """The spec of a tiny training on classes that exclude one another."""
    parts = {"training": 24, "validation": 9, "test": 12}
    sources = {
        name: {"name": "folder", "images": name, "labels": f"{name}.csv"}
        if (folder / name).exists()
        else write_classes(folder, name, count)
        for name, count in parts.items()
    }
    base = {
        "study": "training",
        "threads": 1,
        "model": "densenet_compact",
        "size": [24, 24],
        "labels": "single",
        **sources,
        "fit": {"epochs": 3, "batch_size": 8, "learning_rate": 0.003},
    }
    return training_spec(folder, base, **changes)
