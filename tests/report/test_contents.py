"""The page that leads to several reports."""

from heatcheck.running.reporting import build_contents


def test_every_run_stands_with_its_question_verdict_and_a_link_that_exists(made_run, trigger_run):
    localization, triggers = made_run(), trigger_run()
    folder = localization.parent / "both"
    folder.mkdir()
    for name, run in (("localization", localization), ("triggers", triggers)):
        run.rename(folder / name)
    text = build_contents(folder, ["localization", "triggers"], "Both <studies>").read_text()
    assert "Do the heat maps point where the radiologists do?" in text
    assert "do the heat maps find it?" in text
    assert 'href="localization/report.html"' in text
    assert 'href="triggers/report.html"' in text
    assert "Both &lt;studies&gt;" in text
    assert "<script" not in text
