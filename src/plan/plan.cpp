// Plan as text: a short name for logs and benches, and an explanation for people.
#include <fmt/format.h>

#include <iterator>

#include "core/problem.hpp"
#include "plan/strategy.hpp"

namespace dualgemm {
namespace {

const char* how_it_works(StrategyId strategy) {
  switch (strategy) {
    case StrategyId::kAuto:
      break;
    case StrategyId::kReference:
      return "the definition, element by element in double precision: slow, obviously right";
    case StrategyId::kTwoPass:
      return "gate product to memory, up product to memory, then the activation joins them; "
             "weights are converted on every call";
    case StrategyId::kCached:
      return "as two_pass, but the weights were converted once by prepare()";
    case StrategyId::kGraph:
      return "a prepared plan replayed without any allocation or set-up";
    case StrategyId::kStreams:
      return "both products at the same time, each on half of the threads or on a stream of its "
             "own, then the activation";
    case StrategyId::kFusedEpilogue:
      return "gate product to memory; the up product's epilogue reads it and writes D";
    case StrategyId::kFusedSequential:
      return "per tile first all of gate, then all of up, one epilogue: A is read twice, nothing "
             "between is stored";
    case StrategyId::kFused:
      return "one pass: A is read once, both accumulators stay in registers, the activation is "
             "applied to the finished tile, only D is written";
    case StrategyId::kFp8:
      return "operands re-quantised to FP8 E4M3: for comparison only, its results differ";
  }
  return "";
}

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

const char* numerics(const Plan& plan) {
  if (plan.strategy == StrategyId::kReference) return "double precision, rounded once to D's type";
  if (plan.strategy == StrategyId::kFp8) return "not exact: operands lose bits to FP8";
  if (plan.device == DeviceKind::kCuda && plan.tile_m == 0) {
    return "operands exact, products added in FP32 in an order of cuBLASLt's choice: the same bits "
           "in every run on one GPU, others for another m";
  }
  if (plan.isa == Isa::kSm90a || plan.isa == Isa::kSm80) {
    return "operands exact in fp16 or bf16, products added in FP32 in the order of the tensor "
           "cores: the bits are the same in every run";
  }
  if (plan.problem.a.type != DataType::kE2M1) {
    return "weights exact; per 16-block 16 FP32 multiply-adds in ascending k and one with its "
           "scale: "
           "the same bits on every instruction set and for any thread count";
  }
  if (plan.isa == Isa::kSm100a) {
    return "16-blocks exact, four of them and the sum added with one truncation to FP32, steps in "
           "ascending k: the same bits for every tile and every m";
  }
  if (plan.isa == Isa::kAmxBf16) {
    return "products exact in bf16, added in FP32 in the order of the hardware: the bits differ "
           "from the other instruction sets";
  }
  return "16-blocks exact in integers, one FP32 rounding a block in ascending k: the same bits on "
         "every instruction set and for any thread count";
}

using Lines = std::back_insert_iterator<std::string>;

void explain_problem(Lines out, const Problem& p) {
  fmt::format_to(out, "problem    D[{} x {}] = {}(alpha_gate A Gate^T) * (alpha_up A Up^T), k = {}",
                 p.m, p.n, name_of(p.act.kind), p.k);
  if (p.grouping == Grouping::kNone && p.l > 1) fmt::format_to(out, ", {} batches", p.l);
  if (p.grouping != Grouping::kNone) {
    fmt::format_to(out, ", {} experts ({})", p.l, name_of(p.grouping));
  }
  const core::ResolvedProblem resolved = core::resolve(p);
  const int64_t weight_bytes = resolved.gate.data_span_bytes(p.l) +
                               resolved.gate.scale_span_bytes(p.l) +
                               resolved.up.data_span_bytes(p.l) + resolved.up.scale_span_bytes(p.l);
  fmt::format_to(out,
                 "\n           A {}, weights e2m1, D {}; {:.3f} GFLOP on {:.3f} MB of weights\n",
                 name_of(p.a.type), name_of(p.d.type), core::flops(p) * 1e-9,
                 static_cast<double>(weight_bytes) * 1e-6);
}

void explain_cuda(Lines out, const Plan& plan) {
  fmt::format_to(out, "device     {}, {}\n", name_of(plan.device), name_of(plan.isa));
  if (plan.tile_m > 0) {
    fmt::format_to(
        out, "tile       {} rows x ({} columns of gate + {} of up) per CTA, {} of k at a time",
        plan.tile_m, plan.tile_n, plan.tile_n, plan.tile_k);
    if (plan.stages > 0) fmt::format_to(out, ", {} stages", plan.stages);
    if (plan.k_warpgroups > 1) fmt::format_to(out, ", {} warpgroups along k", plan.k_warpgroups);
    fmt::format_to(out, "\n");
  } else {
    fmt::format_to(out, "products   two GEMMs of cuBLASLt into FP32\n");
  }
  fmt::format_to(out, "memory     {} bytes of workspace on the device", plan.workspace_bytes);
  if (plan.prepared) {
    fmt::format_to(out, ", {} of prepared weights", plan.prepared_bytes);
  } else if (plan.prepared_bytes > 0) {
    fmt::format_to(out, "; prepare() would hold {} more", plan.prepared_bytes);
  }
  fmt::format_to(out, "\n");
  fmt::format_to(out, "numerics   {}\n", numerics(plan));
}

void explain_choice(Lines out, const Plan& plan) {
  fmt::format_to(out, "strategy   {}: {}\n", name_of(plan.strategy), how_it_works(plan.strategy));
  if (plan.device == DeviceKind::kCuda) return explain_cuda(out, plan);
  fmt::format_to(out, "device     {}, {}, {} thread{}\n", name_of(plan.device), name_of(plan.isa),
                 plan.threads, plan.threads == 1 ? "" : "s");
  if (plan.tile_m > 0) {
    fmt::format_to(out, "regime     {}: {}\n", name_of(plan.regime), why_regime(plan.regime));
    fmt::format_to(out, "tile       {} rows x ({} columns of gate + {} of up)", plan.tile_m,
                   plan.tile_n, plan.tile_n);
    if (plan.tile_k > 0) fmt::format_to(out, ", {} of k decoded at a time", plan.tile_k);
    fmt::format_to(out, "\n");
  }
  fmt::format_to(out, "weights    {}\n",
                 plan.prepared              ? "prepared once with prepare()"
                 : plan.prepared_bytes == 0 ? "unpacked"
                                            : "unpacked; prepare() would save work on every call");
  fmt::format_to(out, "memory     {} bytes of workspace, {} bytes if prepared\n",
                 plan.workspace_bytes, plan.prepared_bytes);
  fmt::format_to(out, "numerics   {}\n", numerics(plan));
}

}  // namespace

std::string Plan::config() const {
  std::string out = fmt::format("{}_{}_{}", name_of(device), name_of(isa), name_of(strategy));
  if (device == DeviceKind::kCuda) {
    if (ctas > 0) out += fmt::format("_c{}_w{}", ctas, k_warpgroups);
    if (tile_m > 0) out += fmt::format("_t{}x{}x{}_s{}", tile_m, tile_n, tile_k, stages);
    out += fmt::format("_{}", name_of(problem.d.type));
    if (prepared) out += "_prepared";
    return out;
  }
  if (tile_m > 0) out += fmt::format("_{}_t{}x{}", name_of(regime), tile_m, tile_n);
  if (tile_k > 0) out += fmt::format("_k{}", tile_k);
  out += fmt::format("_p{}", threads);
  if (prepared) out += "_prepared";
  return out;
}

std::string Plan::explain() const {
  std::string text;
  const Lines out(text);
  fmt::format_to(out, "plan       {}\n", config());
  explain_problem(out, problem);
  explain_choice(out, *this);
  for (const RejectedCandidate& candidate : rejected) {
    const Status& reason = candidate.reason;
    const bool repeats = reason.argument() == candidate.name;
    fmt::format_to(out, "not        {}: {}\n", candidate.name,
                   repeats ? reason.observed() + "; " + reason.rule() : reason.message());
  }
  return text;
}

}  // namespace dualgemm
