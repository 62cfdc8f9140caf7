"""Run many cases: `python -m fuzzing --cases 5000 --seed 1`, from the folder of tests. What fails is kept, shrunk."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzzing.cases import KINDS, make
from fuzzing.judge import Judge

_TOLD_EVERY = 100
"""Cases, so that who waits sees how it goes."""


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzzing", description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=int(time.time()) // 86_400, help="By default the day.")
    parser.add_argument("--only", type=int, help="One seed of one case, as it was told.")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="Where failing cases are kept.")
    asked = parser.parse_args()
    first = asked.seed * 1_000_000
    seeds = [asked.only] if asked.only is not None else range(first, first + asked.cases)
    ended, failed, slowest, largest, started = Counter(), 0, 0.0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(Path(folder))
        known = set[tuple[str, ...]]()
        for done, seed in enumerate(seeds):
            if done and done % _TOLD_EVERY == 0:
                _say(f"{done} cases in {time.monotonic() - started:.0f} s, {failed} failed")
            case = make(seed, judge.stage)
            verdict = judge.try_out(case)
            slowest, largest = max(slowest, verdict.seconds), max(largest, verdict.megabytes)
            ended[verdict.code] += 1
            if not verdict.faults:
                continue
            failed += 1
            lines = verdict.told.strip().splitlines()[-4:]
            words = [ascii(word)[:40] for word in case.arguments]
            kind = KINDS[seed % len(KINDS)].__name__
            _say(f"{seed} {kind} {verdict.faults} {words} {list(case.files)}\n  {lines}")
            alike = (verdict.faults[0], *lines[-1:], *(lines[-3:-2]))
            if alike in known:
                continue
            known.add(alike)
            asked.out.mkdir(parents=True, exist_ok=True)
            (asked.out / f"{seed}.json").write_text(judge.shrunk(case, verdict.faults[0]).as_json(), encoding="utf-8")
        judge.close()
    seconds = time.monotonic() - started
    codes = ", ".join(f"{count} with {code}" for code, count in sorted(ended.items(), key=str))
    _say(f"{len(seeds)} cases from seed {seeds[0]} in {seconds:.0f} s: {failed} failed. Exit codes: {codes}.")
    _say(f"The slowest took {slowest:.2f} s of processor time, the largest {largest} MB.")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
