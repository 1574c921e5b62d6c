"""The results as a picture."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from launching.case import BUDGETED

if TYPE_CHECKING:
    from pathlib import Path

    from launching.report import Cell, Report

__all__ = ["check_plotting", "plot"]

_COLOURS = {"yardstick": "#8c8c8c", "other": "#7aa6c2", "ours": "#c8553d"}


def check_plotting() -> None:
    """Refuse, before anything is measured, to draw without the library for it.

    Raises
    ------
    SystemExit
        If matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise SystemExit("--plot needs matplotlib: pip install matplotlib")


def plot(report: Report, path: Path) -> None:
    """Draw a bar for each row, with its quartiles: three tensors without and with maps.

    Parameters
    ----------
    report
        What was found.
    path
        The file; its suffix chooses the format.
    """
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # text, not an outline of each letter
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    groups = {subject.name: subject.group for subject in report.subjects}
    panels = [(case, found) for case, found in report.table.items() if case in BUDGETED]
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(7 * len(panels), 6), layout="constrained", squeeze=False
    )
    for axis, (case, found) in zip(axes[0], panels, strict=True):
        _bars(axis, [cell for cell in found.cells if cell.call], groups)
        place = ", in a struct" * case.packed
        axis.set_title(f"{case.tensors} tensors, {case.maps or 'none'} as tensor maps, and a scalar{place}")
        axis.set_xlabel("host time per call, µs (median, quartiles)")
    figure.suptitle(f"{report.machine.device}, {report.machine.date}")
    figure.savefig(path)
    pyplot.close(figure)


def _bars(axis: Any, cells: list[Cell], groups: dict[str, str]) -> None:
    summaries = [cell.call for cell in cells if cell.call]
    medians = [one.median for one in summaries]
    reach = [[one.median - one.low for one in summaries], [one.high - one.median for one in summaries]]
    colours = [_COLOURS[groups[cell.subject]] for cell in cells]
    places = range(len(cells))
    axis.barh(places, medians, xerr=reach, color=colours)
    axis.set_yticks(places, [cell.subject for cell in cells])
    axis.invert_yaxis()
    axis.spines[["top", "right"]].set_visible(False)
    for place, one in zip(places, summaries, strict=True):
        axis.text(one.high, place, f"  {one.median:.2f}", va="center", fontsize=8)
