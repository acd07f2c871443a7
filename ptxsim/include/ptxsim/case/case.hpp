// A launch described in JSON: what `ptxsim run --case` takes, and what test kernels carry in lines
// that begin with
// "//! ". docs/cases.md has the schema. Unknown keys and values that do not fit are errors that
// name the key.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxsim/ptxsim.hpp"
#include "ptxsim/suppressions.hpp"
#include "ptxsim/tensor_map.hpp"

namespace ptxsim {

// Element types of buffers: integers, or floating-point values given by number (f32, f64) or by
// pattern (f16, bf16).
enum class ElementType : uint8_t {
  kU8,
  kS8,
  kU16,
  kS16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kBf16,
  kF32,
  kF64
};
unsigned bytes_of(ElementType type);

struct CaseBuffer {
  std::string name;
  Place place;  // in the case
  ElementType type = ElementType::kU8;
  uint64_t address = 0;
  std::vector<std::byte> data;
  bool initialized = true;
  bool read_only = false;
  std::vector<std::optional<uint64_t>> expect;  // patterns; nothing: any value
  double absolute = 0, relative = 0;  // tolerance of `expect` for f32 and f64; 0: equal patterns
};

// |d - value| <= bound for every element of a batch of matrices; elements between the rows must
// stay untouched.
struct CaseMatrix {
  std::string buffer;
  ElementType type = ElementType::kF32;
  uint64_t batches = 1, rows = 0, cols = 0, row_stride = 0, batch_stride = 0;  // elements
  std::vector<double> value, bound;
};

// One of several launches of a case, which follow each other in one stream.
struct CaseLaunch {
  Place place;         // in the case
  std::string kernel;  // another PTX file, and
  std::string text;    // what it holds; both empty: the file that the case is for
  std::string entry;
  Launch launch;
  bool overlaps =
      false;  // programmatic dependent launch: may start before those ahead of it have ended
  std::shared_ptr<const Program> program;  // load_launches() gives it to those of other entries
};

struct Case {
  // The launch that the case is about; among several, the last one of the kernel's file, or
  // choose_entry()'s.
  std::string entry;
  Launch launch;
  std::vector<CaseLaunch> launches;  // all of them, in order, where the case lists them
  std::vector<CaseBuffer> buffers;
  std::vector<CaseMatrix> matrices;
  std::optional<std::string> expect_error;         // a part of the message
  std::optional<std::vector<int>> expect_reports;  // rules reported with severity error, ascending
  std::optional<std::string> expect_printed;       // all texts of printf, one after the other
  std::vector<Suppression> suppressions;           // of the case itself
  bool strict = false;              // as Options::strict, for cases about warnings and advisories
  bool check_uninitialized = true;  // as in Options; false for cases that must get past such a read
};

struct CaseResult {
  RunResult run;
  std::vector<std::string> mismatches;  // what differs from what the case expects; empty: passed
  bool unexpected_rules = false;  // one of them: not the rules that the case expects were reported
  GlobalMemory memory;
};

// Where buffers lie and how tensor maps are encoded, when not as ptxsim does: on a GPU.
struct CaseTarget {
  std::function<uint64_t(const std::string& buffer, uint64_t bytes)> place;
  std::function<Result<std::array<uint8_t, 128>>(const TensorMap&)> encode;
};

// `folder`: where the files that the case names lie; `name`: that of the text, for messages, which
// give the line and column in it.
Result<Case> parse_case(std::string_view json, const std::string& folder,
                        const CaseTarget* target = nullptr, const std::string& name = "");
// The "//! " lines of PTX text without their mark, each where it was; empty when there are none.
std::string case_text(std::string_view ptx);

// A case with several launches becomes one about the last that has this entry. An Error when none
// has.
std::optional<Error> choose_entry(Case& description, const std::string& entry);
// Decodes what the launches of other entries than the case's run. `module`: the file that the case
// is for.
std::optional<Error> load_launches(Case& description, const std::shared_ptr<const Module>& module);

// Runs it and compares, with the suppressions of the case and then those of the options. Where a
// case has several launches, those of its entry run `program`; the result has the reports of all,
// and the counters of these.
CaseResult run_case(const Case& description, const std::shared_ptr<const Program>& program,
                    const Options& options, const std::vector<MakeObserver>& observers = {});

}  // namespace ptxsim
