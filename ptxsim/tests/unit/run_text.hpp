// Runs PTX text on buffers that a test made.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ptxsim/ptxsim.hpp"

namespace ptxsim::test {

inline constexpr uint64_t kInAddress = 0x10'0000'0000, kOutAddress = 0x20'0000'0000;

inline std::string with_header(const std::string& entry, const char* target = "sm_100a") {
  return std::string(".version 8.7\n.target ") + target + "\n.address_size 64\n" + entry;
}

// The message of what decoding the only entry refuses; empty when it is accepted.
inline std::string decode_error(const std::string& text) {
  auto module = load(text, "test.ptx");
  if (!module.ok()) return "load: " + module.error().message;
  auto program = decode(*module, "");
  return program.ok() ? std::string() : program.error().message;
}

struct TextRun {
  RunResult result;
  std::vector<uint32_t> out;
};

// Parameters are `params`, which may name kInAddress (holding `in`) and kOutAddress (of `out_words`
// unwritten words).
inline TextRun run_text(const std::string& text, Launch launch, const std::vector<std::byte>& in,
                        size_t out_words, const Options& options) {
  TextRun run;
  auto module = load(text, "test.ptx");
  if (!module.ok()) {
    run.result.error = module.error();
    return run;
  }
  auto program = decode(*module, "");
  if (!program.ok()) {
    run.result.error = program.error();
    return run;
  }
  GlobalMemory memory;
  if (!in.empty()) memory.add("in", kInAddress, in, true, true);
  memory.add("out", kOutAddress, std::vector<std::byte>(4 * out_words), false, false);
  run.result = ptxsim::run(*program, launch, memory, options);
  run.out.resize(out_words);
  std::memcpy(run.out.data(), memory.find("out")->data.data(), 4 * out_words);
  return run;
}

template <class T>
void append_param(std::vector<uint8_t>& params, const T& value) {
  params.resize((params.size() + alignof(T) - 1) / alignof(T) * alignof(T));
  const size_t at = params.size();
  params.resize(at + sizeof value);
  std::memcpy(params.data() + at, &value, sizeof value);
}

}  // namespace ptxsim::test
