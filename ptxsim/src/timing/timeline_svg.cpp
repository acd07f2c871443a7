#include "timing/timeline_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ptxsim::timing {
namespace {

constexpr double kWidth = 1200, kLeft = 170, kRow = 16, kTop = 44, kRight = 20, kBottom = 30;
// Okabe and Ito's colours, told apart by colour-blind readers as well.
constexpr const char* kColours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                    "#56b4e9", "#d55e00", "#f0e442", "#999999"};
constexpr const char* kNoStage = "#6b7280";

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe += c;
  }
  return safe;
}

// A step of 1, 2 or 5 that gives about ten marks.
double step_of(double end) {
  const double rough = std::max(end, 1e-6) / 10;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

// Actors that do something that takes time, in the order in which they were made.
std::vector<int> rows_of(const Work& work, const Timeline& line, int& rows) {
  std::vector<int> row(work.actors.size(), -1);
  for (size_t i = 0; i < work.pieces.size(); ++i)
    if (line.pieces[i].end > line.pieces[i].ready) row[work.pieces[i].actor] = 0;
  rows = 0;
  for (int& r : row)
    if (r == 0) r = rows++;
  return row;
}

// From when its slowest server or a fixed time is at work on it; what is queued before is not
// drawn.
double begin_of(const Work& work, const Timeline& line, size_t number) {
  const Piece& p = work.pieces[number];
  const Times& times = line.pieces[number];
  if (p.delay_first || nominal_clk(p.chain) > 0 || p.least_us > 0) return times.ready;
  return times.slowest >= 0 ? line.demands[static_cast<size_t>(times.slowest)].begin : times.served;
}

}  // namespace

std::string timeline_svg(const Work& work, const Timeline& line, const std::string& title) {
  int rows = 0;
  const std::vector<int> row = rows_of(work, line, rows);
  const double scale = (kWidth - kLeft - kRight) / std::max(line.end, 1e-6);
  const double height = kTop + rows * kRow + kBottom;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
      "<text x=\"8\" y=\"18\" font-size=\"13\" fill=\"#111827\">{2}</text>\n",
      kWidth, height, escaped(title));
  for (double t = 0, step = step_of(line.end); t <= line.end; t += step)
    svg += fmt::format(
        "<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#d1d5db\"/>\n"
        "<text x=\"{0:.2f}\" y=\"{3}\" text-anchor=\"middle\" fill=\"#374151\">{4:.4g}</text>\n",
        kLeft + t * scale, kTop - 6, height - kBottom, height - kBottom + 14, t);
  svg +=
      fmt::format("<text x=\"8\" y=\"{}\" fill=\"#374151\">µs from the first wave's start</text>\n",
                  height - kBottom + 14);
  for (size_t a = 0; a < row.size(); ++a)
    if (row[a] >= 0)
      svg +=
          fmt::format("<text x=\"8\" y=\"{:.1f}\" fill=\"#111827\">{}{}</text>\n",
                      kTop + row[a] * kRow + 11, escaped(work.actors[a].name),
                      work.actors[a].sequence == Sequence::kSerial && work.actors[a].role != "warp"
                          ? escaped(" (" + work.actors[a].role + ")")
                          : "");
  for (size_t i = 0; i < work.pieces.size(); ++i) {
    const Piece& p = work.pieces[i];
    const Times& times = line.pieces[i];
    const double begin = begin_of(work, line, i);
    if (row[p.actor] < 0 || times.end <= begin) continue;
    const char* colour =
        p.stage < 0 ? kNoStage : kColours[static_cast<size_t>(p.stage) % std::size(kColours)];
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
        "fill-opacity=\"0.8\"><title>{}{}: {:.3f} to {:.3f} µs</title></rect>\n",
        kLeft + begin * scale, kTop + row[p.actor] * kRow + 2,
        std::max(0.3, (times.end - begin) * scale), kRow - 4, colour, p.what,
        p.stage < 0 ? "" : fmt::format(", stage {}", p.stage), begin, times.end);
  }
  return svg + "</svg>\n";
}

}  // namespace ptxsim::timing
