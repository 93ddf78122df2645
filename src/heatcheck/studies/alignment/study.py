"""The alignment study's entry in the registry."""

from heatcheck.running.study import Study

STUDY = Study(
    name="alignment",
    summary="Fine-tunes the model toward the experts' masks and away from them: whose fault is a low score?",
    question="Is a poor map the method's fault or the model's?",
    paper="Baniecki et al. 2023",
    plan="heatcheck.studies.alignment.plan:plan_alignment",
    page="heatcheck.studies.alignment.report.page:alignment_page",
    compare="heatcheck.studies.alignment.compare:compare_alignment",
    demo=3,
)
