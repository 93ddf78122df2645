"""What a fit runs on: one device in this process, or several devices with a process each."""

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
    """The devices, their precision, and how many processes per device load data."""

    device: str = "cpu"
    devices: int = 1
    precision: Precision = "32-true"
    workers: int = 0

    @property
    def start(self) -> Literal["fork", "spawn"]:
        """How further processes are started: CUDA does not survive a fork."""
        return "fork" if torch.device(self.device).type == "cpu" else "spawn"

    def check(self) -> None:
        """Raise an InputError that says what the machine cannot do, if anything."""
        device = _device(self.device)
        if device.type == "cpu" and self.precision == "16-mixed":
            raise InputError("--precision 16-mixed needs a GPU; use bf16-mixed or 32-true on the CPU")
        if device.index is not None and self.devices > 1:
            raise InputError(f"--device {self.device} is one device; use --device {device.type} with --devices")
        if device.type not in ("cpu", "cuda") and self.devices > 1:
            raise InputError(f"--devices {self.devices} needs cpu or cuda, not {device.type}")
        available = torch.cuda.device_count() if device.type == "cuda" else self.devices
        if not available:
            raise InputError(f"--device {self.device}: this machine has none that torch can use; try --device cpu")
        if self.devices > available:
            raise InputError(f"--devices {self.devices}: this machine has {available}; use no more than these")


def _device(name: str) -> torch.device:
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device {name!r} cannot be used ({briefly(error)}); try --device cpu") from error


def run_on(machine: Machine, work: Callable[..., Any], job: object, tick: Tick) -> Any:  # noqa: ANN401 - work's own
    """What `work(fabric, job, machine, tick)` returns in the first process."""
    from lightning_fabric import Fabric  # takes seconds, and is needed only for training

    device = torch.device(machine.device)
    alone = machine.devices == 1
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it logs every process that it starts
    fabric = Fabric(
        accelerator=device.type,
        devices=[device.index] if device.index is not None and device.type == "cuda" else machine.devices,
        strategy="auto" if alone else f"ddp_{machine.start}",
        precision=machine.precision,
    )
    if alone:
        return work(fabric, job, machine, tick)
    with _forwarding(tick, machine.start) as remote_tick:
        try:
            # as bytes: otherwise the processes would share the memory of one network's weights
            return fabric.launch(_unpacked, pickle.dumps((work, job, machine)), remote_tick)  # type: ignore[arg-type]
        except ProcessRaisedException as error:
            last_line = str(error).strip().splitlines()[-1]
            raise ModelError(f"the training failed in one of its processes ({last_line}); see --debug") from error


def _unpacked(fabric: "Fabric", packed: bytes, tick: Tick) -> Any:  # noqa: ANN401 - the work's own
    work, job, machine = pickle.loads(packed)  # noqa: S301 - packed by the process that started this one
    return work(fabric, job, machine, tick)


class _RemoteTick:
    """A tick that is sent to the process that started this one."""

    def __init__(self, queue: Any) -> None:  # noqa: ANN401 - multiprocessing's queue has no public type
        self.queue = queue

    def __call__(self, step: int, loss: float, auroc: float) -> None:
        """Send one tick."""
        self.queue.put((step, loss, auroc))


@contextmanager
def _forwarding(tick: Tick, start: str) -> Iterator[_RemoteTick]:
    """A tick for other processes, which calls `tick` in this one."""
    queue = multiprocessing.get_context(start).SimpleQueue()

    def listen() -> None:
        while (received := queue.get()) is not None:
            tick(*received)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield _RemoteTick(queue)
    finally:
        queue.put(None)
        listener.join()
