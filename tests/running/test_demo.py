"""The demonstration: every study once, in folders of their own."""

import pytest

from heatcheck.core.errors import RunFolderError, SpecError
from heatcheck.report.build import Brief
from heatcheck.running import demo
from heatcheck.running.execute import Outcome
from heatcheck.running.progress import Silent
from heatcheck.running.study import RunOptions


@pytest.fixture
def carried_out(monkeypatch):
    """The specs that were run and where, in place of running them."""
    done = []

    def run(spec, out, options, watcher):
        done.append((spec, out.name))
        out.mkdir(parents=True)
        (out / "report.html").write_text("")
        return Outcome(out / "report.html", 4, 1, Brief("A study", "Finished"))

    monkeypatch.setattr(demo, "run_study", run)
    monkeypatch.setattr(demo, "build_contents", lambda out, runs, title: (out, tuple(runs), title))
    return done


def test_every_study_with_a_demo_is_run_in_a_folder_of_its_own(carried_out, tmp_path):
    demonstration = demo.run_demo(tmp_path / "out", [], RunOptions(), Silent())
    studies = ("localization", "triggers", "alignment", "modality")
    assert carried_out == [(f"{name}-demo", name) for name in studies]
    assert demonstration.page[1] == studies
    assert sum(outcome.n_failed for outcome in demonstration.outcomes) == 4


class Listener(Silent):
    """A watcher that keeps the sentences."""

    def __init__(self):
        self.sentences = []

    def say(self, sentence):
        self.sentences.append(sentence)


def test_each_report_is_named_and_linked_as_soon_as_it_is_written(carried_out, tmp_path, monkeypatch):
    listener = Listener()
    monkeypatch.setattr(demo, "build_contents", lambda _, runs, __: listener.say(f"page of {', '.join(runs)}"))
    demo.run_demo(tmp_path, ["localization", "triggers"], RunOptions(), listener)
    after_first = listener.sentences.index(f"Report: {tmp_path / 'localization' / 'report.html'}")
    assert listener.sentences[after_first + 1] == "page of localization"
    assert listener.sentences[-2:] == [
        f"Report: {tmp_path / 'triggers' / 'report.html'}",
        "page of localization, triggers",
    ]


@pytest.mark.parametrize(
    ("only", "duration"),
    [([], "about 3 minutes"), (["triggers", "modality"], "about 2 minutes"), (["triggers"], "about a minute")],
)
def test_the_first_sentence_is_how_long_it_takes(carried_out, tmp_path, only, duration):
    listener = Listener()
    demo.run_demo(tmp_path / "out", only, RunOptions(), listener)
    assert duration in listener.sentences[0]


def test_one_study_alone_leaves_the_others_reports_on_the_page(carried_out, tmp_path):
    demo.run_demo(tmp_path / "out", ["localization"], RunOptions(), Silent())
    demonstration = demo.run_demo(tmp_path / "out", ["triggers"], RunOptions(), Silent())
    assert [name for _, name in carried_out] == ["localization", "triggers"]
    assert demonstration.page[1] == ("localization", "triggers")


def test_an_unknown_study_is_refused_with_a_suggestion(carried_out, tmp_path):
    with pytest.raises(SpecError, match="did you mean 'triggers'"):
        demo.run_demo(tmp_path / "out", ["trigers"], RunOptions(), Silent())
    assert not carried_out


@pytest.mark.parametrize("there", ["run.json", "thesis.docx"])
def test_a_folder_that_holds_other_files_is_left_alone(carried_out, tmp_path, there):
    (tmp_path / there).write_text("mine")
    with pytest.raises(RunFolderError, match="choose another --out"):
        demo.run_demo(tmp_path, [], RunOptions(), Silent())
    assert not carried_out
    assert (tmp_path / there).read_text() == "mine"
