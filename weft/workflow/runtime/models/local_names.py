"""The names of models in this process. Loads no decoder: each check of a workflow imports this."""

from __future__ import annotations

from pathlib import Path

from weft.core.errors import UnknownReference
from weft.core.suggestion import suggestion
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.unit import Unit


def check_local_names(unit: Unit, log: DefectLog) -> None:
    """Check that `weft model` knows the local models of `unit`, or that they are folders."""
    for name, spec in unit.document.models.items():
        if spec.use == "local" and name not in unit.clients:
            with log:
                _check_name(unit, name, spec.model)


def _check_name(unit: Unit, name: str, model: str) -> None:
    """Raises: `UnknownReference`."""
    from weft.serving.weights import known_models

    known = known_models()
    if model not in known and not (Path(model).expanduser() / "config.json").is_file():
        hint = suggestion(model, known, quote="`") + "; or the path of a folder with a config.json"
        error = UnknownReference(f"there is no local model called `{model}`", hint=hint)
        unit.fail(error, ("models", name, "model"))
