"""Tiny trees with the names and the layout of BraTS."""

import gzip

import nibabel
import numpy as np

LPS = np.array([[-1.0, 0, 0, 0], [0, -1.0, 0, 239], [0, 0, 1.0, 0], [0, 0, 0, 1]])  # as BraTS has it
FILES_2020 = ("t1", "t1ce", "t2", "flair")
FILES_2023 = ("t1n", "t1c", "t2w", "t2f")
SHAPE = (12, 14, 10)


def tumour(shape=SHAPE, enhancing=4):
    """Labels of a ball with oedema, an enhancing rim and a necrotic core, off the middle, largest in slice 6."""
    centre = np.array([7.0, 5.0, 6.0]) * np.array(shape) / SHAPE
    distance = np.sqrt(sum((np.arange(n).reshape([-1 if a == i else 1 for a in range(3)]) - centre[i]) ** 2
                           for i, n in enumerate(shape)))  # fmt: skip
    labels = np.zeros(shape, np.uint8)
    for radius, label in ((3.2, 2), (2.1, enhancing), (1.1, 1)):
        labels[distance <= radius] = label
    return labels


def head(number, shape=SHAPE):
    """A modality with its tumour and a border of zeros."""
    values = np.zeros(shape, np.int16)
    inside = tuple(slice(1, -1) for _ in shape)
    values[inside] = np.random.default_rng(number).integers(100, 900, values[inside].shape)
    values[tumour(shape) > 0] += 400 * (number % 4)
    return values


def save(path, values, affine=LPS):
    """The array as NIfTI; compressed where the name says so."""
    content = nibabel.Nifti1Image(values, affine).to_bytes()
    path.write_bytes(gzip.compress(content, 1, mtime=0) if path.suffix == ".gz" else content)


def write_case(folder, name, number=0, ending=".nii.gz", shape=SHAPE):
    """One case of either edition."""
    late = name.startswith("BraTS-")
    files, dash = (FILES_2023, "-") if late else (FILES_2020, "_")
    (folder / name).mkdir(parents=True)
    for channel, file in enumerate(files):
        save(folder / name / f"{name}{dash}{file}{ending}", head(4 * number + channel, shape))
    save(folder / name / f"{name}{dash}seg{ending}", tumour(shape, 3 if late else 4))
    return folder / name


def write_2020(folder, grades=("HGG", "LGG", "HGG"), first=1, **changes):
    """A tree as of 2020, with its table; the folder of the cases."""
    cases = folder / "MICCAI_BraTS2020_TrainingData"
    editions = ("2017_", "2018_", "TCGA_TCIA_", "2019_", "2020_")
    rows = [",".join(["Grade", *(f"BraTS_{name}subject_ID".replace("BraTS_TCGA", "TCGA") for name in editions)])]
    for number, grade in enumerate(grades, first):
        write_case(cases, f"BraTS20_Training_{number:03d}", number, **changes)
        rows.append(f"{grade},NA,NA,NA,NA,BraTS20_Training_{number:03d}")
    (cases / "name_mapping.csv").write_text("\n".join(rows) + "\n")
    return cases
