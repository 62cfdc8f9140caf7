"""The command line. The commands are in `ppsyn.flows.cli`, by what they are about."""

import click
from typing_extensions import override

from ppsyn.flows.cli.accounts import abandon, budget, clean, move, retire
from ppsyn.flows.cli.benchmark import benchmark
from ppsyn.flows.cli.keys import head, keys, sign
from ppsyn.flows.cli.output import MEANINGS
from ppsyn.flows.cli.overview import overview
from ppsyn.flows.cli.plan import plan
from ppsyn.flows.cli.policy import policy
from ppsyn.flows.cli.quality import private_report, quality
from ppsyn.flows.cli.record import record
from ppsyn.flows.cli.release import release
from ppsyn.flows.cli.releases import audit, regenerate
from ppsyn.flows.cli.schema import schema
from ppsyn.flows.cli.selftest import selftest
from ppsyn.schemas.limits import MAX_CHARACTERS_SHOWN
from ppsyn.schemas.texts import check_text

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning}" for code, meaning in MEANINGS.items())


class _Words(click.Group):
    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See that all words are text, before anything looks for files of such names."""
        for word in args:
            try:
                check_text(word)
            except ValueError as error:
                raise click.UsageError(f"{word[:MAX_CHARACTERS_SHOWN]!a}: {error}") from None
        return super().parse_args(ctx, args)


@click.group(cls=_Words, context_settings=_CONTEXT, epilog=_EXIT_CODES)
@click.version_option(package_name="ppsyn")
def main() -> None:
    """Release differentially private synthetic tables.

    \b
    Examples:
      ppsyn schema draft people.parquet --out people.yaml
      ppsyn plan examples/adult/release.yaml
      ppsyn release examples/adult/release.yaml
      ppsyn release adult.yaml --set privacy.epsilon=0.5
      ppsyn budget adult
      ppsyn overview --html overview.html
      ppsyn policy set adult policy.yaml
      ppsyn keys new ana
      ppsyn audit out/releases/adult/latest
      ppsyn regenerate out/releases/adult/RUN --rows 1000000 --seed 7 --out more.parquet
      ppsyn record out/releases/adult/RUN
      ppsyn quality out/releases/adult/RUN --rho 0.001
      ppsyn private-report out/releases/adult/RUN
      ppsyn benchmark --mechanisms ppsyn,aim --epsilons 0.1,1
      ppsyn selftest privacy
    """


for _command in (
    schema,
    plan,
    release,
    budget,
    overview,
    policy,
    keys,
    sign,
    head,
    abandon,
    clean,
    move,
    audit,
    regenerate,
    record,
    retire,
    quality,
    private_report,
    benchmark,
    selftest,
):
    main.add_command(_command)
