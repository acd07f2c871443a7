"""What the scripts that turn a GPU's numbers into pages share."""

import argparse
import json
import os
import re
import sys
import textwrap

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


def short_time(value):
    """Microseconds in three or four figures."""
    return number(value, 1 if value is not None and value < 100 else 0)


def time_of(point, name):
    return point["results"].get(name, {}).get("median_us")


def ratio(time, base):
    return time / base if time is not None and base else None


def fastest(point, names):
    return min((time for time in (time_of(point, name) for name in names) if time is not None), default=None)


def marked(value, most):
    """In bold where the target is missed; most may be None."""
    if value is None:
        return "–"
    return f"{value:.2f}" if most is None or value <= most else f"**{value:.2f}**"


def kernel_of(config):
    """'skinny 8x32' of a plan's config."""
    found = re.search(r"_(skinny|wgmma|mma)_.*?t(\d+)x(\d+)", config)
    return f"{found[1]} {found[2]}x{found[3]}" if found else "–"


def spread(point):
    return max((r["p90_us"] / r["min_us"] for r in point["results"].values() if "median_us" in r), default=None)


def cells(*values):
    return "| " + " | ".join(values) + " |"


def rule(columns):
    """The line below a table's head."""
    return "|---" * columns + "|"


def wrapped(text, **options):
    return textwrap.wrap(text, LINE, break_on_hyphens=False, **options)


def failures(named_points):
    """A line each; named_points: (where, point)."""
    return [
        f"- {where}, `{name}`: {result['failure']}"
        for where, point in named_points
        for name, result in point["results"].items()
        if "failure" in result
    ]


def facts_line(report, points):
    """What the device, the software and the method were, in a sentence or two."""
    device = report["device"]
    clocks = clock_text([state for point in points for state in point["gpu"]])
    return (
        f"Driver {device['driver'] or 'unknown'}, CUDA {device['cuda_runtime']}, torch {report['torch']}, Triton {report['triton']}, "
        f"{device['num_sms']} SMs, at most {device['max_sm_clock_mhz']} MHz and {device['power_limit_watts']:.0f} W; revision "
        f"{report['revision']}; seed {report['method']['seed']}, {report['method']['rounds']} rounds."
        + (f" {clocks}." if clocks else " The driver reported no clocks.")
    )


def clock_text(states):
    """What the driver said during the measurement, without a full stop; None if it said nothing."""
    if not states:
        return None
    clocks = [state["sm_clock_mhz"] for state in states]
    watts = [state["power_watts"] for state in states]
    reasons = sorted({reason for state in states for reason in state["clock_reasons"]} - {"idle"})
    line = f"SM clock while measuring {min(clocks)} to {max(clocks)} MHz, power {min(watts):.0f} to {max(watts):.0f} W"
    return line + (
        f"; reasons for a lower clock: {', '.join(reasons)}" if reasons else "; no reason for a lower clock reported"
    )


def replace_between_markers(path, name, text):
    with open(path, encoding="utf-8") as file:
        document = file.read()
    begin, end = f"<!-- gpu-table:begin {name} -->", f"<!-- gpu-table:end {name} -->"
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise Unusable(f"{path}: no lines '{begin}' and '{end}'; must have one of each, in this order")
    head, tail = document[: document.index(begin) + len(begin)], document[document.index(end) :]
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(f"{head}\n{text}{tail}")
    os.replace(path + ".part", path)


def replace_summary(path, name, text):
    """With a link to the page that has all numbers, if it is there."""
    if os.path.exists(os.path.join(os.path.dirname(path), "performance", f"{name}.md")):
        text += f"\n[All shapes, all numbers and the plot](performance/{name}.md)\n"
    replace_between_markers(path, name, text)


def pyplot():
    """Matplotlib's pyplot, set so that the same numbers give the same SVG file."""
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


def run(script, doc, kind):
    """A script's command line. kind: program, which writes the numbers; suffix of the page's name; points(report), summary(report),
    page(report), plot(report, path), other(report): a text instead of all these, or None.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("json", help=f"written by bench/peers/{kind.program}.py --json")
    parser.add_argument("--summary", action="store_true", help="print the summary only")
    parser.add_argument("--document", help="a file with the markers of this device; the summary there is replaced")
    parser.add_argument("--plot", help="an SVG file to write")
    parser.add_argument("--print-name", action="store_true", help="print only the name of the device's files")
    arguments = parser.parse_args()
    try:
        report = read_json(arguments.json, kind.program)
        if not kind.points(report):
            raise Unusable(f"{arguments.json}: no points; must have at least one")
        name = short_name(report["device"]["name"]) + kind.suffix
        if arguments.print_name:
            print(name)
            return 0
        text = kind.other(report)
        if text is not None and (arguments.summary or arguments.document or arguments.plot):
            raise Unusable(f"{arguments.json}: numbers of --sweep; must be those of the contestants for a summary or a plot")
        if text is None:
            text = kind.summary(report) if arguments.summary or arguments.document else kind.page(report, name)
        if arguments.plot:
            kind.plot(report, arguments.plot)
        if arguments.document:
            replace_summary(arguments.document, name, text)
        else:
            sys.stdout.write(text)
    except Unusable as error:
        print(f"{script}: {error}", file=sys.stderr)
        return 1
    except (KeyError, TypeError, OSError) as error:
        print(f"{script}: {arguments.json}: {error!r}; must be complete, as {kind.program}.py writes it", file=sys.stderr)
        return 1
    return 0
