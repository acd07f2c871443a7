#include "timing/expansion.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>

namespace ptxsim::timing {
namespace {

// A row fits a statement of this root that has all of these modifiers. The first that fits counts.
// `clk`: of a chain that is none of the latencies. Numbers of instructions and clk of divisions,
// sines, 64-bit products, FP32 roots and conversions to integers are what rates and chains of
// microbenchmarks.json take on an H100, less the loop around them (the root's rate excepted); a
// plain instruction is one. The others, of which no microbenchmark is, are assumed.
struct Row {
  std::string_view root;
  std::initializer_list<std::string_view> modifiers;
  double slots;
  Latency latency;
  double times;  // of that latency
  double clk = 0;
  double functions = 0, doubles = 0;
};
using enum Latency;

const Row kRows[] = {
    // Nothing: registers are renamed, addresses are constants, parameters lie in a constant bank.
    {"mov", {}, 0, kAlu, 0},
    {"cvta", {}, 0, kAlu, 0},
    {"ld", {"param"}, 0, kAlu, 0},
    {"ld", {"const"}, 1, kAlu, 2},
    {"createpolicy", {}, 1, kAlu, 1},

    // FP64 has a unit of its own. Before the rows that do not look at the type.
    {"add", {"f64"}, 1, kDouble, 1, 0, 0, 1},
    {"sub", {"f64"}, 1, kDouble, 1, 0, 0, 1},
    {"mul", {"f64"}, 1, kDouble, 1, 0, 0, 1},
    {"fma", {"f64"}, 1, kDouble, 1, 0, 0, 1},
    {"mad", {"f64"}, 1, kDouble, 1, 0, 0, 1},
    {"min", {"f64"}, 3, kDouble, 1, 8, 0, 1},
    {"max", {"f64"}, 3, kDouble, 1, 8, 0, 1},
    {"setp", {"f64"}, 1, kDouble, 1, 0, 0, 1},
    {"div", {"f64"}, 18, kDouble, 8, 60, 1, 8},
    {"rcp", {"f64"}, 9, kDouble, 5, 30, 1, 5},
    {"sqrt", {"f64"}, 14, kDouble, 8, 40, 1, 8},
    {"rsqrt", {"f64"}, 10, kDouble, 5, 30, 1, 5},
    {"cvt", {"f64"}, 1, kFunction, 1, 0, 1},

    // Division, roots and functions.
    {"div", {"rn", "f32"}, 17, kFma, 6, 35, 2},
    {"div", {"full", "f32"}, 5, kFunction, 1, 14, 1},
    {"div", {"approx", "f32"}, 4, kFunction, 1, 9, 1},
    {"div", {"s64"}, 140, kAlu, 0, 340, 2},
    {"rem", {"s64"}, 140, kAlu, 0, 340, 2},
    {"div", {"u64"}, 130, kAlu, 0, 310, 2},
    {"rem", {"u64"}, 130, kAlu, 0, 310, 2},
    {"div", {"s32"}, 32, kAlu, 0, 128, 2},
    {"rem", {"s32"}, 32, kAlu, 0, 128, 2},
    {"div", {}, 20, kAlu, 0, 100, 2},
    {"rem", {}, 20, kAlu, 0, 100, 2},
    {"sqrt", {"rn"}, 14, kFma, 4, 42, 1},
    {"sqrt", {"approx"}, 4, kFunction, 1, 12, 1},
    {"rcp", {"rn"}, 6, kFma, 3, 26, 1},
    {"rsqrt", {"approx", "ftz"}, 1, kFunction, 1, 0, 1},
    {"rsqrt", {}, 4, kFunction, 1, 12, 1},
    {"rcp", {}, 1, kFunction, 1, 0, 1},
    {"ex2", {"ftz"}, 1, kFunction, 1, 0, 1},
    {"ex2", {"f16"}, 1, kFunction, 1, 0, 1},
    {"ex2", {"f16x2"}, 2, kFunction, 1, 4, 2},
    {"ex2", {}, 4, kFunction, 1, 12, 1},
    {"lg2", {"ftz"}, 1, kFunction, 1, 0, 1},
    {"lg2", {}, 4, kFunction, 1, 12, 1},
    {"sin", {}, 2, kFunction, 1, 4, 1},
    {"cos", {}, 2, kFunction, 1, 4, 1},
    {"tanh", {}, 1, kFunction, 1, 0, 1},

    // FP32 and 16 bits.
    {"add", {"f32"}, 1, kFma, 1},
    {"sub", {"f32"}, 1, kFma, 1},
    {"mul", {"f32"}, 1, kFma, 1},
    {"fma", {"f16x2"}, 1.8, kFma, 1.2},
    {"fma", {"bf16x2"}, 1.8, kFma, 1.2},
    {"fma", {}, 1, kFma, 1},
    {"mad", {"f32"}, 1, kFma, 1},
    {"add", {"f16x2"}, 1.8, kFma, 1.2},
    {"mul", {"f16x2"}, 1.8, kFma, 1.2},
    {"add", {"bf16x2"}, 1.8, kFma, 1.2},
    {"mul", {"bf16x2"}, 1.8, kFma, 1.2},

    // 64-bit integers are made of 32-bit ones; an address is one instruction with its product.
    {"mul", {"lo", "s64"}, 6, kFma, 3},
    {"mul", {"lo", "u64"}, 6, kFma, 3},
    {"mad", {"lo", "s64"}, 6, kFma, 3, 2},
    {"mad", {"lo", "u64"}, 6, kFma, 3, 2},
    {"mul", {"hi", "s64"}, 8, kFma, 6},
    {"mul", {"hi", "u64"}, 8, kFma, 6},
    {"mul", {"hi"}, 2, kFma, 1, 2},
    {"mul", {"wide"}, 2, kFma, 1},
    {"mad", {"wide"}, 2, kFma, 1},
    {"mul", {}, 2, kFma, 1},
    {"mad", {}, 2, kFma, 1},
    {"mul24", {}, 2, kFma, 1},
    {"mad24", {}, 2, kFma, 1},
    {"dp4a", {}, 2, kFma, 1},
    {"add", {"s64"}, 1, kAlu, 1},
    {"add", {"u64"}, 1, kAlu, 1},
    {"sub", {"s64"}, 2, kAlu, 2},
    {"sub", {"u64"}, 2, kAlu, 2},
    {"shl", {"b64"}, 2.4, kAlu, 1},
    {"shr", {"s64"}, 2, kAlu, 1},
    {"shr", {"u64"}, 2, kAlu, 1},
    {"and", {"b64"}, 2.4, kAlu, 1},
    {"or", {"b64"}, 2.4, kAlu, 1},
    {"xor", {"b64"}, 2.4, kAlu, 1},
    {"setp", {"s64"}, 2, kAlu, 2},
    {"setp", {"u64"}, 2, kAlu, 2},
    {"setp", {"b64"}, 2, kAlu, 2},
    {"selp", {"b64"}, 2, kAlu, 1},
    {"selp", {"s64"}, 2, kAlu, 1},

    // Conversions: to integers they are the special function unit's; between integers, of the
    // halves of 64 bits, nothing; to and from 16 bits and less one instruction.
    {"cvt", {"rzi"}, 1, kFunction, 1, 0, 1},
    {"cvt", {"rni"}, 1, kFunction, 1, 0, 1},
    {"cvt", {"rmi"}, 1, kFunction, 1, 0, 1},
    {"cvt", {"rpi"}, 1, kFunction, 1, 0, 1},
    {"cvt", {"u64", "u32"}, 0, kAlu, 0},
    {"cvt", {"u32", "u64"}, 0, kAlu, 0},
    {"cvt", {"s64", "s32"}, 1, kAlu, 1},
    {"cvt", {}, 1, kAlu, 1},

    // Integers. Logic, shifts and comparisons have a unit of 16 lanes, for a part of which ptxas
    // takes the multiply-add's.
    {"add", {}, 1, kAlu, 1},
    {"sub", {}, 1, kAlu, 1},
    {"addc", {}, 1, kAlu, 1},
    {"subc", {}, 1, kAlu, 1},
    {"and", {}, 1.2, kAlu, 1},
    {"or", {}, 1.2, kAlu, 1},
    {"xor", {}, 1.2, kAlu, 1},
    {"not", {}, 1.2, kAlu, 1},
    {"lop3", {}, 1.2, kAlu, 1},
    {"shl", {}, 1.2, kAlu, 1},
    {"shr", {}, 1.2, kAlu, 1},
    {"shf", {}, 1.2, kAlu, 1},
    {"prmt", {}, 1.2, kAlu, 1},
    {"bfe", {}, 2, kAlu, 2},
    {"bfi", {}, 2, kAlu, 2},
    {"bfind", {}, 2, kFunction, 1, 0, 1},
    {"clz", {}, 2, kFunction, 1, 4, 1},
    {"popc", {}, 1, kFunction, 1, 0, 1},
    {"brev", {}, 1, kFunction, 1, 0, 1},
    {"min", {}, 1.2, kAlu, 1},
    {"max", {}, 1.2, kAlu, 1},
    {"abs", {}, 1, kAlu, 1},
    {"neg", {}, 1, kAlu, 1},
    {"sad", {}, 2, kAlu, 2},
    {"setp", {}, 1.2, kAlu, 1},
    {"set", {}, 1, kAlu, 1},
    {"selp", {}, 1.2, kAlu, 1},
    {"slct", {}, 2, kAlu, 2},
    {"copysign", {}, 1, kAlu, 1},
    {"testp", {}, 1, kAlu, 1},

    // Exchange within a warp.
    {"shfl", {}, 1, kShuffle, 1},
    {"vote", {}, 1, kVote, 1},
    {"match", {}, 8, kVote, 1, 60},
    {"redux", {}, 1, kVote, 1},
    {"activemask", {}, 1, kAlu, 1},
    {"elect", {}, 1, kVote, 1},

    // Memory, barriers, tensor cores, control: what they take besides their slot, events say.
    {"ld", {}, 1, kAlu, 0},
    {"ldu", {}, 1, kAlu, 0},
    {"st", {}, 1, kAlu, 0},
    {"atom", {}, 1, kAlu, 0},
    {"red", {}, 1, kAlu, 0},
    {"ldmatrix", {}, 1, kAlu, 0},
    {"stmatrix", {}, 1, kAlu, 0},
    {"cp", {}, 1, kAlu, 0},
    {"prefetch", {}, 1, kAlu, 0},
    {"prefetchu", {}, 1, kAlu, 0},
    {"discard", {}, 1, kAlu, 0},
    {"applypriority", {}, 1, kAlu, 0},
    {"isspacep", {}, 1, kAlu, 1},
    {"mapa", {}, 1, kAlu, 1},
    {"getctarank", {}, 1, kAlu, 1},
    {"bar", {}, 1, kAlu, 0},
    {"barrier", {}, 1, kAlu, 0},
    {"mbarrier", {}, 1, kAlu, 1},
    {"fence", {}, 1, kAlu, 0},
    {"membar", {}, 1, kAlu, 0},
    {"mma", {}, 1, kMmaSync, 0},
    {"wgmma", {}, 1, kAlu, 0},
    {"tcgen05", {}, 1, kAlu, 0},
    {"griddepcontrol", {}, 1, kAlu, 0},
    {"clusterlaunchcontrol", {}, 1, kAlu, 1},
    {"setmaxnreg", {}, 1, kAlu, 0},
    {"bra", {}, 2, kAlu, 0},
    {"brx", {}, 2, kAlu, 1},
    {"call", {}, 2, kBranch, 1},
    {"ret", {}, 1, kAlu, 0},
    {"exit", {}, 1, kAlu, 0},
    {"trap", {}, 1, kAlu, 0},
    {"nanosleep", {}, 1, kAlu, 0},
    {"pmevent", {}, 0, kAlu, 0},
};

struct FormRow {
  std::string_view root;
  std::initializer_list<std::string_view> modifiers;
  Form form;
};
const FormRow kForms[] = {
    {"add", {"s32"}, Form::kSum},    {"add", {"u32"}, Form::kSum},
    {"add", {"s64"}, Form::kSum},    {"add", {"u64"}, Form::kSum},
    {"shl", {}, Form::kProduct},     {"mul", {"wide"}, Form::kProduct},
    {"and", {"b32"}, Form::kLogic},  {"or", {"b32"}, Form::kLogic},
    {"xor", {"b32"}, Form::kLogic},  {"not", {"b32"}, Form::kLogic},
    {"setp", {}, Form::kComparison}, {"div", {}, Form::kBranches},
    {"rem", {}, Form::kBranches},    {"vote", {}, Form::kBranches},
    {"ld", {}, Form::kLoad},         {"clusterlaunchcontrol", {}, Form::kTakesWork},
};

template <class AnyRow>
bool fits(const AnyRow& row, const Statement& s) {
  return row.root == s.root &&
         std::all_of(row.modifiers.begin(), row.modifiers.end(), [&](std::string_view wanted) {
           return std::find(s.modifiers.begin(), s.modifiers.end(), wanted) != s.modifiers.end();
         });
}

}  // namespace

Form form_of(const Statement& s) {
  const auto row = std::find_if(std::begin(kForms), std::end(kForms),
                                [&](const FormRow& r) { return fits(r, s); });
  return row == std::end(kForms) ? Form::kOther : row->form;
}

Expansion expansion_of(const Statement& s) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return fits(r, s); });
  Expansion e;
  if (row == std::end(kRows)) {
    e.chain.add(Latency::kAlu);
    e.is_modelled = false;
    return e;
  }
  e.slots = row->slots;
  e.functions = row->functions;
  e.doubles = row->doubles;
  e.exchanges = row->latency == Latency::kShuffle ? 1 : 0;
  e.chain.add(row->latency, row->times).add(Latency::kClk, row->clk);
  return e;
}

}  // namespace ptxsim::timing
