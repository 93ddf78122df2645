"""The study's entry in the registry."""

from heatcheck.running.study import Study

STUDY = Study(
    name="bright",
    summary="Counts the pixels of each image that are brighter than a threshold",
    question="How much of the image is bright?",
    paper="made up",
    plan="bright_pixels.plan:plan_bright",
    page="bright_pixels.page:bright_page",
)
