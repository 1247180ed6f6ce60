"""Write the pages and their pictures: ``python -m docs.reference_pages [folder]``."""

from __future__ import annotations

import argparse
from pathlib import Path

from docs.reference_pages.operators import write_operators_page
from docs.reference_pages.pages import OURS, write_pages

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m docs.reference_pages", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1])
    folder = parser.parse_args().folder
    for path in [*write_pages(folder, OURS), write_operators_page(folder, OURS)]:
        print(path)
