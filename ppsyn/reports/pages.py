"""Fill the templates: a page is one file that needs no other, no script and no network. Equal data give equal bytes."""

from collections.abc import Callable
from functools import cache
from typing import cast

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from ppsyn.reports import formatting

_FILTERS = (
    formatting.amount,
    formatting.count,
    formatting.exact_percent,
    formatting.join_names,
    formatting.marginal_name,
    formatting.percent,
    formatting.plural,
    formatting.probability,
)


def render_page(template: str, page: object, package: str = "ppsyn.reports") -> bytes:
    """A finished page. Every text is escaped; only charts and the templates themselves hold markup.

    Args:
        template: The name of its template.
        page: What the template shows, under the name `page`.
        package: Where the template is; it may extend and import those of `ppsyn.reports`.
    """
    return _environment(package).get_template(template).render(page=page).encode()


@cache
def _environment(package: str) -> Environment:
    packages = dict.fromkeys((package, "ppsyn.reports"))
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = cast(dict[str, Callable[..., str]], environment.filters)
    filters.update({function.__name__: function for function in _FILTERS})
    return environment
