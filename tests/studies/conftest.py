"""A study small enough for a test."""

from pathlib import Path

import pytest
import yaml

SMALL = {
    "study": "localization",
    "title": "A small study",
    "seed": 3,
    "batch_size": 3,
    "shard_size": 4,
    "threads": 1,
    "gallery": 4,
    "source": {"name": "phantom_chest", "patients": 9, "first": 400, "size": 80},
    "model": "phantom_chest_densenet",
    "methods": ["grad_cam", "random", "location_prior"],
    "bootstrap_draws": 200,
}


@pytest.fixture(scope="session")
def small_spec() -> dict[str, object]:
    return SMALL


@pytest.fixture
def write_spec(tmp_path: Path):
    """A function that writes the small spec, with changes, and returns its path."""

    def write(**changes: object) -> Path:
        path = tmp_path / "small.yaml"
        values = {key: value for key, value in {**SMALL, **changes}.items() if value is not None}
        path.write_text(yaml.safe_dump(values))
        return path

    return write
