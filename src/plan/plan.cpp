// Plan as text: a short name for logs and benches, and an explanation for people.
#include <fmt/format.h>

#include <iterator>

#include "core/problem.hpp"
#include "plan/strategy.hpp"
#include "plan/thread_count.hpp"

namespace dualgemm {
namespace {

const char* why_regime(Regime regime) {
  switch (regime) {
    case Regime::kGemv:
      return "very few rows: reading the weights costs the most, so they are read once, in "
             "place";
    case Regime::kMultiRow:
      return "few rows: every decoded weight serves all rows before the next one is decoded";
    case Regime::kTile:
      return "many rows: weights are unpacked into cache-sized panels that all row tiles reuse";
  }
  return "";
}

const char* unpacked_weights(Preparation preparation) {
  return preparation == Preparation::kNone ? "unpacked"
                                           : "unpacked; prepare() would save work on every call";
}

using Lines = std::back_insert_iterator<std::string>;

void explain_problem(Lines out, const Problem& p) {
  const bool biased = p.bias != BiasType::kNone;
  fmt::format_to(
      out, "problem    D[{} x {}] = {}(alpha_gate A Gate^T{}) * (alpha_up A Up^T{}), k = {}", p.m,
      p.n, name_of(p.act.kind), biased ? " + bias_gate" : "", biased ? " + bias_up" : "", p.k);
  if (p.grouping == Grouping::kNone && p.l > 1) fmt::format_to(out, ", {} batches", p.l);
  if (p.grouping != Grouping::kNone) {
    fmt::format_to(out, ", {} experts ({})", p.l, name_of(p.grouping));
  }
  const core::ResolvedProblem resolved = core::resolve(p);
  const int64_t weight_bytes = resolved.gate.data_span_bytes(p.l) +
                               resolved.gate.scale_span_bytes(p.l) +
                               resolved.up.data_span_bytes(p.l) + resolved.up.scale_span_bytes(p.l);
  fmt::format_to(
      out, "\n           A {}, weights e2m1, {}D {}; {:.3f} GFLOP on {:.3f} MB of weights\n",
      name_of(p.a.type), biased ? fmt::format("biases {}, ", name_of(p.bias)) : "",
      name_of(p.d.type), core::flops(p) * 1e-9, static_cast<double>(weight_bytes) * 1e-6);
}

void explain_cuda(Lines out, const Plan& plan) {
  const KernelShape& shape = plan.shape;
  fmt::format_to(out, "device     {}, {}\n", name_of(plan.device), name_of(plan.isa));
  fmt::format_to(out, "kernel     {}", plan.kernel);
  if (shape.tile_m > 0) {
    fmt::format_to(out, ": {} rows x ({} columns of Gate + {} of Up) per CTA, {} of k at a time",
                   shape.tile_m, shape.tile_n, shape.tile_n, shape.tile_k);
  }
  if (shape.stages > 0) fmt::format_to(out, ", {} stages", shape.stages);
  if (shape.k_warpgroups > 1) fmt::format_to(out, ", k in {} parts", shape.k_warpgroups);
  fmt::format_to(out, "\n");
  fmt::format_to(out, "memory     {} bytes of workspace on the device", plan.workspace_bytes);
  if (plan.prepared) {
    fmt::format_to(out, ", {} of prepared weights", plan.prepared_bytes);
  } else if (plan.preparation != Preparation::kNone) {
    fmt::format_to(out, "; prepare() would hold {} more", plan.prepared_bytes);
  }
  fmt::format_to(out, "\n");
}

void explain_cpu(Lines out, const Plan& plan) {
  const KernelShape& shape = plan.shape;
  fmt::format_to(out, "device     {}, {}, {} thread{}\n", name_of(plan.device), name_of(plan.isa),
                 plan.threads, plan.threads == 1 ? "" : "s");
  fmt::format_to(out,
                 "threads    about {:.3f} ms of work for one; each further one needs {:.3f} ms, so "
                 "that waking it pays\n",
                 1e-3 * plan::one_thread_microseconds(plan.problem, plan.strategy, plan.isa),
                 1e-3 * plan::kThreadMicroseconds);
  if (shape.tile_m > 0) {
    fmt::format_to(out, "regime     {}: {}\n", name_of(plan.regime), why_regime(plan.regime));
    fmt::format_to(out, "tile       {} rows x ({} columns of Gate + {} of Up)", shape.tile_m,
                   shape.tile_n, shape.tile_n);
    if (shape.tile_k > 0) fmt::format_to(out, ", {} of k decoded at a time", shape.tile_k);
    fmt::format_to(out, "\n");
  }
  fmt::format_to(
      out, "weights    {}\n",
      plan.prepared ? "prepared once with prepare()" : unpacked_weights(plan.preparation));
  fmt::format_to(out, "memory     {} bytes of workspace, {} bytes if prepared\n",
                 plan.workspace_bytes, plan.prepared_bytes);
}

}  // namespace

std::string Plan::config() const {
  std::string out = fmt::format("{}_{}_{}", name_of(device), name_of(isa), name_of(strategy));
  if (device == DeviceKind::kCuda) {
    out += "_" + kernel;
    if (shape.ctas > 0) out += fmt::format("_c{}", shape.ctas);
    if (shape.k_warpgroups > 0) out += fmt::format("_w{}", shape.k_warpgroups);
    if (shape.tile_m > 0)
      out += fmt::format("_t{}x{}x{}", shape.tile_m, shape.tile_n, shape.tile_k);
    if (shape.stages > 0) out += fmt::format("_s{}", shape.stages);
    out += fmt::format("_{}", name_of(problem.d.type));
    if (prepared) out += "_prepared";
    return out;
  }
  if (shape.tile_m > 0) out += fmt::format("_{}_t{}x{}", kernel, shape.tile_m, shape.tile_n);
  if (shape.tile_k > 0) out += fmt::format("_k{}", shape.tile_k);
  out += fmt::format("_p{}", threads);
  if (prepared) out += "_prepared";
  return out;
}

std::string Plan::explain() const {
  std::string text;
  const Lines out(text);
  fmt::format_to(out, "plan       {}\n", config());
  explain_problem(out, problem);
  fmt::format_to(out, "strategy   {}: {}\n", name_of(strategy), how_it_works);
  if (device == DeviceKind::kCuda) {
    explain_cuda(out, *this);
  } else {
    explain_cpu(out, *this);
  }
  fmt::format_to(out, "numerics   {}\n", numerics);
  for (const RejectedCandidate& candidate : rejected) {
    const Status& reason = candidate.reason;
    const bool repeats = reason.argument() == candidate.name;
    fmt::format_to(out, "not        {}: {}\n", candidate.name,
                   repeats ? reason.observed() + "; " + reason.rule() : reason.message());
  }
  return text;
}

}  // namespace dualgemm
