"""CheXlocalize's published tree, made from the golden data: its outlines and labels, and films of noise."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
from PIL import Image as Pictures

LABELS = (
    "No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema", "Consolidation",
    "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture", "Support Devices",
)  # fmt: skip
FACTS = ("Sex", "Age", "Frontal/Lateral", "AP/PA")


def write_film(path, shape):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(sum(shape)).integers(0, 255, shape, np.uint8)
    Pictures.fromarray(noise).save(path)


def write_labels(path, rows, before="CheXpert-v1.0/valid/", facts=True):
    """A table of CheXpert's: `rows` are labels by case, with or without the columns beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["Path", *(FACTS if facts else ()), *LABELS])
        for case, labels in rows.items():
            view = "Lateral" if "lateral" in case else "Frontal"
            beside = ["Female", "60", view, "AP" if view == "Frontal" else ""] if facts else []
            cells = [
                labels.get(name, labels.get("Airspace Opacity") if name == "Lung Opacity" else "") for name in LABELS
            ]
            table.writerow([f"{before}{case.replace('_', '/', 2)}.jpg", *beside, *cells])


def write_tree(root: Path, golden: Path, split: str = "test") -> Path:
    """The tree of one split below `root`."""
    images = json.loads((golden / "data/manifest.json").read_text())["images"]
    for case, facts in images.items():
        width, height = facts["dims"]
        write_film(root / f"CheXpert/{split}" / f"{case.replace('_', '/', 2)}.jpg", (height, width))
    with (golden / "data/labels.csv").open() as file:
        rows = {row["img_id"]: row for row in csv.DictReader(file)}
    write_labels(
        root / f"CheXpert/{split}_labels.csv",
        rows,
        "test/" if split == "test" else "CheXpert-v1.0/valid/",
        split != "test",
    )
    (root / "CheXlocalize").mkdir(exist_ok=True)
    for whose in ("gt", "hb"):
        shutil.copy(golden / f"data/{whose}_annotations.json", root / f"CheXlocalize/{whose}_annotations_{split}.json")
    shutil.copy(golden / "data/hb_salient_pt.json", root / f"CheXlocalize/hb_salient_pt_{split}.json")
    return root
