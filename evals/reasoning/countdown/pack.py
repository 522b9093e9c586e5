"""`python -m evals.reasoning.countdown.pack TRAINED FOLDER`: a trained model as it is kept.

In half precision, with its tokenizer and what it was trained on, without the optimizer's state.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch
from transformers import LlamaForCausalLM

from evals.reasoning.countdown.vocabulary import compact_tokenizer


def pack(trained: Path, folder: Path) -> None:
    """Write the model in `trained` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    LlamaForCausalLM.from_pretrained(trained, dtype=torch.float16).save_pretrained(folder)
    compact_tokenizer().save_pretrained(folder)
    shutil.copyfile(trained / "training.json", folder / "training.json")
    for file in folder.iterdir():
        file.chmod(0o644)


def main() -> None:
    """Pack what the command line names."""
    parser = argparse.ArgumentParser(description=pack.__doc__)
    parser.add_argument("trained", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    pack(given.trained, given.folder)


if __name__ == "__main__":
    main()
