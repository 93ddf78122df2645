import math
import pickle
import time
import tracemalloc

import pytest

from heatcheck.core.errors import InputError
from heatcheck.core.findings import CHEXPERT
from heatcheck.sources.files.label_rows import read_label_rows

ROWS = 22_400  # a tenth of CheXpert


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A tenth of CheXpert's table, with the columns of the real one."""
    path = tmp_path_factory.mktemp("labels") / "train.csv"
    labels = ",".join(["1.0", "", "0.0", "-1.0", *["", "1.0"] * 5])
    with path.open("w") as file:
        file.write(",".join(["Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *CHEXPERT]) + "\n")
        for number in range(ROWS):
            name = f"CheXpert-v1.0/train/patient{number // 3:05d}/study1/view{number % 3}_frontal.jpg"
            file.write(f"{name},Female,68,Frontal,AP,{labels}\n")
    return path


def test_a_large_table_is_read_quickly_into_little_memory(many):
    start = time.perf_counter()
    read_label_rows(many)
    seconds = time.perf_counter() - start
    tracemalloc.start()
    table = read_label_rows(many)
    keys = table.keys(table.images, table.images, table.findings)
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(keys) == ROWS
    assert seconds < 2  # ten times as many rows in 5 s, with a factor of four for busy machines
    assert size < 20e6
    assert peak < 30e6


def test_rows_answer_like_dictionaries(many):
    table = read_label_rows(many)
    labels = table.keys(table.images, table.images, ("Edema", "Airspace Opacity"))[0].labels
    assert list(labels) == ["Edema", "Airspace Opacity"]
    assert labels["Airspace Opacity"] == labels.get("Airspace Opacity") == 1
    assert math.isnan(labels["Edema"]) or labels["Edema"] in (0, 1, -1)
    assert "Mass" not in labels
    assert all(type(value) is float for value in labels.values())
    assert repr(labels) == repr(dict(labels))
    assert repr(pickle.loads(pickle.dumps(labels))) == repr(labels)  # noqa: S301 - data loaders do this


def facts_in(tmp_path, content, asked=()):
    path = tmp_path / "labels.csv"
    path.write_text(content)
    table = read_label_rows(path, asked)
    keys = table.keys(table.images, table.images, table.findings)
    return table.findings, [dict(key.facts) for key in keys]


def test_usual_facts_are_no_findings_whatever_their_case(tmp_path):
    found = facts_in(tmp_path, "image,Sex,age,Edema\na, F ,61,1\nb,,,0\n")
    assert found == (("Edema",), [{"sex": "F", "age": "61"}, {"sex": "", "age": ""}])


def test_other_facts_are_named_and_a_named_finding_stays_one(tmp_path):
    content = "image,Coil,Edema,Mass\na,8ch,1,0\nb,,0,\n"
    with pytest.raises(InputError, match="Coil is '8ch'"):
        facts_in(tmp_path, content)
    found = facts_in(tmp_path, content, ["coil", "Edema"])
    assert found == (("Edema", "Mass"), [{"coil": "8ch"}, {"coil": ""}])


def test_chexperts_facts_have_plain_names(many):
    table = read_label_rows(many)
    key = table.keys(table.images, table.images, table.findings)[0]
    assert dict(key.facts) == {"sex": "Female", "age": "68", "view": "Frontal", "projection": "AP"}
    assert repr(key.facts) == repr(dict(key.facts))
    assert dict(pickle.loads(pickle.dumps(key.facts))) == dict(key.facts)  # noqa: S301 - data loaders do this


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Path,Frontal/Lateral,Edema\na/b/c.jpg,Sideways,1\n", "line 2: Frontal/Lateral is 'Sideways'"),
        ("Path,Edema,Lung Opacity,Airspace Opacity\na,1,1,1\n", "two columns mean one finding"),
        ("Path,Edema\na,1\n ,1\n", "line 3: the image is missing"),
        ("Path,Edema\na,maybe\n", "line 2: Edema is 'maybe'; expected 1, 0, blank or -1"),
        ("image,sex,Sex,Edema\na,F,F,1\n", "two columns state the same (sex, Sex)"),
        ("name,Edema\na,1\n", "has no column 'image'"),
        ("", "is empty; export it again"),
        ("image;Edema\na;1\n", "separates its columns by semicolons, not commas"),
        ("image\tEdema\na\t1\n", "separates its columns by tabs, not commas"),
    ],
)
def test_an_unusable_table_is_refused_with_its_line(tmp_path, content, words):
    path = tmp_path / "labels.csv"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_label_rows(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
