"""The localization study's entry in the registry."""

from heatcheck.running.study import Study

STUDY = Study(
    name="localization",
    summary="Scores each method's maps against radiologists' outlines and against floors",
    question="Do the maps point where the radiologists do?",
    paper="Saporta et al. 2022",
    plan="heatcheck.studies.localization.plan:plan_localization",
    page="heatcheck.studies.localization.report.page:localization_page",
    demo=1,
)
