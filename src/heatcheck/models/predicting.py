"""A user's function in place of a network: only its predictions are available."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heatcheck.core.errors import ModelError
from heatcheck.core.tensors import Images


class Predicting(nn.Module):
    """Answers as the function does, which sees arrays [image, channel, *space] and nothing of torch."""

    predictions_only = True  # methods that look inside a network are refused

    def __init__(self, predict: Callable[[np.ndarray], Any]) -> None:
        super().__init__()
        self.predict = predict

    def forward(self, images: Images) -> Tensor:
        """One score per image and output."""
        return torch.as_tensor(np.asarray(self.predict(images.detach().cpu().numpy()))).to(images)

    def extra_repr(self) -> str:
        """The code of the function: with other code it is another model."""
        code = self.predict if inspect.isroutine(self.predict) else type(self.predict)
        try:
            return inspect.getsource(code)
        except (OSError, TypeError):
            return code.__qualname__


def require_network(name: str, module: nn.Module, why: str) -> None:
    """Raise ModelError if the module only wraps a function."""
    if isinstance(module, Predicting):
        raise ModelError(f"model {name} is a function, of which only predictions are known; {why}")
