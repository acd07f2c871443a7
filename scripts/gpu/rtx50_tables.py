"""What scripts/rtx50_day puts into its report.md behind the day's own sections."""

import statistics


def name_of(point):
    return f"{point['isa']}, ({point['n']}, {point['k']}), M = {point['m']}"


def us_of(point, way):
    return point[way]["us"] if way in point else None


def cell(us):
    return "" if us is None else f"{us:.1f}"


def over(point):
    """Measured over predicted."""
    measured = us_of(point, "as_they_lie")
    return measured / point["predicted"]["us"] if measured and "predicted" in point else None


def aim_cell(point):
    measured, aim = us_of(point, "as_they_lie"), point["aim_us"]
    return "" if aim is None or measured is None else f"{aim:.0f}, {'met' if measured <= aim else 'missed'}"


def line_of(point):
    """A row of the table of times."""
    measured, told = us_of(point, "as_they_lie"), point.get("predicted", {})
    cells = [point["isa"], f"({point['n']}, {point['k']})", str(point["m"]), cell(measured), cell(us_of(point, "prepared"))]
    cells.append(f"{2 * point['n'] * point['k'] * 0.5625 / measured / 1e3:.0f}" if measured else point.get("left_out", ""))
    cells.append(f"{4 * point['m'] * point['n'] * point['k'] / measured / 1e9:.2f}" if measured else "")
    cells.append(f"{told['us']:.1f} ({told['low']:.0f} to {told['high']:.0f})" if told else "")
    cells.append(told.get("longest", "") + (", another plan" if told and not told["same_plan"] else ""))
    cells.append(f"{over(point):.2f}" if over(point) else "")
    cells += [cell(point.get("calibrated_us")), aim_cell(point)]
    return f"| {' | '.join(cells)} |"


def times(report):
    lines = [
        "",
        "## The shapes of docs/kernels/sm120a.md",
        "",
        "Microseconds, A in NVFP4, D in fp16, weights cold; the clock's are predictions with the interval of 90 %, launches of "
        "a stream. Aims are for weights as they lie. Rows of sm80 are the kernels that an A of 16 bits takes.",
        "",
        "| kernel | (N, K) | M | as they lie | prepared | GB/s of weights | PFLOP/s | clock | longest | measured / clock "
        "| clock, calibrated | aim |",
        "|---" * 12 + "|",
        *map(line_of, report["times"]),
    ]
    return lines + (["", f"{report['no_aim'][0].upper()}{report['no_aim'][1:]}."] if "no_aim" in report else [])


def error(points, told):
    """The median of how far the clock is from the measured times, in words."""
    far = [abs(told(point) / us_of(point, "as_they_lie") - 1) for point in points]
    return f"{100 * statistics.median(far):.0f} % over {len(far)}" if far else "no times"


def calibrated(report):
    found = report["calibration"]
    if not found:
        return []
    lines = [
        "",
        "## Calibration",
        "",
        f"Parameters of the clock, from those of `{found['base']}`; `parameters.json` has them all.",
    ]
    lines += ["", "| parameter | before | after | from |", "|---|---|---|---|"]
    lines += [f"| `{one['parameter']}` | {one['before']:.4g} | {one['after']:.4g} | {one['from']} |" for one in found["steps"]]
    points = [point for point in report["times"] if "calibrated_us" in point]
    if points:
        shape = points[0]["n"], points[0]["k"]
        own = [point for point in points if (point["n"], point["k"]) == shape]
        others = [point for point in points if (point["n"], point["k"]) != shape]
        for words, some in ((f"{shape}, fitted to", own), ("the other shape, not fitted to", others)):
            before, after = (
                error(some, told) for told in (lambda one: one["predicted"]["us"], lambda one: one["calibrated_us"])
            )
            lines += ["", f"Median distance of the clock from the times of {words}: {before} before, {after} after."]
    if found["not_probed"]:
        lines += ["", f"Not read by a probe here: {', '.join(f'`{name}`' for name in found['not_probed'])}."]
    return [*lines, "", f"Not calibrated: {found['not_calibrated']}."]


def markdown(report):
    lines = ([] if report["day"] else [f"# {report['gpu']['name']}, {report['date']}"]) + (
        times(report) if report["times"] else []
    )
    lines += calibrated(report)
    if report["left_out"]:
        lines += ["", "## Left out", "", *(f"- left out: {text}" for text in report["left_out"])]
    return "\n".join(lines) + "\n"
