"""What to do about a model whose answers have another shape than one number per image and output."""


def remedy_for_answers(shape: tuple[int, ...], images: int, outputs: int) -> str:
    """How the model gets answers of [images, outputs] instead of ones of this shape."""
    if shape == (images,) and outputs == 1:
        return "return them with an axis of outputs, `answers[:, None]`"
    if len(shape) < 2:
        return "return [images, outputs] for a single image too, without `squeeze()`"
    if len(shape) > 2:
        return "return one number per image and output, such as the mean over positions"
    return "correct `outputs`"
