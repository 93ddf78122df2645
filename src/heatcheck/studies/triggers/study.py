"""The triggers study's entry in the registry."""

from heatcheck.running.study import Study

STUDY = Study(
    name="triggers",
    summary="Plants a patch the model must rely on, and grades every method by whether it finds it",
    question="Do the maps find the reason, where the reason is known?",
    paper="Sun et al. 2023",
    plan="heatcheck.studies.triggers.plan:plan_triggers",
    page="heatcheck.studies.triggers.report.page:triggers_page",
    demo=2,
)
