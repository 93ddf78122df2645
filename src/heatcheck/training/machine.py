"""On what a fit runs: one device in this process, or several, each with a process of its own."""

import logging
import multiprocessing
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.multiprocessing.spawn import ProcessRaisedException

from heatcheck.core.errors import InputError, ModelError, briefly

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Tick = Callable[[int, float, float], None]  # step, loss, AUROC
Precision = Literal["32-true", "16-mixed", "bf16-mixed"]


@dataclass(frozen=True, slots=True)
class Machine:
    """The devices, their arithmetic, and how many processes of each read ahead."""

    device: str = "cpu"
    devices: int = 1
    precision: Precision = "32-true"
    workers: int = 0

    @property
    def start(self) -> Literal["fork", "spawn"]:
        """How further processes begin: CUDA does not survive a fork."""
        return "fork" if torch.device(self.device).type == "cpu" else "spawn"

    def check(self) -> None:
        """Nothing, or an InputError that says what the machine cannot do."""
        device = _device(self.device)
        if device.type == "cpu" and self.precision == "16-mixed":
            raise InputError("--precision 16-mixed needs a GPU; use bf16-mixed or 32-true on the CPU")
        if device.index is not None and self.devices > 1:
            raise InputError(f"--device {self.device} is one device; say --device {device.type} with --devices")
        if device.type not in ("cpu", "cuda") and self.devices > 1:
            raise InputError(f"--devices {self.devices} needs cpu or cuda, not {device.type}")
        found = torch.cuda.device_count() if device.type == "cuda" else self.devices
        if not found:
            raise InputError(f"--device {self.device}: this machine has none that torch can use; try --device cpu")
        if self.devices > found:
            raise InputError(f"--devices {self.devices}: this machine has {found}")


def _device(name: str) -> torch.device:
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device {name!r} cannot be used ({briefly(error)}); try --device cpu") from error


def carried_out(machine: Machine, work: Callable[..., Any], job: object, tick: Tick) -> Any:  # noqa: ANN401 - work's own
    """What `work(fabric, job, machine, tick)` returns in the first process."""
    from lightning_fabric import Fabric  # takes seconds, and a study that trains nothing does without

    device = torch.device(machine.device)
    alone = machine.devices == 1
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it tells of every process it starts
    fabric = Fabric(
        accelerator=device.type,
        devices=[device.index] if device.index is not None and device.type == "cuda" else machine.devices,
        strategy="auto" if alone else f"ddp_{machine.start}",
        precision=machine.precision,
    )
    if alone:
        return work(fabric, job, machine, tick)
    with _heard(tick, machine.start) as say:
        try:
            # as bytes: processes would otherwise share the memory of one network's weights
            return fabric.launch(_unpacked, pickle.dumps((work, job, machine)), say)  # type: ignore[arg-type]
        except ProcessRaisedException as error:
            said = str(error).strip().splitlines()[-1]
            raise ModelError(f"the training failed in one of its processes ({said}); see --debug") from error


def _unpacked(fabric: "Fabric", packed: bytes, tick: Tick) -> Any:  # noqa: ANN401 - the work's own
    work, job, machine = pickle.loads(packed)  # noqa: S301 - packed by the process that started this one
    return work(fabric, job, machine, tick)


class _Say:
    """A tick that goes to the process that started this one."""

    def __init__(self, queue: Any) -> None:  # noqa: ANN401 - multiprocessing's queue has no public type
        self.queue = queue

    def __call__(self, step: int, loss: float, auroc: float) -> None:
        """Send it."""
        self.queue.put((step, loss, auroc))


@contextmanager
def _heard(tick: Tick, start: str) -> Iterator[_Say]:
    """A tick for another process; whatever it says is heard by `tick` in this one."""
    queue = multiprocessing.get_context(start).SimpleQueue()

    def listen() -> None:
        while (said := queue.get()) is not None:
            tick(*said)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield _Say(queue)
    finally:
        queue.put(None)
        listener.join()
