import io
import pickle
import zipfile
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from support.loops import CROWDED, SMALL, ScriptedCurator, crowded_plan, small_plan, steps

from ppsyn.domain import Attribute, Domain
from ppsyn.errors import ConfigError
from ppsyn.mechanisms.loop import absorb
from ppsyn.runs.checkpoints import freeze
from ppsyn.serialization import Fitted, pack, pack_arrays, unpack, unpack_arrays

NOTES = {"history": "5e" * 32, "ü": "\n\0€"}


@cache
def fitted(seed: int = 0, lost: frozenset[int] = frozenset()) -> Fitted:
    """What a short run has learned."""
    curator = ScriptedCurator(seed, lost=lost)
    *_, (state, request) = steps(small_plan(rounds=3, max_fit_steps=10, max_values=4), curator)
    return freeze(absorb(state, request, curator.answer(request)), dict(NOTES))


@cache
def crowded() -> Fitted:
    """What a run has learned whose tree had no room for all of it."""
    curator = ScriptedCurator(1)
    *_, (state, request) = steps(crowded_plan(), curator)
    made = freeze(absorb(state, request, curator.answer(request)), dict(NOTES))
    assert made.model.off_tree
    return made


def bits(array: np.ndarray | None) -> tuple[object, ...] | None:
    return None if array is None else (array.dtype.str, array.shape, array.tobytes())


def everything(thing: Fitted) -> list[object]:
    """All that a model holds, down to its bits."""
    model = thing.model
    return [
        [
            (
                m.clique,
                m.partition.count,
                bits(m.partition.groups),
                bits(m.noisy_counts),
                m.sigma,
                m.is_off_tree,
            )
            for m in (*thing.measurements, *thing.evidence)
        ],
        [(name, bits(f.groups.groups), bits(f.shares)) for name, f in model.compression.attributes.items()],
        thing.rounds,
        [(clique, bits(table)) for clique, table in (*model.potentials.items(), *model.off_tree.items())],
        (model.total, model.step, model.domain, model.tree.nodes),
        [bits(belief) for belief in model.beliefs],
        dict(thing.notes),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_a_model_comes_back_bit_for_bit(seed: int) -> None:
    made = fitted(seed, frozenset({seed, 7}))
    assert everything(unpack(pack(made), SMALL)) == everything(made)


def test_off_tree_pairs_come_back_bit_for_bit() -> None:
    found = unpack(pack(crowded()), CROWDED)
    assert everything(found) == everything(crowded())
    assert {bits(found.model.project(pair)) for pair in found.model.off_tree} == {
        bits(table) for table in crowded().model.off_tree.values()
    }


@pytest.mark.parametrize(
    "change", [None, np.zeros(7), np.zeros(100, np.float32), np.full((10, 10), np.nan), np.full((10, 10), -1.0)]
)
def test_a_model_without_its_off_tree_pairs_or_with_others_is_refused(change: np.ndarray | None) -> None:
    arrays = unpack_arrays(pack(crowded()))
    del arrays["off_tree0"]
    with pytest.raises(ConfigError, match="fitted model"):
        unpack(pack_arrays(arrays | ({} if change is None else {"off_tree0": change})), CROWDED)


def test_what_came_back_is_packed_to_the_same_bytes() -> None:
    assert pack(unpack(pack(fitted()), SMALL)) == pack(fitted())


def test_equal_models_are_equal_bytes_and_others_are_not() -> None:
    assert pack(fitted(1)) == pack(fitted.__wrapped__(1))
    assert pack(fitted(1)) != pack(fitted(2))


def test_a_model_that_nothing_was_measured_for_comes_back() -> None:
    made = fitted(0, frozenset(range(1000)))
    assert made.measurements == ()
    assert everything(unpack(pack(made), SMALL)) == everything(made)


@settings(deadline=None)
@given(
    content=st.dictionaries(
        st.text("abcdefgh", min_size=1, max_size=5),
        arrays_of.arrays(
            arrays_of.scalar_dtypes().filter(lambda dtype: dtype.kind in "biuf"), arrays_of.array_shapes(min_dims=0)
        ),
        max_size=4,
    )
)
def test_arrays_come_back_bit_for_bit(content: dict[str, np.ndarray]) -> None:
    data = pack_arrays(content)
    found = unpack_arrays(data)
    assert {name: bits(array) for name, array in found.items()} == {
        name: bits(array) for name, array in content.items()
    }
    assert pack_arrays(content) == data


def test_there_is_no_pickle_in_the_file() -> None:
    with zipfile.ZipFile(io.BytesIO(pack(fitted()))) as file:
        for name in file.namelist():
            with file.open(name) as member:
                assert np.lib.format.read_magic(member) == (1, 0)
                assert not np.lib.format.read_array_header_1_0(member)[2].hasobject


def test_objects_are_not_packed() -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        pack_arrays({"a": np.array([{}], object)})


class _Trap:
    """Springs when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("It was unpickled.",))


def _trapped() -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=True, document=np.array([_Trap()], object))
    return file.getvalue()


def _saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def _without(name: str) -> bytes:
    return pack_arrays({key: array for key, array in unpack_arrays(pack(fitted())).items() if key != name})


def _with(name: str, array: np.ndarray) -> bytes:
    return pack_arrays({**unpack_arrays(pack(fitted())), name: array})


NOT_A_MODEL = {
    "nothing": b"",
    "text": b"hello",
    "the head of a zip file": b"PK\x03\x04",
    "an empty zip file": _zipped(),
    "a pickle": pickle.dumps({"a": 1}),
    "a zip file with a pickle": _trapped(),
    "a single array": _saved(np.arange(3)),
    "a member that is no array": _zipped(document=b"hello"),
    "a member that is empty": _zipped(document=b""),
    "a document that is no text": pack_arrays({"document": np.array([255, 254], np.uint8)}),
    "a document that is empty": pack_arrays({"document": np.zeros(0, np.uint8)}),
    "a document of numbers": pack_arrays({"document": np.arange(5.0)}),
    "other arrays": pack_arrays({"a": np.arange(3)}),
    "a huge array": _zipped(document=_saved(np.zeros(1)).replace(b"(1,)", b"(9" + b"0" * 17 + b",)")),
}


@pytest.mark.parametrize("name", NOT_A_MODEL)
def test_what_is_no_model_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="Expected a fitted model"):
        unpack(NOT_A_MODEL[name], SMALL)


@pytest.mark.parametrize("name", ["document", "groups0", "counts0", "potentials0"])
def test_a_model_with_an_array_missing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        unpack(_without(name), SMALL)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("counts0", np.zeros(1, np.int64)),
        ("counts0", np.array(["a", "b", "c"])),
        ("groups0", np.array([0, 1, 99], np.int32)),
        ("groups0", np.zeros((2, 2), np.int32)),
        ("potentials0", np.zeros(1)),
        ("potentials0", np.full(2 * 5, np.nan)),
        ("potentials0", np.array([1 + 1j] * 10)),
    ],
)
def test_a_model_with_an_array_that_does_not_fit_is_refused(name: str, array: np.ndarray) -> None:
    with pytest.raises(ConfigError):
        unpack(_with(name, array), SMALL)


@pytest.mark.parametrize(
    "domain",
    [Domain(SMALL.attributes[:2]), Domain((Attribute("f", 3), *SMALL.attributes[1:])), Domain((Attribute("z", 2),))],
)
def test_a_model_of_another_table_is_refused(domain: Domain) -> None:
    with pytest.raises(ConfigError):
        unpack(pack(fitted()), domain)


def refused_or_the_same(data: bytes) -> None:
    """Bytes that say nothing, such as a date, may change; what is read is the same or nothing."""
    try:
        found = unpack(data, SMALL)
    except ConfigError:
        return
    assert everything(found) == everything(fitted())


@settings(max_examples=400, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), pattern=st.integers(1, 255))
def test_a_changed_byte_is_refused_or_changes_nothing(share: float, pattern: int) -> None:
    data = bytearray(pack(fitted()))
    data[int(share * len(data))] ^= pattern
    refused_or_the_same(bytes(data))


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_is_refused(share: float) -> None:
    data = pack(fitted())
    with pytest.raises(ConfigError):
        unpack(data[: int(share * len(data))], SMALL)


@pytest.mark.slow
def test_whichever_byte_is_changed_it_is_refused_or_changes_nothing() -> None:
    data = pack(fitted())
    for place in range(len(data)):
        for pattern in (1, 0xFF ^ (place % 255)):
            refused_or_the_same(data[:place] + bytes([data[place] ^ pattern]) + data[place + 1 :])
