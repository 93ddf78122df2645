"""Small data sets in the published layouts, drawn by the phantoms: what a protocol needs to run to its end."""

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path

import cv2
import nibabel
import numpy as np
from PIL import Image

from heatcheck.core.findings import LOCALIZED
from heatcheck.core.records import Case, Mask
from heatcheck.sources.phantoms.phantom_brain import PhantomBrain, PhantomBrainSettings
from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings
from heatcheck.sources.phantoms.phantom_classes import PhantomClasses, PhantomClassesSettings

SIDE = 160  # pixels of a drawn film
CHEXPERT = (
    "No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema", "Consolidation",
    "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture", "Support Devices",
)  # fmt: skip
SPELLED = {"Lung Opacity": "Airspace Opacity"}  # in CheXpert's tables, and in CheXlocalize's outlines
SPLITS = {"train": (0, 60), "val": (200, 30), "test": (300, 40)}  # first patient and number of patients
FILMS = "HEATCHECK_COVID"  # the environment's name for the folder of real films
COVID = "COVID-19_Radiography_Dataset"
COVID_CLASSES = ("COVID", "Lung_Opacity", "Normal", "Viral Pneumonia")
SEQUENCES = {"T1": "t1", "T1C": "t1ce", "T2": "t2", "FLAIR": "flair"}


def chexlocalize(root: Path) -> None:
    """CheXpert's films and labels of all three splits, and CheXlocalize's outlines and points of two."""
    for split, (first, patients) in SPLITS.items():
        source = PhantomChest(
            PhantomChestSettings(patients=patients, first=first, size=SIDE, uncertain=0.05, readers=2)
        )
        cases = {_chexpert_name(case): case for case in map(source.load, source.index())}
        folder = root / ("CheXpert-v1.0/train" if split == "train" else f"CheXpert/{split}")
        for name, case in cases.items():
            _write(folder / f"{name.replace('_', '/', 2)}.jpg", np.round(case.image[0] * 255).astype(np.uint8))
        table = root / ("CheXpert-v1.0/train.csv" if split == "train" else f"CheXpert/{split}_labels.csv")
        before = {"train": "CheXpert-v1.0/train/", "val": "CheXpert-v1.0/valid/", "test": "test/"}[split]
        _write_labels(table, cases, before, facts=split != "test")
        if split != "train":
            _write_outlines(root / "CheXlocalize", cases, split)


def _chexpert_name(case: Case) -> str:
    person, view = case.key.case.split("_")
    return f"patient{int(person.removeprefix('phantom')):05d}_study1_{view}_frontal"


def _write_labels(path: Path, cases: dict[str, Case], before: str, *, facts: bool) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["Path", *(("Sex", "Age", "Frontal/Lateral", "AP/PA") if facts else ()), *CHEXPERT])
        for name, case in cases.items():
            labels = [case.key.labels.get(SPELLED.get(finding, finding), "") for finding in CHEXPERT]
            beside = ["Female", "60", "Frontal", "AP"] if facts else []
            table.writerow([f"{before}{name.replace('_', '/', 2)}.jpg", *beside, *labels])


def _write_outlines(folder: Path, cases: dict[str, Case], split: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    truth, readers, points = {}, {}, {}
    for name, case in cases.items():
        size = {"img_size": list(case.image.shape[1:])}
        reading = case.readings[0]
        shown = [finding for finding in LOCALIZED if case.key.labels.get(finding) == 1]
        truth[name] = size | {finding: _polygons(case.truth[finding]) for finding in shown if finding in case.truth}
        readers[name] = size | {finding: _polygons(mask) for finding, mask in reading.masks.items() if finding in shown}
        points[name] = {
            finding: [[point.position[1], point.position[0]] for point in marked]
            for finding, marked in reading.points.items()
            if finding in shown
        }
    files = {"gt_annotations": truth, "hb_annotations": readers, "hb_salient_pt": points}
    for what, content in files.items():
        (folder / f"{what}_{split}.json").write_text(json.dumps({name: each for name, each in content.items() if each}))


def _polygons(mask: Mask) -> list[list[list[float]]]:
    outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return [outline[:, 0].astype(float).tolist() for outline in outlines if len(outline) > 2]


def covid(root: Path) -> None:
    """The COVID-19 Radiography Database that the environment names."""
    (root / COVID).symlink_to(Path(os.environ[FILMS]).resolve(), target_is_directory=True)


def covid_drawn(root: Path, per_class: int = 20) -> None:
    """Drawn films in the layout of the COVID-19 Radiography Database."""
    folder = root / COVID
    source = PhantomClasses(PhantomClassesSettings(cases_per_class=per_class, size=SIDE))
    folders = dict(zip(source.findings, COVID_CLASSES, strict=True))
    for number, key in enumerate(source.index()):
        name = next(name for finding, name in folders.items() if key.labels[finding] == 1)
        pixels = np.round(source.load(key).image[0] * 255).astype(np.uint8)
        _write(folder / name / f"images/{name}-{number}.png", pixels)
        _write(folder / name / f"masks/{name}-{number}.png", np.full_like(pixels, 255))


def covid_few(root: Path) -> None:
    """As few of them as the splits allow, so that a large network sees each in half a minute."""
    covid_drawn(root, per_class=10)


def brats(root: Path) -> None:
    """BraTS 2020: four sequences and a segmentation of each patient, and the table of grades."""
    source = PhantomBrain(PhantomBrainSettings(cases=16, size=40, slices=36))
    folder = root / "MICCAI_BraTS2020_TrainingData"
    editions = ("BraTS_2017", "BraTS_2018", "TCGA_TCIA", "BraTS_2019", "BraTS_2020")
    rows = [",".join(["Grade", *(f"{edition}_subject_ID" for edition in editions)])]
    for number, key in enumerate(source.index(), 1):
        name, case = f"BraTS20_Training_{number:03d}", source.load(key)
        rows.append(f"{'HGG' if key.labels['HGG'] == 1 else 'LGG'},NA,NA,NA,NA,{name}")
        for modality, image in zip(source.modalities, case.image, strict=True):
            _write_volume(folder / name / f"{name}_{SEQUENCES[modality]}.nii.gz", np.round(image * 1000))
        _write_volume(folder / name / f"{name}_seg.nii.gz", _segmentation(case, source.modalities))
    (folder / "name_mapping.csv").write_text("\n".join(rows) + "\n")


def _segmentation(case: Case, modalities: Sequence[str]) -> np.ndarray:
    """4 where T1C shows the tumour and 2 elsewhere in it, as enhancing tumour and oedema."""
    masks = {modality: case.truth[modality] for modality in modalities}
    return np.where(masks["T1C"], 4, np.where(np.any(list(masks.values()), axis=0), 2, 0))


def _write_volume(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values.astype(np.int16), np.diag([-1.0, -1.0, 1.0, 1.0])), path)


def _write(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
