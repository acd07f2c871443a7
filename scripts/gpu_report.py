"""What the scripts that turn a GPU's numbers into pages share."""
import json
import os
import re

LINE = 118  # columns of a line of prose


class Unusable(Exception):
    """An input with a message of the pattern 'what: observed; rule'."""


def read_json(path, program):
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: {error}; must be JSON written by {program}") from error
    if not isinstance(report, dict) or report.get("program") != program:
        raise Unusable(f"{path}: program {report.get('program') if isinstance(report, dict) else None}; must be {program}")
    return report


def short_name(device):
    """'NVIDIA H200' -> 'h200'."""
    return re.sub(r"[^a-z0-9]+", "_", device.lower().replace("nvidia", "").strip()).strip("_")


def number(value, digits=1):
    if value is None:
        return "–"
    return f"{value:.{digits}f}"


def microseconds(timing):
    value = timing.get("median_us")
    return number(value, 2 if value is not None and value < 100 else 1)


def clock_text(states):
    """Of what the driver said during the measurement, without a full stop; None if it said nothing."""
    if not states:
        return None
    clocks = [state["sm_clock_mhz"] for state in states]
    watts = [state["power_watts"] for state in states]
    reasons = sorted({reason for state in states for reason in state["clock_reasons"]} - {"idle"})
    line = f"SM clock while measuring {min(clocks)} to {max(clocks)} MHz, power {min(watts):.0f} to {max(watts):.0f} W"
    return line + (f"; reasons for a lower clock: {', '.join(reasons)}" if reasons else "; no reason for a lower clock reported")


def replace_between_markers(path, name, text):
    with open(path, encoding="utf-8") as file:
        document = file.read()
    begin, end = f"<!-- gpu-table:begin {name} -->", f"<!-- gpu-table:end {name} -->"
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise Unusable(f"{path}: no lines '{begin}' and '{end}'; must have one of each, in this order")
    head, tail = document[:document.index(begin) + len(begin)], document[document.index(end):]
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(f"{head}\n{text}{tail}")
    os.replace(path + ".part", path)


def replace_summary(path, name, text):
    """With a link to the page that has all numbers, if it is there."""
    if os.path.exists(os.path.join(os.path.dirname(path), "performance", f"{name}.md")):
        text += f"\n[All shapes, all numbers and the plot](performance/{name}.md)\n"
    replace_between_markers(path, name, text)


def pyplot():
    """Of matplotlib, so that the same numbers give the same SVG file."""
    try:
        import matplotlib
    except ImportError as error:
        raise Unusable(f"matplotlib: {error}; --plot needs it (scripts/install_deps plot)") from error
    matplotlib.use("svg")
    from matplotlib import pyplot as plots

    matplotlib.rcParams["svg.hashsalt"] = "dualgemm"
    return plots


def save_svg(figure, path):
    figure.tight_layout()
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
