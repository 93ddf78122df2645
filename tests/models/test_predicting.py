"""A function in place of a network."""

import numpy as np
import torch

from heatcheck.models.predicting import Predicting


def sums(images):
    """Two scores of each image."""
    assert type(images) is np.ndarray
    return np.stack([images.sum((1, 2, 3)), images.max((1, 2, 3))], 1)  # doubles


def test_arrays_go_in_and_tensors_of_the_images_type_come_out():
    answers = Predicting(sums)(torch.ones(3, 2, 4, 5, requires_grad=True))
    assert answers.dtype == torch.float32
    assert answers.tolist() == [[40, 1]] * 3


def test_lists_are_answers_too():
    assert Predicting(lambda images: [[0.5, 1]] * len(images))(torch.ones(2, 1, 4, 4)).shape == (2, 2)


def test_the_functions_code_is_part_of_what_the_model_is():
    class Service:
        def __call__(self, images):
            return sums(images) + 1

    assert "images.max((1, 2, 3))" in repr(Predicting(sums))
    assert "sums(images) + 1" in repr(Predicting(Service()))
    assert "max" in repr(Predicting(max))


def test_a_function_whose_code_cannot_be_read_is_the_same_model_in_every_run():
    without_source = eval("lambda images: images")  # noqa: S307 - there is no other way to have no source
    assert "0x" not in repr(Predicting(without_source))
