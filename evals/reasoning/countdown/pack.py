"""`python -m evals.reasoning.countdown.pack TRAINED FOLDER`: a trained model as it is kept.

In half precision, with its tokenizer and what it was trained on, without the optimizer's state. The
problems that it drew go into the training record beside the folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import torch
from transformers import LlamaForCausalLM

from evals.reasoning.countdown.training_record import RECORD, TrainedRun, TrainingRecord
from evals.reasoning.countdown.vocabulary import compact_tokenizer


def pack(trained: Path, folder: Path) -> None:
    """Write the model in `trained` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    LlamaForCausalLM.from_pretrained(trained, dtype=torch.float16).save_pretrained(folder)
    compact_tokenizer().save_pretrained(folder)
    shutil.copyfile(trained / "training.json", folder / "training.json")
    for file in folder.iterdir():
        file.chmod(0o644)
    note_training(folder)


def note_training(folder: Path) -> None:
    """Put what the model in `folder` was trained on into the record that lies beside `folder`."""
    drawn = json.loads((folder / "training.json").read_text("utf-8"))["drawn"]
    weights = (folder / "model.safetensors").read_bytes()
    run = TrainedRun(**{**drawn, "held_out": tuple(drawn["held_out"])})
    run = replace(run, name=folder.name, sha256=hashlib.sha256(weights).hexdigest())
    path = folder.parent / RECORD.name
    record = TrainingRecord.read(path) if path.is_file() else TrainingRecord(())
    record.with_run(run).write(path)


def main() -> None:
    """Pack what the command line names."""
    parser = argparse.ArgumentParser(description=pack.__doc__)
    parser.add_argument("trained", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    pack(given.trained, given.folder)


if __name__ == "__main__":
    main()
