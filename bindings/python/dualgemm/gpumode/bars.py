"""A ranking as bars, best first: in characters, and as an SVG that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH, LEFT, RIGHT, TOP, STEP, THICK = 820, 110, 700, 62, 38, 24
COLUMNS = 50
Bar = tuple[str, float]  # name, microseconds


def text_bars(bars: Sequence[Bar]) -> str:
    if not bars:
        return "nothing was measured"
    longest, width = max(value for _, value in bars), max(len(name) for name, _ in bars)
    return "\n".join(
        f"{name:<{width}}  {'#' * max(1, round(COLUMNS * value / longest))} {value:.1f} us" for name, value in bars
    )


def text(x: float, y: float, content: str, size: int = 13, anchor: str = "start", extra: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#222222"{extra}>'
        f"{escape(content)}</text>"
    )


def svg_of(bars: Sequence[Bar], subtitle: str) -> str:
    height = TOP + STEP * max(1, len(bars)) + 16
    longest = max((value for _, value in bars), default=1.0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="Helvetica, Arial, DejaVu Sans, sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        text(20, 26, "NVFP4 dual GEMM: strategies of python/", 17, extra=' font-weight="bold"'),
        text(20, 46, subtitle),
    ]
    for row, (name, value) in enumerate(bars):
        y = TOP + STEP * row
        length = (RIGHT - LEFT) * value / longest
        colour = "#d8500f" if row == 0 else "#1f6fd0"
        lines.append(text(LEFT - 10, y + 17, name, anchor="end"))
        lines.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{THICK}" fill="{colour}"/>')
        lines.append(text(LEFT + length + 8, y + 17, f"{value:.1f} µs"))
    if not bars:
        lines.append(text(LEFT, TOP + 17, "nothing was measured"))
    lines.append("</svg>")
    return "\n".join(lines) + "\n"
