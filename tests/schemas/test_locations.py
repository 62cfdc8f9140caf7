from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ppsyn.schemas.locations import Location


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("out", "local"),
        ("/data/out", "local"),
        ("../out", "local"),
        ("a folder/with spaces", "local"),
        ("s3", "local"),
        ("s3://bucket", "s3"),
        ("s3://bucket/prefix/deep", "s3"),
        ("s3://my.bucket-1/", "s3"),
        ("memory://x", "memory"),
        ("memory://x/prefix", "memory"),
    ],
)
def test_an_address_says_what_it_is(url: str, kind: str) -> None:
    location = Location(url=url)
    found = {"local": location.is_local, "s3": location.is_s3, "memory": location.is_memory}
    assert [name for name, is_it in found.items() if is_it] == [kind]


def test_an_address_alone_is_a_place() -> None:
    assert Location.model_validate("s3://bucket/x") == Location(url="s3://bucket/x")


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"url": ""}, "at least 1 character"),
        ({}, "Field required"),
        ({"url": "s3://"}, "s3://bucket/prefix"),
        ({"url": "s3://b"}, "s3://bucket/prefix"),
        ({"url": "s3://Bucket/x"}, "s3://bucket/prefix"),
        ({"url": "s3:///x"}, "s3://bucket/prefix"),
        ({"url": "s3://bucket/a b"}, "s3://bucket/prefix"),
        ({"url": "s3://user:secret@bucket/x"}, "s3://bucket/prefix"),
        ({"url": "gs://bucket/x"}, "a path, s3:// or memory://"),
        ({"url": "file:///data"}, "a path, s3:// or memory://"),
        ({"url": "out", "endpoint": "http://host"}, "with an s3:// address only"),
        ({"url": "memory://x", "endpoint": "http://host"}, "with an s3:// address only"),
        ({"url": "s3://bucket", "endpoint": "host:9000"}, "http or https address"),
        ({"url": "s3://bucket", "endpoint": "http://user:secret@host"}, "without a user"),
        ({"url": "s3://bucket", "credentials": "lower"}, "match pattern"),
        ({"url": "s3://bucket", "credentials": "A B"}, "match pattern"),
        ({"url": "s3://bucket", "secret_access_key": "x"}, "Extra inputs"),
    ],
)
def test_a_place_that_cannot_be_is_refused_by_its_rule(fields: dict[str, str], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        Location.model_validate(fields)


@pytest.mark.parametrize(
    ("url", "inside"),
    [
        ("/data", "/data/a/b"),
        ("/data/", "/data/a/b"),
        ("s3://bucket", "s3://bucket/a/b"),
        ("s3://bucket/x/", "s3://bucket/x/a/b"),
        ("memory://m", "memory://m/a/b"),
    ],
)
def test_a_place_has_places_inside(url: str, inside: str) -> None:
    assert Location(url=url).child("a/b").url == inside


def test_a_place_inside_has_the_same_keys_and_server() -> None:
    location = Location(url="s3://bucket", endpoint="https://s3.example.org", region="eu-west-1", credentials="OTHER")
    assert location.child("a") == location.model_copy(update={"url": "s3://bucket/a"})


@pytest.mark.parametrize(
    ("url", "seen"), [("out", "/x/y/out"), ("../out", "/x/out"), (".", "/x/y"), ("/abs", "/abs"), ("~", "/x/y/~")]
)
def test_a_path_is_seen_from_the_folder_of_its_file(url: str, seen: str) -> None:
    assert Location(url=url).resolved_against(Path("/x/y")).url == seen


@pytest.mark.parametrize("url", ["s3://bucket/../x", "memory://m"])
def test_other_addresses_are_the_same_from_everywhere(url: str) -> None:
    assert Location(url=url).resolved_against(Path("/x/y")) == Location(url=url)


@given(st.text())
def test_any_text_is_a_place_or_refused(text: str) -> None:
    try:
        location = Location.model_validate(text)
    except ValidationError:
        return
    assert location.url == text


@given(st.text(min_size=1).filter(lambda text: "://" not in text and "\0" not in text))
def test_what_has_no_scheme_is_a_path(text: str) -> None:
    assert Location(url=text).is_local
