"""What names of columns tell of rules."""

import pytest

from ppsyn.schema_draft.relations import relations


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        (["education-num", "education"], ["education-num: follows: {by: map, of: education, to: {...}}"]),
        (["JobGroup", "Job"], ["JobGroup: follows: {by: group, of: Job, groups: {...}}"]),
        (["state", "county"], ["state: follows: {by: group, of: county, groups: {...}}"]),
        (["birth_city", "work_state"], []),
        (["stay_end", "stay_start"], ["rules: [{name: stay_start before stay_end, order: [stay_start, stay_end]}]"]),
        (["age", "sex", "number", "end"], []),
        (["", "-", "num"], []),
    ],
)
def test_names_tell_of_rules(names: list[str], lines: list[str]) -> None:
    assert relations(names) == lines
