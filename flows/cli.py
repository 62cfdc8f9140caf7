"""The command line. The commands are in `flows.commands`, by what they are about."""

import click

from flows.commands.accounts import abandon, budget
from flows.commands.benchmark import benchmark
from flows.commands.plan import plan
from flows.commands.quality import private_report, quality
from flows.commands.release import release
from flows.commands.releases import audit, regenerate
from flows.commands.schema import schema
from flows.exits import MEANINGS

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code}  {told}" for code, told in MEANINGS.items())


@click.group(context_settings=_CONTEXT, epilog=_EXIT_CODES)
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
      ppsyn audit out/releases/adult/RUN
      ppsyn regenerate out/releases/adult/RUN --rows 1000000 --seed 7 --out more.parquet
      ppsyn quality out/releases/adult/RUN --rho 0.001
      ppsyn private-report out/releases/adult/RUN
      ppsyn benchmark --mechanisms ppsyn,aim --epsilons 0.1,1
    """


for _command in (schema, plan, release, budget, abandon, audit, regenerate, quality, private_report, benchmark):
    main.add_command(_command)
