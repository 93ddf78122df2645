from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from heatcheck.core.errors import SpecError
from heatcheck.runs.spec import Envelope, checked, read_spec, shipped_specs


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Contract(Strict):
    outputs: tuple[str, ...] = ()
    activation: Literal["sigmoid", "softmax"] = "sigmoid"


class Part(Strict):
    name: str
    contract: Contract | None = None


class Body(Strict):
    model: Part
    parts: tuple[Part, ...] = ()
    cutoff: float = Field(0.0, ge=0, le=1)
    findings: tuple[str, ...] | Literal["all"] = "all"


def written(folder, text, name="my-study.yaml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def refusal(name, model=None):
    """The sentence with which the spec, or the study's own part of it, is refused."""
    with pytest.raises(SpecError) as caught:
        read_spec(name).checked_body(model or BaseModel)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_spec_is_parted_into_what_is_common_and_what_is_the_studys_own(tmp_path):
    spec = read_spec(written(tmp_path, "study: localization\nseed: 3\nmodel: {name: net}\ncutoff: 0.5\n"))
    assert spec.envelope == Envelope(study="localization", seed=3)
    assert spec.body == {"model": {"name": "net"}, "cutoff": 0.5}
    assert (spec.name, spec.folder) == ("my-study.yaml", tmp_path)
    assert spec.checked_body(Body).cutoff == 0.5


def test_seed_of_the_command_line_replaces_that_of_the_spec(tmp_path):
    name = written(tmp_path, "study: localization\nseed: 3\n")
    assert read_spec(name, seed=8).envelope.seed == 8
    assert read_spec(name, seed=0).envelope.seed == 0
    assert read_spec(name).envelope.seed == 3


def test_byte_order_mark_does_no_harm(tmp_path):
    assert read_spec(written(tmp_path, "\ufeffstudy: localization\n")).envelope.study == "localization"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("batch_sise: 4", "unknown key 'batch_sise'; did you mean 'batch_size'?"),
        ("cutof: 0.5", "unknown key 'cutof'; did you mean 'cutoff'?"),
        ("Seed: 4", "unknown key 'Seed'; did you mean 'seed'?"),
    ],
)
def test_unknown_key_is_met_with_the_nearest_of_all_keys(tmp_path, text, sentence):
    name = written(tmp_path, f"study: x\nmodel: {{name: net}}\n{text}\n")
    assert refusal(name, Body) == f"my-study.yaml: {sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("model: {name: net, contrat: {}}", "unknown key 'model.contrat'; did you mean 'contract'?"),
        (
            "model: {name: net, contract: {activaton: sigmoid}}",
            "unknown key 'model.contract.activaton'; did you mean 'activation'?",
        ),
        ("model: {name: n}\nparts: [{name: n, nmae: m}]", "unknown key 'parts.0.nmae'; did you mean 'name'?"),
        (
            "model: {name: n}\nparts: [{name: n, contract: {outptus: []}}]",
            "unknown key 'parts.0.contract.outptus'; did you mean 'outputs'?",
        ),
    ],
)
def test_unknown_key_inside_a_part_is_met_with_the_keys_of_that_part(tmp_path, text, sentence):
    assert refusal(written(tmp_path, f"study: x\n{text}\n"), Body) == f"my-study.yaml: {sentence}"


def test_key_of_the_common_part_is_not_suggested_inside_another_part(tmp_path):
    sentence = refusal(written(tmp_path, "study: x\nmodel: {name: net, sed: 1}\n"), Body)
    assert sentence == "my-study.yaml: unknown key 'model.sed'; known: contract, name"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed: 3", "'study' is missing; add it"),
        ("study: x", "'model' is missing; add it"),
        ("study: x\nmodel: {contract: null}", "'model.name' is missing; add it"),
    ],
)
def test_missing_key_is_named(tmp_path, text, sentence):
    assert refusal(written(tmp_path, f"{text}\n"), Body) == f"my-study.yaml: {sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed: many", "'seed': must be a whole number, got 'many'"),
        ("seed:\ntitle:", "nothing is written for 'title', 'seed'; fill them in, or remove the line"),
        ("batch_size: 0", "'batch_size': must be at least 1, got 0"),
        ("threads: 0", "'threads': "),
        ("gallery: 201", "'gallery': must be at most 200, got 201"),
        ("keep_maps: some", "'keep_maps': must be 'gallery', 'all' or 'none', got 'some'"),
        ("cutoff: 2", "'cutoff': must be at most 1, got 2"),
        ("model: 7", "'model': "),
    ],
)
def test_wrong_value_is_named_with_what_was_given(tmp_path, text, sentence):
    model = "" if text.startswith("model") else "model: {name: net}\n"
    assert sentence in refusal(written(tmp_path, f"study: x\n{model}{text}\n"), Body)


@pytest.mark.parametrize("content", ["study: [x", "a: b: c", "\tstudy: x", "study: x\n  seed: 3", "&a *b"])
def test_text_that_is_no_yaml_is_refused(tmp_path, content):
    sentence = refusal(written(tmp_path, content))
    assert sentence.startswith("my-study.yaml is not valid YAML (")
    assert sentence.endswith("; correct it")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "s.yaml").write_bytes(b"study: \xff\xfe\n")
    assert "s.yaml is not valid YAML" in refusal(str(tmp_path / "s.yaml"))


@pytest.mark.parametrize("content", ["", "- study\n- seed\n", "localization", "7", "1: a\n2: b\n", "null"])
def test_yaml_that_is_no_mapping_of_names_is_refused(tmp_path, content):
    sentence = refusal(written(tmp_path, content))
    assert sentence == "my-study.yaml must be a mapping of names to values; start from `heatcheck init`"


@pytest.mark.parametrize(
    "payload",
    [
        "!!python/object/apply:os.system ['touch executed']",
        "!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path [executed]]",
        "!!python/object/new:os.system ['touch executed']",
        "!!python/name:os.system",
    ],
)
def test_yaml_cannot_execute_anything(tmp_path, monkeypatch, payload):
    monkeypatch.chdir(tmp_path)
    assert "is not valid YAML" in refusal(written(tmp_path, f"study: {payload}\n"))
    assert [path.name for path in tmp_path.iterdir()] == ["my-study.yaml"]


def test_shipped_specs_are_found_by_name():
    assert {"localization-demo", "phantom-chest"} <= set(shipped_specs())
    for name in shipped_specs():
        spec = read_spec(name)
        assert spec.name == f"{name}.yaml"
        assert spec.envelope.title


def test_paths_of_a_shipped_spec_start_in_the_current_folder_and_of_a_copy_beside_it(tmp_path):
    assert read_spec("localization-demo").folder == Path()
    copy = written(tmp_path, shipped_specs()["localization-demo"].read_text())
    assert read_spec(str(copy)).folder == tmp_path


def test_name_near_a_shipped_spec_is_met_with_it():
    assert refusal("localisation-demo") == "no spec named 'localisation-demo'; did you mean 'localization-demo'?"
    assert f"known: {', '.join(sorted(shipped_specs()))}" in refusal("zzz")


def test_file_without_an_ending_is_read_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "study: x\n", "study")
    assert read_spec("study").folder == Path()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("my-stdy.yaml", "no such file; did you mean 'my-study.yaml'? (`heatcheck init my-stdy.yaml` writes one"),
        ("localization-demo.yaml", "no such file; did you mean 'localization-demo'?"),
        ("zzzzz.yml", "modality-synthetic, my-study.yaml, phantom-brain, "),
        ("zzzzz.yml", " (`heatcheck init zzzzz.yml` writes one"),
    ],
)
def test_missing_file_is_met_with_a_near_one_and_a_way_to_make_it(tmp_path, asked, sentence):
    written(tmp_path, "study: x\n")
    written(tmp_path, "none", "notes.txt")
    assert sentence in refusal(str(tmp_path / asked))


def test_missing_file_in_a_missing_folder_is_refused(tmp_path):
    sentence = refusal(str(tmp_path / "nowhere/study"))
    assert "nowhere/study: no such file" in sentence
    assert "`heatcheck init study` writes one to start from" in sentence


def test_own_checks_of_a_model_are_told_without_ceremony():
    class Odd(BaseModel):
        count: int

        def model_post_init(self, _):
            if self.count % 2 == 0:
                raise ValueError("count must be odd")

    with pytest.raises(SpecError, match=r"^here: count must be odd$"):
        checked(Odd, {"count": 2}, "here")
    assert checked(Odd, {"count": 3}, "here").count == 3


def test_a_key_given_twice_is_refused(tmp_path):
    path = tmp_path / "twice.yaml"
    path.write_text("study: localization\nseed: 1\nsource: {name: a, name: b}\n")
    with pytest.raises(SpecError, match="'name' is given twice"):
        read_spec(str(path))


def test_a_mapping_that_is_wrong_is_not_printed_as_a_dictionary():
    class Part(BaseModel):
        a: int = 0

        @model_validator(mode="after")
        def _refuse(self):
            raise ValueError("a and b do not fit")

    class Whole(BaseModel):
        part: Part

    with pytest.raises(SpecError) as caught:
        checked(Whole, {"part": {"a": 1}}, "x.yaml")
    assert str(caught.value) == "x.yaml: 'part': a and b do not fit"
