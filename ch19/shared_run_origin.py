"""Where the figures of a script were made: the device, the commit and the versions, as a row of a run tells them."""

import platform
from datetime import UTC, datetime

import torch

from common.python.machine.description import describe_machine
from common.python.project import PROJECT_ROOT
from common.python.results import Origin


def origin_of(device):
    """A dictionary: the device's name, Python's version, and `origin`, that of a row."""
    machine = describe_machine(PROJECT_ROOT)
    source = machine.root or machine.project
    gpus = machine.gpus[:1] if device.type == "cuda" else ()
    origin = Origin(
        gpus=tuple(f"{gpu.name} {gpu.uuid}" for gpu in gpus),
        commit=source.commit if source else "",
        dirty=source.dirty if source else False,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        driver=gpus[0].driver if gpus else "",
        torch=torch.__version__,
    )
    name = gpus[0].name if gpus else f"a CPU, {machine.cpu}"
    return {"device": name, "python": platform.python_version(), "origin": origin.model_dump(mode="json")}
