"""The command line. The commands are in `flows.commands`, by what they are about."""

import click

from flows.commands.accounts import abandon, budget
from flows.commands.benchmark import benchmark
from flows.commands.release import release
from flows.commands.releases import audit, regenerate

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_CONTEXT)
@click.version_option(package_name="ppsyn")
def main() -> None:
    """Release differentially private synthetic tables.

    \b
    Examples:
      ppsyn release examples/adult/release.yaml
      ppsyn release adult.yaml --set privacy.epsilon=0.5
      ppsyn budget adult
      ppsyn audit out/releases/adult/RUN
      ppsyn regenerate out/releases/adult/RUN --rows 1000000 --seed 7 --out more.parquet
      ppsyn benchmark --mechanisms ppsyn,aim --epsilons 0.1,1

    \b
    Exit codes:
      0  done
      1  a defect of ppsyn
      2  a mistake in the command, the release file, the schema or the table
      3  the account does not have what was asked for
      4  the run cannot be resumed, or another process goes on with it
      5  the audit found something
      6  a store, a database or the Prefect server failed; try again, or resume
      130  interrupted; resume
    """


for _command in (release, budget, abandon, audit, regenerate, benchmark):
    main.add_command(_command)
