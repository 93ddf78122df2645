"""The modality study's entry in the registry."""

from heatcheck.running.study import Study

STUDY = Study(
    name="modality",
    summary="Measures how much each modality matters to the network, and whether maps reflect it and mark the lesion",
    question="Do the maps show which modality matters, and where?",
    paper="Jin et al. 2021",
    plan="heatcheck.studies.modality.plan:plan_modality",
    page="heatcheck.studies.modality.report.page:modality_page",
    compare="heatcheck.studies.modality.compare:compare_modality",
    demo=4,
)
