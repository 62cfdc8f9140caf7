"""The end of the page: what was checked, and how anyone can check it again."""

from pydantic import JsonValue

from ppsyn.reports.elements import fold, paragraphs, section, table
from ppsyn.reports.markup import Markup, tag
from ppsyn.reports.released import Released
from ppsyn.reports.words import count, listed, plural
from ppsyn.schemas.validation import ValidationResult


def checks(released: Released) -> Markup:
    """Whether the synthetic table fits its schema."""
    results = released.validation.results
    held = sum(result.success for result in results)
    verdict = "All hold." if held == len(results) else f"{plural(len(results) - held, 'check')} failed."
    rows = [
        (
            result.column or "the table",
            _expected(result),
            tag("span", _word(result.success), class_=_style(result.success)),
        )
        for result in results
    ]
    return section(
        "checks",
        "Checks of the synthetic table",
        tag(
            "p",
            f"The synthetic table was held against its schema, over all rows, with Great Expectations: "
            f"{plural(len(results), 'check')}. {verdict}",
        ),
        fold("Every check", table("What was expected of the synthetic table", ("Column", "Expected", "Holds"), rows)),
    )


def _expected(result: ValidationResult) -> str:
    match result.about:
        case "columns":
            return "It has the columns of the schema, in order"
        case "dtype":
            return f"Its type is {listed(_texts(result.kwargs.get('value_set')))}"
        case "nulls":
            return "No value is missing"
        case "values" if "value_set" in result.kwargs:
            return f"Every value is one of {listed(_texts(result.kwargs['value_set']))}"
        case "values":
            return f"Every value lies from {result.kwargs.get('min_value')} to {result.kwargs.get('max_value')}"


def _texts(values: JsonValue) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else [str(values)]


def _word(success: bool) -> str:
    return "yes" if success else "no"


def _style(success: bool) -> str:
    return "good" if success else "bad"


def audit(released: Released, report: str) -> Markup:
    """How to check the release and to make it again."""
    manifest = released.manifest
    folder = f"releases/{manifest.dataset}/{manifest.run}"
    files = [
        (name, count(said.bytes), tag("code", said.sha256)) for name, said in manifest.files.items() if name != report
    ]
    code = manifest.code
    facts = [
        ("ppsyn", code.ppsyn),
        ("source", tag("code", code.source)),
        ("Python", code.python),
        *code.libraries.items(),
        ("processor", code.machine),
        ("seed of the rows", str(manifest.generation.seed)),
        ("inputs", tag("code", manifest.inputs)),
        ("charges in the account", count(len(released.answers))),
    ]
    return section(
        "audit",
        "How to check it, and how to make it again",
        paragraphs(
            "Nobody has to believe this page. With the folder it came in, and without the private table, anyone can "
            "verify every file, add up the budget, replay every step, fit the model again, draw the same rows, and "
            "make this page again, byte for byte:"
        ),
        tag("pre", tag("code", f"ppsyn audit {folder}\ncd {folder} && sha256sum --check manifest.sha256")),
        paragraphs("More rows of the same model, at no further cost in privacy:"),
        tag("pre", tag("code", f"ppsyn regenerate {folder} --rows 1000000 --seed 7 --out more.parquet")),
        fold(
            "The other files of the release",
            table("Files, with their digests", ("File", "Bytes", "SHA-256"), files, (1,)),
        ),
        fold(
            "What computed it",
            table("Equal code and processors give equal bits", ("What", "Which"), facts),
        ),
    )
