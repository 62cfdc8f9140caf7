"""What an error of ours says, and what it leaves behind of the one that it replaces."""

import re
from traceback import walk_tb

import pytest

import ppsyn.errors
from ppsyn.errors import ConfigError, PPSynError, StoreError, translated


def test_a_translated_error_keeps_nothing_of_the_first() -> None:
    with (
        pytest.raises(StoreError, match=r"^Cannot read it$") as caught,
        translated(OSError, to=StoreError, message="Cannot read it"),
    ):
        raise OSError("canary")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_no_frame_of_a_translated_error_keeps_the_first() -> None:
    with pytest.raises(StoreError) as caught, translated(OSError, to=StoreError, message="no"):
        raise OSError("canary")
    frames = [
        frame for frame, _ in walk_tb(caught.value.__traceback__) if frame.f_code.co_filename == ppsyn.errors.__file__
    ]
    assert frames
    assert not any("canary" in repr(value) for frame in frames for value in frame.f_locals.values())


def test_nor_of_one_that_is_being_handled_around_it() -> None:
    def fail() -> None:
        try:
            raise KeyError("canary")
        except KeyError:
            with translated(OSError, to=StoreError, message="no"):
                raise OSError("canary") from None

    with pytest.raises(StoreError) as caught:
        fail()
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_message_may_be_made_from_the_error() -> None:
    with (
        pytest.raises(ConfigError, match=r"^Expected a file: FileNotFoundError$"),
        translated(OSError, to=ConfigError, message=lambda error: f"Expected a file: {type(error).__name__}"),
    ):
        raise FileNotFoundError("canary")


def test_the_first_translation_that_fits_is_the_last() -> None:
    with (
        pytest.raises(StoreError, match="inner"),
        translated((OSError, ValueError), to=ConfigError, message="outer"),
        translated(OSError, to=StoreError, message="inner"),
    ):
        raise OSError


@pytest.mark.parametrize("error", [KeyError("other"), KeyboardInterrupt()])
def test_other_errors_pass(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, translated(OSError, to=StoreError, message="no"):
        raise error
    assert caught.value is error


def test_the_tree_at_the_top_is_the_hierarchy() -> None:
    drawn = dict[str, int]()
    for line in (ppsyn.errors.__doc__ or "").splitlines():
        if found := re.match(r"    ((?:[│ ]   )*)(?:[├└]── )?(\w+Error)\b", line):
            drawn[found[2]] = line.index(found[2]) // 4 - 1
    real = {c.__name__: sum(map(_is_ours, c.__mro__)) - 1 for c in vars(ppsyn.errors).values() if _is_ours(c)}
    assert drawn == real


def _is_ours(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, PPSynError)
