"""Map files of other programs are read exactly, and code in them is never run."""

import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch

from heatcheck.core.errors import InputError
from heatcheck.sources.files.map_files import VECTOR_ORDER, MapFile, find_maps, methods_in, read_map, stray_files


def write(path: Path, **changes: object) -> MapFile:
    """A map file as the benchmark writes it."""
    content = {
        "map": torch.arange(6, dtype=torch.float32).reshape(1, 1, 2, 3),
        "prob": 0.25,
        "task": "Edema",
        "gt": 1,
        "cxr_img": torch.zeros(3, 4, 4),
        "cxr_dims": (30, 20),
        **changes,
    }
    with path.open("wb") as file:
        pickle.dump(content, file)
    return MapFile(path, "p1", "Edema")


def test_a_pickled_map_is_read_as_it_was_stored(tmp_path: Path) -> None:
    stored = read_map(write(tmp_path / "p1_Edema_map.pkl"))
    assert stored.values.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert stored.values.dtype == np.float32
    assert (stored.probability, stored.shape, stored.picture) == (0.25, (20, 30), None)


def test_every_golden_map_is_read_to_the_bit(golden: Path) -> None:
    maps = find_maps(golden / "data" / "maps")
    assert len(maps) == 24
    for files in maps.values():
        assert len(files) == 10
        for file in files.values():
            with file.path.open("rb") as opened:
                plain = pickle.load(opened)  # noqa: S301 - our own test data
            stored = read_map(file, "reference order")
            assert np.array_equal(stored.values, plain["map"][0, 0].numpy())
            assert stored.shape == plain["cxr_dims"][::-1]


def test_views_and_strides_survive(tmp_path: Path) -> None:
    matrix = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    stored = read_map(write(tmp_path / "p1_Edema_map.pkl", map=matrix.T[1:5:2, 1:]))
    assert np.array_equal(stored.values, matrix.numpy().T[1:5:2, 1:])


@pytest.mark.parametrize("name", ["p1_Edema_map.npz", "p1_Edema_map.npy"])
def test_numpy_files_are_read_too(tmp_path: Path, name: str) -> None:
    values = np.arange(6, dtype=np.float64).reshape(2, 3)
    if name.endswith("z"):
        np.savez(tmp_path / name, map=values, prob=0.5, cxr_dims=np.array([30, 20]))
    else:
        np.save(tmp_path / name, values)
    (file,) = find_maps(tmp_path)["p1"].values()
    stored = read_map(file)
    assert np.array_equal(stored.values, values)
    assert stored.shape == ((20, 30) if name.endswith("z") else None)
    assert stored.probability == 0.5 if name.endswith("z") else np.isnan(stored.probability)


def test_names_with_underscores_and_both_opacities_are_distinguished(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("a_b_c_view1_Lung Opacity_map.pkl", "below/x_Pleural Effusion_map.pkl"):
        (tmp_path / name).touch()
    maps = find_maps(tmp_path)
    assert {image: list(files) for image, files in maps.items()} == {
        "a_b_c_view1": ["Airspace Opacity"],
        "x": ["Pleural Effusion"],
    }


def test_two_maps_for_one_finding_are_named(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    for name in ("p1_Lung Opacity_map.pkl", "again/p1_Airspace Opacity_map.pkl"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"again.*p1_Airspace Opacity_map\.pkl and .*p1_Lung Opacity_map\.pkl are two"):
        find_maps(tmp_path)


@pytest.mark.parametrize(("name", "problem"), [("", "holds no maps"), ("nofinding_map.pkl", "rename it")])
def test_folders_without_maps_are_refused(tmp_path: Path, name: str, problem: str) -> None:
    if name:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=problem):
        find_maps(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        find_maps(tmp_path / "other")


class Payload:
    """The payload of a malicious file: a command that leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.trace),)


def test_code_in_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    file = write(tmp_path / "p1_Edema_map.pkl", extra=Payload(trace))
    with pytest.raises(InputError, match=r"p1_Edema_map\.pkl would run (posix|nt)\.mkdir") as caught:
        read_map(file)
    assert not trace.exists()
    assert "\n" not in str(caught.value)
    with file.path.open("rb") as opened:
        pickle.load(opened)  # noqa: S301 - shows that the payload works
    assert trace.exists()


class Disguised:
    """A tensor whose inner bytes, not its outer pickle, carry the payload."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return torch._utils._rebuild_tensor_v2, (
            _Inner(self.content), 0, (1, 1, 2, 3), (6, 6, 3, 1), False, OrderedDict(),
        )  # fmt: skip


class _Inner:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        return torch.storage._load_from_bytes, (self.content,)


@pytest.mark.parametrize("form", ["zip", "legacy", "plain"])
def test_code_inside_the_tensor_is_refused_and_not_run(tmp_path: Path, form: str) -> None:
    trace = tmp_path / "ran"
    inner = io.BytesIO()
    if form == "plain":
        pickle.dump(Payload(trace), inner)
    else:
        torch.save(Payload(trace), inner, _use_new_zipfile_serialization=form == "zip")
    file = write(tmp_path / "p1_Edema_map.pkl", map=Disguised(inner.getvalue()))
    refused = r"p1_Edema_map\.pkl would run ((posix|nt)\.mkdir|code) from inside its tensor"
    with pytest.raises(InputError, match=refused):
        read_map(file)
    assert not trace.exists()


def test_a_tensor_cannot_claim_more_than_the_file_holds(tmp_path: Path) -> None:
    inner = io.BytesIO()
    torch.save(torch.zeros(4)._typed_storage(), inner, _use_new_zipfile_serialization=False)

    class Huge:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return torch._utils._rebuild_tensor_v2, (
                _Inner(inner.getvalue()), 0, (1, 1, 10**6, 10**6), (0, 0, 0, 0), False, OrderedDict(),
            )  # fmt: skip

    with pytest.raises(InputError, match="more numbers than the file holds"):
        read_map(write(tmp_path / "p1_Edema_map.pkl", map=Huge()))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_pickle_is_named(tmp_path: Path, share: float) -> None:
    file = write(tmp_path / "p1_Edema_map.pkl")
    content = file.path.read_bytes()
    file.path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"p1_Edema_map\.pkl is not a whole map file"):
        read_map(file)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"map": None}, "holds no array"),
        ({"map": torch.zeros(2, 3, 4)}, "shape"),
        ({"map": torch.full((1, 1, 2, 2), torch.nan)}, "NaN"),
        ({"prob": 1.5}, "between 0 and 1"),
        ({"prob": "high"}, "between 0 and 1"),
        ({"task": "Atelectasis"}, "contains a map for 'Atelectasis'"),
        ({"cxr_dims": (30,)}, "width, height"),
        ({"cxr_dims": (30, -20)}, "width, height"),
    ],
)
def test_wrong_content_is_refused_in_one_sentence(tmp_path: Path, changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_map(write(tmp_path / "p1_Edema_map.pkl", **changes))


def test_a_vector_of_probabilities_needs_names_or_the_benchmarks_order(tmp_path: Path) -> None:
    vector = torch.linspace(0, 1, len(VECTOR_ORDER))
    file = write(tmp_path / "p1_Edema_map.pkl", prob=vector)
    with pytest.raises(InputError, match="without names"):
        read_map(file)
    assert read_map(file, "reference order").probability == vector[5]
    assert np.isnan(read_map(file, "unknown").probability)
    named = write(tmp_path / "p1_Edema_map.pkl", prob={"Lung Opacity": 0.1, "Edema": 0.7})
    assert read_map(named).probability == 0.7
    short = write(tmp_path / "p1_Edema_map.pkl", prob=[0.1, 0.2])
    with pytest.raises(InputError, match="does not fit 2 values"):
        read_map(short, "reference order")


def test_the_picture_is_kept_where_there_is_one(tmp_path: Path) -> None:
    picture = torch.rand(1, 3, 40, 50, generator=torch.Generator().manual_seed(0))
    file = write(tmp_path / "p1_Edema_map.pkl", cxr_img=picture)
    assert read_map(file).picture is None
    stored = read_map(file, with_picture=True)
    assert stored.picture is not None
    assert np.array_equal(stored.picture, picture[0].numpy())


def write_explained(folder: Path, image: str, method: str, **changes: object) -> Path:
    """A file with the keys of `heatcheck explain`: two findings, the second output first."""
    path = folder / f"{image}.{method}.npz"
    content = {
        "on_image": np.stack([np.full((4, 5), 1.0), np.eye(4, 5)])[None],
        "outputs": ["Edema", "Nodule"],
        "targets": [[1, 0]],
        "probabilities": [[0.9, 0.2]],
        "method": method,
        "image": np.zeros((1, 1, 4, 5)),
        **changes,
    }
    np.savez(path, **content)  # type: ignore[arg-type]
    return path


def test_files_of_explain_are_read_by_the_method_and_findings_that_they_name(tmp_path: Path) -> None:
    for method in ("lime", "occlusion"):
        write_explained(tmp_path, "p1.a", method)
    assert methods_in("", tmp_path) == {"lime": tmp_path, "occlusion": tmp_path}
    maps = find_maps(tmp_path, "lime")
    assert list(maps) == ["p1.a"]
    stored = read_map(maps["p1.a"]["Edema"])
    assert np.array_equal(stored.values, np.eye(4, 5))
    assert (stored.probability, stored.shape) == (0.2, (4, 5))
    assert read_map(maps["p1.a"]["Nodule"]).probability == 0.9
    assert stray_files(tmp_path) == []


def test_a_name_chooses_among_the_methods_of_explain_and_renames_a_single_one(tmp_path: Path) -> None:
    write_explained(tmp_path, "p1", "lime")
    assert methods_in("mine", tmp_path) == {"mine": tmp_path}
    assert list(find_maps(tmp_path, "mine")) == ["p1"]
    write_explained(tmp_path, "p1", "occlusion")
    assert methods_in("lime", tmp_path) == {"lime": tmp_path}
    with pytest.raises(InputError, match=r"holds maps of several methods \(lime, occlusion\); leave out mine="):
        methods_in("mine", tmp_path)


def test_other_archives_stay_files_that_are_skipped(tmp_path: Path) -> None:
    write_explained(tmp_path, "p1", "lime", targets=[[0], [1]])  # of several images, whose names it does not hold
    np.savez(tmp_path / "p2.lime.npz", other=1)
    (tmp_path / "p3.lime.npz").write_bytes(b"no archive")
    assert len(stray_files(tmp_path)) == 3
    with pytest.raises(InputError, match="holds no maps; they are named"):
        find_maps(tmp_path)
