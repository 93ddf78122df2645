"""The alignment study from spec to report, on films with squares."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from PIL import Image
from sklearn.metrics import roc_auc_score
from tests.studies.alignment.squares_material import CONTRACT, FINDINGS, SMALL, write_alignment, write_films

from heatcheck import read_run, run_study
from heatcheck.core.errors import DivergedError, InputError
from heatcheck.core.vocabulary import condition
from heatcheck.fitting import networks as fitting_networks
from heatcheck.methods import METHODS
from heatcheck.running.compare import compare_runs
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.alignment import networks as alignment_networks
from heatcheck.studies.alignment import plan as alignment_plan
from heatcheck.studies.alignment.bases import fresh, started_anew
from heatcheck.studies.alignment.plan import AlignmentPlan, plan_alignment

TRUSTED = RunOptions(trust_code=True, workers=1)
SMALLEST = {
    "seeds": 1,
    "methods": ["gradient"],
    "judged": [],
    "findings": [FINDINGS[0]],
}  # four networks, the base's too


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The small study, run once."""
    folder = tmp_path_factory.mktemp("alignment")
    run_study(write_alignment(folder), folder / "run", TRUSTED)
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The smallest study, which nobody stopped."""
    folder = tmp_path_factory.mktemp("smallest")
    run_study(write_alignment(folder, **SMALLEST), folder / "run", TRUSTED)
    return folder


def plan_of(folder, **changes):
    """The plan of the small study with these changes."""
    return plan_alignment(read_spec(write_alignment(folder, **changes)), TRUSTED, folder / "run")


def by(table, **facts):
    """The rows whose condition has exactly these facts."""
    return table[table["condition"] == condition(**facts)]


def test_every_arm_is_scored_on_every_outlined_case(finished):
    scores = read_run(finished / "run").scores
    mass = scores[(scores["metric"] == "mass") & (scores["finding"] == FINDINGS[0])]
    for facts, methods in (
        ({"arm": "base"}, {"gradient", "grad_cam", "random"}),
        ({"arm": "control", "seed": 2}, {"gradient", "grad_cam", "random"}),
        ({"arm": "align", "seed": 1}, {"gradient", "grad_cam"}),
        ({"arm": "misalign", "seed": 2}, {"gradient", "grad_cam"}),
        ({"arm": "align", "seed": 1, "through": "gradient"}, {"random"}),
        ({"arm": "floor"}, {"random", "center_prior", "edge", "location_prior"}),
    ):
        rows = by(mass, **facts)
        assert set(rows["method"]) == methods, facts
        assert (rows.groupby("method").size() == 8).all(), facts


def test_reliance_belongs_to_the_network_and_not_to_a_method_that_did_not_make_it(finished):
    scores = read_run(finished / "run").scores
    reliance = scores[(scores["metric"] == "reliance") & (scores["finding"] == FINDINGS[0])]
    assert set(by(reliance, arm="base")["method"]) == {""}
    assert set(by(reliance, arm="control", seed=1)["method"]) == {""}
    assert set(by(reliance, arm="align", seed=1)["method"]) == {"gradient", "grad_cam"}
    assert by(reliance, arm="base")["value"].mean() > 0.5  # the network reads the square


def test_images_that_were_learned_from_are_scored_apart(finished):
    scores = read_run(finished / "run").scores
    learned = by(scores, arm="align", seed=1, split="finetune")
    assert set(learned["case"].str[:8]) == {"finetune"}
    assert set(by(scores, arm="align", seed=1)["case"].str[:8]) == {"evaluati"}


def test_every_network_says_what_it_thinks_of_all_evaluation_images(finished):
    predictions = read_run(finished / "run").predictions
    networks = set(predictions["model"])
    assert {"bright", "bright · control · seed 1", "bright · grad_cam · misalign · seed 2"} <= networks
    assert len(networks) == 1 + 2 * (1 + 2 * 2)
    assert (predictions.groupby(["model", "finding"]).size() == 16).all()


def test_the_folder_keeps_neither_images_nor_networks(finished):
    assert not (finished / "run" / "images").exists()
    assert not list((finished / "run").rglob("*.ckpt"))
    assert not list((finished / "run" / "networks").glob("*"))


def test_reliance_has_its_controls_on_the_base(finished):
    scores = read_run(finished / "run").scores
    scores = scores[scores["finding"] == FINDINGS[0]]
    for metric in ("reliance", "reliance_placebo", "reliance_added"):
        assert len(by(scores[scores["metric"] == metric], arm="base")) == 8, metric
    reliance = scores[scores["metric"] == "reliance"]
    untrained, base = (by(reliance, arm=arm).set_index("case")["value"] for arm in ("untrained", "base"))
    assert (untrained.index == base.index).all()
    assert 0 < untrained.mean() < base.mean()  # a bright square moves any network, whatever it learned
    rows = read_run(finished / "run").estimates
    rows = rows[(rows["statistic"] == "difference") & (rows["finding"] == FINDINGS[0])]
    against = by(rows, arm="base", versus="untrained")
    assert against["value"].item() == pytest.approx((base - untrained).mean())


def test_a_network_with_weights_of_its_own_cannot_be_started_anew():
    layers = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.BatchNorm2d(2))
    one, other = started_anew(layers, 1), started_anew(layers, 2)
    assert not torch.equal(one[0].weight, other[0].weight)
    assert torch.equal(one[0].weight, started_anew(layers, 1)[0].weight)
    layers.register_parameter("token", torch.nn.Parameter(torch.zeros(3)))
    assert started_anew(layers, 1) is None


def test_the_usual_place_is_that_of_the_fine_tuning_patients(finished):
    """The mean of their masks, whatever the evaluation images show."""
    masks = {}
    for split in ("finetune", "evaluation"):
        files = (finished / f"{split}-masks" / FINDINGS[0]).iterdir()
        masks[split] = {path.stem: np.asarray(Image.open(path)) > 0 for path in files}
    usual = np.mean(list(masks["finetune"].values()), axis=0)
    scores = read_run(finished / "run").scores
    rows = by(scores[(scores["metric"] == "mass") & (scores["finding"] == FINDINGS[0])], arm="floor")
    rows = rows[rows["method"] == "location_prior"].set_index("case")["value"]
    for case, mask in masks["evaluation"].items():
        found = next(value for name, value in rows.items() if case in name)
        assert found == pytest.approx(usual[mask].sum() / usual.sum(), abs=0.03)


def test_estimates_and_report_speak_of_every_pair(finished):
    run = read_run(finished / "run")
    assert (run.path / "preview.png").exists()
    blame = run.estimates[run.estimates["statistic"] == "blame"]
    assert len(blame) == 3 * (len(FINDINGS) + 1)  # two methods and the judged one; every finding, and all
    assert blame["reason"].str.len().gt(20).all()
    robustness = run.estimates[run.estimates["statistic"] == "robustness"]
    assert {"mass", "rank", "hit", "iou"} <= set(robustness["metric"])
    assert "Grad-CAM" in (finished / "run" / "report.html").read_text()


def test_two_runs_are_compared_arm_by_arm(finished):
    compared = compare_runs(finished / "run", finished / "run", draws=100)
    mass = {row.method: row for row in compared.rows if row.metric == "mass" and row.finding == FINDINGS[0]}
    methods = ("gradient", "grad_cam")
    expected = {f"{method} · {arm}" for method in methods for arm in ("base", "control", "align", "misalign")}
    assert set(mass) == {*expected, "random · base", "random · control"}
    assert all(row.difference == 0 for row in mass.values())
    assert mass["gradient · align"].n_cases == 2 * mass["gradient · base"].n_cases == 16  # two seeds


def test_counts_of_the_data_are_recorded(finished):
    facts = json.loads((finished / "run" / "run.json").read_text())
    assert facts["n_evaluation"] == 16
    counts = facts["positives"][FINDINGS[0]]
    assert counts["finetune"] + counts["selection"] == 12
    assert counts["evaluation"] == counts["evaluation_positives"] == counts["evaluation_negatives"] == 8


@pytest.fixture
def scores_alone(monkeypatch):
    """Runs end without estimates, which take longer than the networks of a tiny study."""
    monkeypatch.setattr(AlignmentPlan, "estimates", lambda *_: [])


class StoppedError(Exception):
    """What a test puts in the way of a run."""


@pytest.mark.parametrize("after", [1, 3])
def test_a_run_that_was_stopped_ends_with_the_same_scores(undisturbed, tmp_path, monkeypatch, after):
    spec = write_alignment(tmp_path, **SMALLEST)
    network = alignment_networks.FineTuner.network
    calls = []

    def stopping(self, cell):
        if len(calls) == after:
            raise StoppedError
        calls.append(cell)
        return network(self, cell)

    with monkeypatch.context() as patch:
        patch.setattr(alignment_networks.FineTuner, "network", stopping)
        with pytest.raises(StoppedError):
            run_study(spec, tmp_path / "run", TRUSTED)
    run_study(spec, tmp_path / "run", TRUSTED)
    for table in ("scores", "predictions", "estimates"):
        one, other = (getattr(read_run(folder / "run"), table) for folder in (undisturbed, tmp_path))
        pd.testing.assert_frame_equal(one, other)


def test_a_network_whose_loss_is_no_number_is_recorded_and_the_others_go_on(tmp_path, monkeypatch):
    fit = fitting_networks.fit

    def diverging(job, machine, tick):
        if job.objective.method is not None and job.objective.direction == "align":
            raise DivergedError("the loss was no longer a number in step 2; lower the learning rate")
        return fit(job, machine, tick)

    monkeypatch.setattr(fitting_networks, "fit", diverging)
    outcome = run_study(write_alignment(tmp_path, **SMALLEST), tmp_path / "run", TRUSTED)
    assert outcome.n_failed == 1
    run = read_run(tmp_path / "run")
    failed = run.cases[run.cases["status"] == "failed"]
    assert set(failed["stage"]) == {"training"}
    assert failed["case"].str.contains("align").all()
    lost = by(run.scores, arm="align", seed=1)
    assert lost["value"].isna().all()
    assert lost["reason"].str.contains("no longer a number").all()
    assert by(run.scores, arm="misalign", seed=1).query("metric == 'mass'")["value"].notna().all()
    assert "no longer a number" in outcome.report.read_text()


def test_a_learning_rate_that_is_far_too_high_ends_its_networks_and_not_the_run(tmp_path):
    fit = {"epochs": 3, "batch_size": 8, "learning_rate": 1e30, "clip": None}
    spec = write_alignment(tmp_path, **SMALLEST, fit=fit)
    outcome = run_study(spec, tmp_path / "run", TRUSTED)
    assert outcome.n_failed > 0
    assert by(read_run(tmp_path / "run").scores, arm="base").query("metric == 'mass'")["value"].notna().all()


def test_networks_lost_in_their_only_step_do_not_end_the_run(tmp_path):
    fit = {"epochs": 1, "batch_size": 16, "learning_rate": 1e30, "clip": None}  # the loss before the step is a number
    spec = write_alignment(tmp_path, **SMALLEST, fit=fit)
    outcome = run_study(spec, tmp_path / "run", TRUSTED)
    assert outcome.n_failed == 3
    lost = by(read_run(tmp_path / "run").scores, arm="control", seed=1)
    assert lost["reason"].str.contains("never a number").all()
    assert not list((tmp_path / "run" / "networks").glob("*"))


def test_a_network_that_was_lost_late_is_not_kept(tmp_path, monkeypatch):
    def diverging(job, machine, tick):
        job.keeper.path.write_bytes(b"the weights of the first epoch")
        job.state_file.write_bytes(b"and its state")
        raise DivergedError("the loss was no longer a number in step 9; lower the learning rate")

    monkeypatch.setattr(fitting_networks, "fit", diverging)
    spec = write_alignment(tmp_path, **SMALLEST, keep_networks=True)
    run_study(spec, tmp_path / "run", TRUSTED)
    assert not list((tmp_path / "run" / "networks").glob("*"))


def test_masks_that_fill_the_coarse_grid_of_a_map_are_told_and_not_taken_for_a_failed_fit(tmp_path):
    spec = write_alignment(tmp_path, seeds=1, methods=["gradient", "grad_cam"], judged=[], findings=[FINDINGS[0]])
    nearly_all = np.full((24, 24), 255, np.uint8)
    nearly_all[0, 0] = 0
    for file in (tmp_path / "finetune-masks" / FINDINGS[0]).glob("*.png"):
        Image.fromarray(nearly_all).save(file)
    outcome = run_study(spec, tmp_path / "run", TRUSTED)
    assert outcome.n_failed == 2
    run = read_run(tmp_path / "run")
    reasons = run.cases[run.cases["status"] == "failed"]["reason"]
    assert reasons.str.contains("covers the whole grid of grad_cam's maps \\(8×8\\)").all()
    aligned = by(run.scores, arm="align", seed=1)
    assert aligned.query("method == 'gradient' and metric == 'mass'")["value"].notna().all()
    assert aligned.query("method == 'grad_cam' and metric == 'mass'")["value"].isna().all()


def test_several_findings_can_be_aligned_at_once(tmp_path):
    spec = write_alignment(tmp_path, several=True, seeds=1, methods=["gradient"], judged=[])
    run_study(spec, tmp_path / "run", TRUSTED)
    run = read_run(tmp_path / "run")
    assert set(by(run.scores, arm="align", seed=1)["finding"]) == set(FINDINGS)
    assert set(run.predictions["model"]) == {
        "bright", "bright · control · seed 1", "bright · gradient · align · seed 1",
        "bright · gradient · misalign · seed 1",
    }  # fmt: skip


@pytest.mark.usefixtures("scores_alone")
def test_what_a_network_leaves_behind_is_looked_for_once(tmp_path, monkeypatch):
    """A grid has thousands of networks, and each of them comes after all that are finished."""
    discarded = []
    monkeypatch.setattr(alignment_networks.FineTuner, "discard", lambda _, cell: discarded.append(cell))
    run_study(write_alignment(tmp_path, **SMALLEST), tmp_path / "run", TRUSTED)
    assert len(discarded) == len(set(discarded)) == 1 + 1 + 2


@pytest.mark.usefixtures("scores_alone")
def test_networks_are_kept_where_that_is_asked_for(tmp_path):
    spec = write_alignment(tmp_path, **SMALLEST, keep_networks=True)
    run_study(spec, tmp_path / "run", TRUSTED)
    assert len(list((tmp_path / "run" / "networks").glob("*.safetensors"))) == 3


def test_bases_can_be_trained_with_several_seeds_and_are_networks_of_their_own(tmp_path):
    """What one training does by luck is then no effect of its architecture: the regression counts base networks."""
    training = {"name": "phantom_chest", "patients": 8, "first": 100, "size": 40, "second_view": 0, "readers": 0}
    changes = {
        "models": ["densenet_compact", "vit_compact"],
        "size": [32, 32],
        "initialisations": [{"name": "random"}],
        "base": {"training": training, "validation": {**training, "first": 200}, "seeds": 3},
        "finetune": {**training, "patients": 24, "first": 300},
        "evaluation": {**training, "patients": 12, "first": 400},
        "findings": ["Cardiomegaly"],
        "methods": ["gradient"],
        "judged": [],
        "fit": {"epochs": 1, "batch_size": 4},
    }
    spec = write_alignment(tmp_path, **changes)
    plan = plan_alignment(read_spec(spec), TRUSTED, tmp_path / "run")
    assert [base.key for base in plan.bases[:3]] == [f"densenet_compact/random/{seed}" for seed in (1, 2, 3)]
    assert len({base.file for base in plan.bases}) == len(plan.bases) == 6
    assert {base.facts.family for base in plan.bases[:3]} == {"DenseNet"}
    first, second = (next(fresh(base, 3).parameters()) for base in plan.bases[:2])
    assert not torch.equal(first, second)
    assert len([cell for cell in plan.cells if cell.arm == "base"]) == 6


def test_a_base_without_weights_is_trained_first(tmp_path):
    training = {"name": "phantom_chest", "patients": 12, "first": 100, "size": 40, "second_view": 0, "readers": 0}
    changes = {
        "models": ["densenet_compact"],
        "size": [32, 32],
        "initialisations": [
            {"name": "random_1_channel", "channels": 1, "fine_tune": False},
            {"name": "random_3_channels", "channels": 3},
        ],
        "base": {
            "training": training,
            "validation": {**training, "patients": 6, "first": 200},
            "fit": {"epochs": 1, "batch_size": 4},
        },
        "finetune": {**training, "patients": 16, "first": 300},
        "evaluation": {**training, "patients": 12, "first": 400},
        "findings": ["Cardiomegaly"],
        "methods": ["gradient"],
        "judged": [],
        "seeds": 1,
        "fit": {"epochs": 1, "batch_size": 4},
    }
    spec = write_alignment(tmp_path, **changes)
    run_study(spec, tmp_path / "run", TRUSTED)
    run = read_run(tmp_path / "run")
    alone, tuned = "densenet_compact/random_1_channel", "densenet_compact/random_3_channels"
    assert {alone, tuned} <= set(run.predictions["model"])
    assert not run.predictions["model"].str.startswith(f"{alone} ").any()  # it is there for its AUROC
    assert run.predictions["model"].str.startswith(f"{tuned} · gradient").any()
    blame = run.estimates[run.estimates["statistic"] == "blame"]
    assert set(blame["model"]) == {tuned}
    auroc = run.estimates[run.estimates["statistic"] == "auroc"]
    assert {alone, tuned} == set(auroc[auroc["condition"] == condition(arm="base")]["model"])
    assert {model["initialisation"] for model in run.manifest["models"]} == {"random_1_channel", "random_3_channels"}
    assert {model["name"]: model["fine_tuned"] for model in run.manifest["models"]} == {alone: False, tuned: True}
    assert len(list((tmp_path / "run" / "networks").glob("*.safetensors"))) == 2
    validation = by(auroc, arm="base", split="validation")
    assert {alone, tuned} == set(validation["model"])
    answers = pd.read_parquet(tmp_path / "run" / "training" / "predictions.parquet").query("model == @alone")
    labels = answers[answers["finding"] == "Cardiomegaly"]
    row = validation[(validation["model"] == alone) & (validation["finding"] == "Cardiomegaly")].iloc[0]
    assert row["value"] == pytest.approx(roc_auc_score(labels["label"], labels["probability"]))
    assert (row["n_cases"], row["n_patients"]) == (6, 6)
    counts = run.manifest["learned"]["Cardiomegaly"]
    assert counts["validation_positives"] == labels["label"].sum()
    assert counts["training_positives"] + counts["training_negatives"] == 12
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Labels that the bases learned from" in page
    assert "AUROC of the base models on the validation images of their training data" in page


def test_weights_that_are_lacking_are_all_named_or_their_bases_left_out(tmp_path):
    training = {"name": "phantom_chest", "patients": 12, "first": 100, "size": 40, "second_view": 0, "readers": 0}
    starts = [
        {"name": "random", "channels": 1},
        {"name": "one", "start": "weights/{model}-one.pth"},
        {"name": "other", "start": "weights/{model}-other.pth"},
    ]
    changes = {
        "models": ["densenet_compact"],
        "size": [32, 32],
        "initialisations": starts,
        "base": {
            "training": training,
            "validation": {**training, "patients": 6, "first": 200},
            "fit": {"epochs": 1, "batch_size": 4},
        },
        "finetune": {**training, "patients": 16, "first": 300},
        "evaluation": {"name": "chexlocalize", "root": "nowhere", "split": "val"},
        "findings": ["Cardiomegaly"],
        "methods": ["gradient"],
        "judged": [],
        "fit": {"epochs": 1, "batch_size": 4},
    }
    with pytest.raises(InputError) as refused:
        plan_of(tmp_path, **changes)
    for lacking in ("nowhere", "densenet_compact-one.pth", "densenet_compact-other.pth", "optional: true"):
        assert lacking in str(refused.value)
    (tmp_path / "empty").mkdir()
    empty = {"name": "chexlocalize", "root": "empty", "split": "val"}
    with pytest.raises(InputError) as refused:
        plan_of(tmp_path, **{**changes, "evaluation": empty, "finetune": empty})
    for lacking in ("`finetune` and `evaluation`: ", "has no labels of the val", "has no gt_annotations_val.json"):
        assert str(refused.value).count(lacking) == 1
    assert "densenet_compact-one.pth" in str(refused.value)
    changes["evaluation"] = {**training, "patients": 12, "first": 400}
    changes["initialisations"] = [starts[0], *({**start, "optional": True} for start in starts[1:])]
    plan = plan_of(tmp_path, **changes)
    assert [base.key for base in plan.bases] == ["densenet_compact/random"]
    assert plan.facts["left_out"] == {
        "densenet_compact/one": "densenet_compact-one.pth",
        "densenet_compact/other": "densenet_compact-other.pth",
    }
    assert "densenet_compact/one (densenet_compact-one.pth)" in " ".join(plan.facts["notes"])
    changes["initialisations"] = changes["initialisations"][1:]
    with pytest.raises(InputError, match=r"no base is left to fine-tune; put weights in .*-one\.pth"):
        plan_of(tmp_path, **changes)


@pytest.mark.usefixtures("scores_alone")
def test_with_a_limit_so_many_outlined_images_are_explained(tmp_path):
    spec = write_alignment(tmp_path, **SMALLEST)
    run_study(spec, tmp_path / "run", RunOptions(trust_code=True, limit=2, workers=1))
    mass = read_run(tmp_path / "run").scores.query("metric == 'mass'")
    assert (by(mass, arm="align", seed=1).groupby("finding").size() == 2).all()


@pytest.mark.usefixtures("scores_alone")
def test_with_a_limit_random_maps_are_scored_on_the_same_images(tmp_path):
    spec = write_alignment(tmp_path, seeds=1, methods=["gradient"], judged=[])
    table = pd.read_csv(tmp_path / "evaluation.csv", dtype={FINDINGS[0]: "Int64"})
    table.loc[1, FINDINGS[0]] = pd.NA  # the third lesion then has a pneumothorax that is the fourth one
    table.to_csv(tmp_path / "evaluation.csv", index=False)
    run_study(spec, tmp_path / "run", RunOptions(trust_code=True, limit=3, workers=1))
    mass = read_run(tmp_path / "run").scores.query("metric == 'mass'")
    floor, base = (
        set(zip(rows["finding"], rows["case"], strict=True)) for rows in (by(mass, arm="floor"), by(mass, arm="base"))
    )
    assert floor == base
    assert len(base) == 2 * 3


def test_pseudonyms_hide_every_name(tmp_path):
    spec = write_alignment(tmp_path, **SMALLEST)
    run_study(spec, tmp_path / "run", RunOptions(trust_code=True, pseudonymise=True, workers=1))
    run = read_run(tmp_path / "run")
    assert not run.scores["case"].str.contains("evaluation|finetune").any()
    assert "evaluation00" not in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"alpha": -1}, "alpha"),
        ({"methods": ["occlusion"]}, "cannot be part of a loss"),
        ({"methods": ["guided_backprop"]}, "cannot be part of a loss"),
        ({"findings": ["Edema"]}, "is not in both sources"),
        ({"evaluation": "finetune"}, "share"),
        ({"judged": ["gradient"]}, "under `methods` and under `judged`"),
        ({"through": "lrp"}, "is not one of `methods`"),
        ({"judged": ["location_prior"]}, "one of the floors of every run"),
        ({"fit": {"batch_size": 64}}, "lower `fit.batch_size`"),
        ({"fit": {"rotate": 5}}, "without their masks"),
        ({"models": ["densenet_compact"]}, "comes without weights"),
        (
            {"models": [{**SMALL["models"][0], "contract": {**CONTRACT, "mean": [127.5]}}]},
            r"model bright: .* mean \[127.5\]",
        ),
        ({"size": [24, 24]}, "leave them out"),
        ({"initialisations": [{"name": "random"}]}, "need each other"),
        ({"precision": "16-mixed"}, "precision"),
        ({"selection": 1.0}, "selection"),
        ({"alpah": 2}, "did you mean"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(tmp_path, changes, said):
    path = write_alignment(tmp_path)
    if changes.get("evaluation") == "finetune":
        source = {"name": "folder", "images": "finetune", "masks": "finetune-masks", "labels": "finetune.csv"}
        changes = {"evaluation": source}
    text = path.read_text()
    path.write_text(yaml.safe_dump({**yaml.safe_load(text), **changes}))
    with pytest.raises(InputError, match=said):
        run_study(path, tmp_path / "run", TRUSTED)
    assert not (tmp_path / "run").exists()


def test_what_a_first_look_shows_is_a_caution_of_the_run(tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr(alignment_plan, "first_look", lambda *look: looks.append(look) or ("Odd.",))
    assert plan_of(tmp_path).facts["cautions"] == ["Odd."]
    assert [(name, classifier.name) for _, _, name, classifier in looks] == [("bright", "bright")] * 2


def test_a_finding_without_masks_is_refused(tmp_path):
    path = write_alignment(tmp_path)
    shutil.rmtree(tmp_path / "evaluation-masks" / FINDINGS[1])
    with pytest.raises(InputError, match="mask"):
        run_study(path, tmp_path / "run", TRUSTED)


def test_masks_that_cover_the_whole_image_are_refused(tmp_path):
    path = write_alignment(tmp_path)
    for file in (tmp_path / "finetune-masks" / FINDINGS[0]).glob("*.png"):
        Image.new("L", (24, 24), 255).save(file)
    with pytest.raises(InputError, match="covers the whole image"):
        run_study(path, tmp_path / "run", TRUSTED)


def test_a_finding_without_positives_is_refused(tmp_path):
    path = write_alignment(tmp_path)
    table = pd.read_csv(tmp_path / "finetune.csv")
    table[FINDINGS[0]] = 0
    table.to_csv(tmp_path / "finetune.csv", index=False)
    with pytest.raises(InputError, match="no positive case"):
        run_study(path, tmp_path / "run", TRUSTED)


def test_images_that_do_not_fill_a_batch_are_refused_before_a_base_is_trained(tmp_path, monkeypatch):
    def never(*_):
        raise StoppedError

    monkeypatch.setattr(fitting_networks, "fit", never)
    base = {name: write_films(tmp_path, name, 8) for name in ("training", "validation")}
    path = write_alignment(
        tmp_path, models=["densenet_compact"], size=[32, 32], initialisations=[{"name": "random"}],
        base={**base, "fit": {"epochs": 1, "batch_size": 4}}, methods=["gradient"], judged=[],
        fit={"epochs": 1, "batch_size": 16},
    )  # fmt: skip
    for number in (1, 2):
        (tmp_path / "finetune" / f"finetune00{number}.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="14 of the 22 fine-tuning images that can be read are learned from"):
        run_study(path, tmp_path / "run", TRUSTED)


def test_an_unreadable_image_is_recorded_and_the_run_goes_on(tmp_path):
    path = write_alignment(tmp_path, **SMALLEST)
    (tmp_path / "evaluation" / "evaluation003.png").write_bytes(b"no picture")
    outcome = run_study(path, tmp_path / "run", TRUSTED)
    assert outcome.n_failed == 1
    assert "evaluation003" not in set(read_run(tmp_path / "run").scores["case"])


def test_a_set_has_the_methods_that_its_key_can_have(tmp_path):
    spec = write_alignment(tmp_path, methods="all", judged="all", through="gradient")
    plan = plan_alignment(read_spec(str(spec)), TRUSTED, tmp_path / "run")
    able = {name for name, facts in METHODS.items() if facts.differentiable}
    skipped = {each.name for each in (*plan.through.skipped, *plan.beside.skipped)}
    assert set(plan.trained) == able - skipped
    assert {"gradient", "grad_cam"} <= set(plan.trained)
    assert {"random", "occlusion", "guided_backprop"} <= set(plan.judged)
    assert not {"location_prior", "feature_permutation", *plan.trained} & set(plan.judged)
    assert [part["name"] for part in plan.identity["spec"]["judged"]] == list(plan.judged)
