"""What can be written as text, and what can be the name of a file. Imports no pydantic, for `ppsyn --help`."""

from ppsyn.schemas.limits import PATH_BYTES, STEP_BYTES


def check_text(text: str) -> None:
    """Refuse what cannot be written as text: bytes of the command line that are not UTF-8 arrive as half characters.

    Raises:
        ValueError: If it has such a half, or a NUL.
    """
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("Expected text in UTF-8, without NUL.")


def check_path(text: str) -> str:
    """The same text, if it can be a path or an address.

    Raises:
        ValueError: If it is too long, or is no text.
    """
    check_text(text)
    data = text.encode()
    if len(data) > PATH_BYTES or any(len(step) > STEP_BYTES for step in data.split(b"/")):
        raise ValueError(
            f"Expected a path or address of at most {PATH_BYTES:,} bytes, and at most {STEP_BYTES} between slashes."
        )
    return text
