"""Of many that create the same object at once, one does."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from pathlib import Path
from threading import Event

import pytest

from ppsyn.errors import MissingError, StoreError
from ppsyn.schemas.locations import Location
from ppsyn.storage.store import Store, open_store

FILES = ("a.parquet", "manifest.json", "z.parquet")
RACERS = """
import os, sys
from ppsyn.storage.store import open_store
from ppsyn.schemas.locations import Location
start, go = os.pipe()
for name in "0123":
    if os.fork() == 0:
        os.close(go)
        os.read(start, 1)  # until the other end is closed
        store = open_store(Location.model_validate_json(sys.argv[1]))
        made = "".join(str(int(store.create(f"{key:06}.json", name.encode()))) for key in range(5))
        open(f"{sys.argv[2]}/{name}", "w").write(made)
        os._exit(0)
os.close(go)
for _ in "0123":
    os.wait()
"""
"""Four processes that share nothing but where they were loaded, which takes seconds."""


@pytest.mark.parametrize("racers", [2, 16])
def test_of_many_threads_one_creates(store: Store, racers: int) -> None:
    values = [f"racer {number}".encode() for number in range(racers)]
    with ThreadPoolExecutor(racers) as pool:
        made = list(pool.map(partial(store.create, "key"), values))
    assert made.count(True) == 1
    assert store.get("key") == values[made.index(True)]


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_of_many_processes_one_creates(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    location = request.getfixturevalue("s3") if kind == "s3" else Location(url=str(tmp_path / "store"))
    results = tmp_path / "results"
    results.mkdir()
    command = [sys.executable, "-W", "ignore", "-c", RACERS, location.model_dump_json(), str(results)]
    subprocess.run(command, check=True, timeout=120)
    won = list(zip(*(path.read_text() for path in sorted(results.iterdir())), strict=True))
    assert [racers.count("1") for racers in won] == [1] * 5
    store = open_store(location)
    assert store.get_all(store.keys()) == [str(racers.index("1")).encode() for racers in won]


def test_a_created_object_is_whole_as_soon_as_it_is_there(store: Store) -> None:
    data, done = bytes(2_000_000), Event()

    def look() -> set[int]:
        seen: set[int] = set()
        while not done.is_set():
            seen.update(size for size in map(store.size, map("{:02}".format, range(10))) if size is not None)
        return seen

    with ThreadPoolExecutor(1) as pool:
        sizes = pool.submit(look)
        for number in range(10):
            assert store.create(f"{number:02}", data)
        done.set()
        assert sizes.result() <= {len(data)}


def test_who_waits_for_the_last_object_finds_the_others(store: Store) -> None:
    done = Event()

    def look(folder: str) -> bool:
        while not store.has(f"{folder}/manifest.json"):
            if done.is_set():
                return False
        return [f"{folder}/{name}" for name in FILES] == store.keys(folder)

    for number in range(5):
        for name in FILES:
            store.put(f"staging/{name}", name.encode())
        done.clear()
        with ThreadPoolExecutor(2) as pool:
            found = pool.map(look, repeat(f"releases/{number}", 2))
            store.move_folder("staging", f"releases/{number}", "manifest.json")
            done.set()
            assert all(found) or store.has(f"releases/{number}/manifest.json")
            assert store.keys(f"releases/{number}") == [f"releases/{number}/{name}" for name in FILES]
    assert store.keys("staging") == []


def test_a_folder_is_moved_with_its_contents_and_once(store: Store) -> None:
    for name in FILES:
        store.put(f"staging/run/{name}", name.encode())
    for _ in range(2):  # a second time changes nothing
        store.move_folder("staging/run", "releases/set/run", "manifest.json")
        assert store.keys() == [f"releases/set/run/{name}" for name in FILES]
    assert store.get("releases/set/run/a.parquet") == b"a.parquet"


def test_a_folder_of_this_machine_moves_at_once(tmp_path: Path) -> None:
    store = open_store(Location(url=str(tmp_path)))
    for name in FILES:
        store.put(f"staging/run/{name}", name.encode())
    before = (tmp_path / "staging" / "run").stat().st_ino
    store.move_folder("staging/run", "releases/run", "manifest.json")
    assert (tmp_path / "releases" / "run").stat().st_ino == before
    assert not (tmp_path / "staging").exists()


@pytest.mark.parametrize(("copied", "removed"), [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)])
def test_an_interrupted_move_may_be_repeated(s3: Location, copied: int, removed: int) -> None:
    store = open_store(s3)
    for name in sorted(FILES, key=lambda name: name == "manifest.json")[:copied]:
        store.put(f"target/{name}", name.encode())
    for name in FILES[removed:]:
        store.put(f"staging/{name}", name.encode())
    store.move_folder("staging", "target", "manifest.json")
    assert store.keys() == [f"target/{name}" for name in FILES]
    assert store.get_all(store.keys()) == [name.encode() for name in FILES]


def test_a_folder_that_is_not_there_is_not_moved(store: Store) -> None:
    with pytest.raises(MissingError) as caught:
        store.move_folder("staging", "target", "manifest.json")
    assert caught.value.url == store.url("staging")


def test_a_folder_is_not_moved_over_another(tmp_path: Path) -> None:
    store = open_store(Location(url=str(tmp_path)))
    store.put("staging/manifest.json", b"new")
    store.put("target/manifest.json", b"old")
    store.move_folder("staging", "target", "manifest.json")
    assert store.get("target/manifest.json") == b"old"
    store.delete("target")
    store.put("target/other", b"half a folder of someone else's")
    with pytest.raises(StoreError):
        store.move_folder("staging", "target", "manifest.json")
    assert store.get("target/other") == b"half a folder of someone else's"


def test_what_a_killed_writer_left_in_a_folder_is_deleted_with_it(tmp_path: Path) -> None:
    code = (
        "import os, sys; from ppsyn.storage.store import open_store; from ppsyn.schemas.locations import Location\n"
        "with open_store(Location(url=sys.argv[1])).writer('private/part.parquet') as file:\n"
        "    file.write(bytes(40_000_000)); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=60)
    store = open_store(Location(url=str(tmp_path)))
    assert store.keys("private") == []
    assert list(tmp_path.rglob("part*"))  # a file without its name yet
    store.delete("private")
    assert list(tmp_path.iterdir()) == []


def test_many_that_clear_up_beside_each_other_all_succeed(tmp_path: Path) -> None:
    store = open_store(Location(url=str(tmp_path)))

    def work(number: int) -> None:
        for turn in range(40):
            store.put(f"tried/{number}-{turn}/object", b"x")
            store.delete(f"tried/{number}-{turn}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert store.keys() == []
