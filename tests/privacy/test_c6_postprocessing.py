"""Claim C6: whatever is published follows from the schema, the settings and the answers."""

import gc
import re
import shutil
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import pytest
from privacy.instruments import guard, watch_draws
from privacy.neighbours import encoded
from privacy.releases import CANARY, ODD, SCHEMA, SETTINGS, Script, private_frame, published, scripted_release
from support.published import make_release

from ppsyn import Synthesis, load, save, synthesize
from ppsyn.data.encoding import EncodedTable, encode
from ppsyn.data.marginals import TableCounter
from ppsyn.domain import Attribute, Domain
from ppsyn.errors import DomainRefusedError
from ppsyn.model import estimation as fit
from ppsyn.privacy import curator as gate
from ppsyn.privacy.curator import TableCurator
from ppsyn.releases.layout import REPORT
from ppsyn.releases.reader import make_report, read_manifest
from ppsyn.schemas.locations import Location
from ppsyn.schemas.table import TableSchema
from ppsyn.storage import open_store


def publishes_alike(left: pd.DataFrame, right: pd.DataFrame, folder: Path) -> bool:
    """Whether releases of two tables are the same to the last byte, given the same answers."""
    first, second = scripted_release(left), scripted_release(right)
    return published(first, folder / "left") == published(second, folder / "right")


@pytest.mark.parametrize("rows", [0, 1, 11, 40])
def test_c6_equal_answers_about_different_tables_are_published_alike(rows: int, tmp_path: Path) -> None:
    assert publishes_alike(private_frame(12), private_frame(rows), tmp_path)


def test_c6_the_order_of_rows_and_their_index_leave_no_trace(tmp_path: Path) -> None:
    frame = private_frame(12)
    assert publishes_alike(frame, frame.iloc[::-1].set_axis([CANARY] * 12), tmp_path)


def test_c6_a_model_that_counts_the_rows_of_the_table_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded_rows: list[int] = []
    monkeypatch.setattr(fit, "estimate_total", lambda _: float(encoded_rows[-1]))
    monkeypatch.setattr(TableCounter, "__init__", _counting(encoded_rows))
    assert not publishes_alike(private_frame(12), private_frame(11), tmp_path)


def _counting(seen: list[int]):  # noqa: ANN202  # a replacement for __init__
    plain = TableCounter.__init__

    def init(self: TableCounter, private_table: EncodedTable) -> None:
        seen.append(len(private_table.columns["age"]))
        plain(self, private_table)

    return init


def test_c6_the_number_of_rows_comes_from_the_answers() -> None:
    assert len(scripted_release(private_frame(12), Script(rows=500)).table) == 500
    assert len(scripted_release(private_frame(12), Script(rows=77)).table) == 77


@pytest.mark.parametrize("kind", [EncodedTable, TableCounter, TableCurator])
def test_c6_a_release_keeps_no_way_back_to_the_table(kind: type) -> None:
    synthesis = synthesize(private_frame(), SCHEMA, rho=0.5, **SETTINGS)
    assert not [thing for thing in _reachable(synthesis) if isinstance(thing, kind)]


def test_c6_a_release_that_keeps_its_table_is_caught() -> None:
    synthesis = scripted_release(private_frame())
    synthesis.__dict__["kept"] = guard(encoded(Domain((Attribute("a0", 1),)), []))
    assert [thing for thing in _reachable(synthesis) if isinstance(thing, EncodedTable)]


def _reachable(root: object) -> list[object]:
    """All that can be reached from an object, without the code that everything reaches."""
    seen: dict[int, object] = {}
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen and not isinstance(thing, type | ModuleType | FunctionType):
            seen[id(thing)] = thing
            waiting.extend(gc.get_referents(thing))
    return list(seen.values())


def test_c6_generating_measuring_errors_and_saving_draw_nothing_and_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthesis = synthesize(private_frame(), SCHEMA, rho=0.5, **SETTINGS)
    spent = synthesis.rho

    def fail(*_: object) -> None:
        raise AssertionError("a mechanism was run again")

    monkeypatch.setattr(gate, "add_discrete_gaussian", fail)
    monkeypatch.setattr(gate, "draw_noisy_max", fail)
    published(synthesis, tmp_path / "release")
    synthesis.generate(10, seed=1)
    load(tmp_path / "release").generate(10, seed=2)
    assert synthesis.rho == spent == synthesis.ledger.total


def test_c6_files_and_rows_hold_no_value_that_only_the_table_held(tmp_path: Path) -> None:
    synthesis = synthesize(private_frame(), SCHEMA, rho=0.5, person=("who", 2), **SETTINGS)
    everything = published(synthesis, tmp_path / "release") | {"repr": repr(synthesis).encode()}
    needles = [CANARY.encode(), str(ODD).encode(), ODD.to_bytes(8, "little")]
    assert not [name for name, text in everything.items() for needle in needles if needle in text]


def test_c6_a_saved_release_is_data_and_not_code(tmp_path: Path) -> None:
    save(scripted_release(private_frame()), tmp_path / "release")
    with np.load(tmp_path / "release" / "model.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


def test_c6_the_seed_has_no_part_in_the_noise() -> None:
    # What is asked first is the same in both runs: eleven counts with noise of scale 10 or more, which agree with a
    # probability below 1e-16. Later questions follow from selections, so that they may differ for another reason.
    first, second = (synthesize(private_frame(), SCHEMA, rho=0.005, seed=3, **SETTINGS) for _ in range(2))
    asked = [[measurement.clique for measurement in synthesis.measurements[:3]] for synthesis in (first, second)]
    assert asked == [[("colour",), ("age",), ("ok",)]] * 2
    assert min(measurement.sigma for measurement in first.measurements[:3]) > 10
    assert _noise(first)[:3] != _noise(second)[:3]


def _noise(synthesis: Synthesis) -> list[list[int]]:
    return [measurement.noisy_counts.tolist() for measurement in synthesis.measurements]


def test_c6_the_seed_decides_the_rows_once_the_noise_is_drawn() -> None:
    synthesis = scripted_release(private_frame())
    pd.testing.assert_frame_equal(synthesis.generate(50, seed=4), synthesis.generate(50, seed=4))
    assert not synthesis.generate(50, seed=4).equals(synthesis.generate(50, seed=5))


def test_c6_an_empty_table_is_released_like_any_other() -> None:
    synthesis = synthesize(private_frame(0), SCHEMA, rho=0.5, person=("who", 3), **SETTINGS)
    assert synthesis.rho == synthesis.ledger.total
    assert list(synthesis.table.columns) == ["colour", "age", "ok"]


def test_c6_private_objects_show_nothing_of_the_table() -> None:
    table = encode(private_frame(), SCHEMA)
    shown = [repr(thing) for thing in (table, TableCounter(table), guard(table))]
    assert shown == ["EncodedTable(colour, age, ok)", "TableCounter()", "TableCurator()"]


def test_c6_a_refused_value_is_not_named_nor_counted() -> None:
    document = SCHEMA.model_dump(mode="json")
    document["columns"][0] |= {"outside": "refuse", "other": None}
    with pytest.raises(DomainRefusedError) as caught:
        encode(private_frame(), TableSchema.model_validate(document))
    assert CANARY not in f"{caught.value!r} {caught.value}"
    assert caught.value.__context__ is None
    assert not any(character.isdigit() for character in str(caught.value))


def reported(frame: pd.DataFrame, folder: Path) -> bytes:
    """The report of a release with made-up answers, up to the digests of its files, which hold random numbers."""
    with pytest.MonkeyPatch.context() as patch:
        watch_draws(patch, Script())
        release = make_release(folder, frame, SCHEMA)
    page = (release.folder / REPORT).read_bytes().split(b'<section id="audit"')[0]
    return re.sub(rb"begun on [^.]*", b"", page)


def test_c6_equal_answers_about_different_tables_are_reported_alike(tmp_path: Path) -> None:
    assert reported(private_frame(12), tmp_path / "left") == reported(private_frame(40), tmp_path / "right")


def test_c6_the_report_is_made_from_the_released_folder_alone(tmp_path: Path) -> None:
    release = make_release(tmp_path / "made", private_frame(), SCHEMA)
    shutil.copytree(release.folder, tmp_path / "copy")
    shutil.rmtree(tmp_path / "made")
    store = open_store(Location(url=str(tmp_path / "copy")))
    assert make_report(store, read_manifest(store)[0]) == store.get(REPORT)


# Releases that learn from earlier ones


def scripted_series(frame: pd.DataFrame, months: int = 3) -> Synthesis:
    """The last of so many releases of a table, each of which learns from all before it."""
    earlier = list[Synthesis]()
    for month in range(months):
        earlier.append(scripted_release(frame, Script(seed=month), earlier=tuple(earlier)))
    return earlier[-1]


def test_c6_neighbouring_series_of_equal_answers_are_published_alike(tmp_path: Path) -> None:
    """The two rows of one person are in every month of the one series, and in none of the other."""
    whole = private_frame(12)
    left, right = (scripted_series(frame) for frame in (whole, whole.iloc[2:]))
    assert published(left, tmp_path / "left") == published(right, tmp_path / "right")


def test_c6_a_release_spends_on_its_own_answers_alone_whatever_it_learned() -> None:
    last = scripted_series(private_frame(12))
    assert last.ledger.spent == last.ledger.total
    assert len(last.measurements) <= len(last.ledger.spends)
