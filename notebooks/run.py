"""Runs the notebooks from top to bottom, and fails with the cell that fails.

    DEMI_EXEC=incident DEMI_OUT=demo/min python notebooks/run.py [--save FOLDER]
"""

import argparse
import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", type=Path, help="write the notebooks with their outputs there")
    args = parser.parse_args()
    here = Path(__file__).resolve().parent
    for name in ("DEMI_EXEC", "DEMI_OUT"):
        if name in os.environ:
            os.environ[name] = str(Path(os.environ[name]).resolve())
    for path in sorted(here.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(here)}}).execute()
        outputs = sum(len(cell.get("outputs", [])) for cell in notebook.cells)
        print(f"{path.name}: {len(notebook.cells)} cells, {outputs} outputs")
        if args.save:
            args.save.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, args.save / path.name)


main()
