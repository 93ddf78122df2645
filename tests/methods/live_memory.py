"""How many bytes of tensors are alive at once."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveMemory(TorchDispatchMode):
    """Counts the memory of every tensor made while it is held, until the last owner lets go of it."""

    def __init__(self):
        super().__init__()
        self.now = self.most = 0
        self.known = weakref.WeakSet()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        answer = func(*args, **(kwargs or {}))
        given = {
            leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
        }
        for leaf in tree_leaves(answer):
            if isinstance(leaf, torch.Tensor) and leaf.untyped_storage()._cdata not in given:
                self.count(leaf.untyped_storage())
        return answer

    def count(self, storage):
        if storage not in self.known:
            self.known.add(storage)
            size = storage.nbytes()
            self.now += size
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self.release, size)

    def release(self, size):
        self.now -= size
