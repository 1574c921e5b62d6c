"""Host time of one kernel launch: ours beside yardsticks and other launchers, in one run.

Needs a GPU; without one it says so and ends with status 77. ``--simulate`` runs everything of ours on the simulated
driver instead, to see that the benchmark itself works: its times say nothing. ``--pieces`` times the parts that a
Python launcher is made of. The status is 1 if a budget is not kept, or something of ours did not work.
"""

from __future__ import annotations

import argparse
import sys

from launching.case import CASES
from launching.machine import Machine
from launching.options import new_file, positive
from launching.others import OTHERS
from launching.ours import our_subjects
from launching.pieces import pieces_report
from launching.plot import check_plotting, plot
from launching.processes import merged, reports_of
from launching.report import Report, column
from launching.stage import Device, Stage, enter_device
from launching.subject import Subject, prepare
from launching.timing import Rounds, interleave
from launching.yardsticks import YARDSTICKS

NO_GPU = 77
"""The status of a program that cannot do here what it is for."""


def measure_all(device: Device, plan: Rounds, subjects: tuple[Subject, ...]) -> Report:
    """Make every subject ready for every case, then measure them in turn."""
    stages = [Stage(case, device) for case in CASES]  # kept: some hold nothing but a tensor's address
    ready = {stage.case: prepare(subjects, stage) for stage in stages}
    samples = interleave({case: found.trials for case, found in ready.items()}, device.synchronize, plan)
    table = {case: column(subjects, samples[case], found.absent) for case, found in ready.items()}
    return Report(Machine.here(device), plan, subjects, table)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=positive, help="samples of each launcher (101; 15 with --quick)")
    parser.add_argument("--launches", type=positive, default=200, help="launches of one sample, at most 256")
    parser.add_argument(
        "--processes",
        type=positive,
        default=1,
        help="so many, one after another; budgets are of their median",
    )
    parser.add_argument("--quick", action="store_true", help="few rounds: a first impression")
    parser.add_argument("--simulate", action="store_true", help="run ours on the simulated driver")
    parser.add_argument("--pieces", action="store_true", help="time the parts of a Python launcher instead")
    parser.add_argument("--json", type=new_file, help="write the report to this file")
    parser.add_argument("--markdown", type=new_file, help="write the tables to this file")
    parser.add_argument(
        "--plot", type=new_file, help="draw three tensors, without and with maps, into this SVG"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    options = parse(arguments)
    if options.plot:
        check_plotting()
    plan = Rounds(options.rounds or (15 if options.quick else 101), options.launches)
    subjects = (*YARDSTICKS, *OTHERS, *our_subjects())
    if options.processes > 1 and not options.pieces:
        words = [f"--rounds={plan.rounds}", f"--launches={plan.launches}", *["--simulate"] * options.simulate]
        reports = reports_of(__file__, words, options.processes)
        return publish(merged(reports, plan, subjects, CASES), options)
    with enter_device(simulate=options.simulate) as device:
        if options.pieces:
            print(pieces_report(device, plan))
            return 0
        if device is None:
            print(
                "no GPU that torch can use: launches cannot be timed here; see --simulate, --pieces",
                file=sys.stderr,
            )
            return NO_GPU
        report = measure_all(device, plan, subjects)
    return publish(report, options)


def publish(report: Report, options: argparse.Namespace) -> int:
    """Print the report, write the files that are asked for, and return the exit status."""
    print(report.markdown())
    for path, text in ((options.json, report.json()), (options.markdown, report.markdown())):
        if path:
            path.write_text(text, "utf-8")
    if options.plot:
        plot(report, options.plot)
    return 0 if all(verdict.ok for verdict in report.verdicts) and not report.failures else 1


if __name__ == "__main__":
    sys.exit(main())
