// Runs the example of docs/guide.md, reads a case, makes mutants and encodes a tensor map: each
// part of the installed library. Usage: user <a kernel with a case in its text>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "ptxsim/case/case.hpp"
#include "ptxsim/mutate/mutation.hpp"
#include "ptxsim/ptxsim.hpp"
#include "ptxsim/tensor_map.hpp"

int twice(uint32_t (&values)[8]);  // documentation_example.cpp

int main(int, char** argv) {
  uint32_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  if (twice(values) != 0 || values[7] != 16) return std::puts("twice: wrong values"), 1;

  std::ostringstream text;
  text << std::ifstream(argv[1]).rdbuf();
  auto description = ptxsim::parse_case(ptxsim::case_text(text.str()), ".");
  if (!description.ok()) return std::puts(to_string(description.error()).c_str()), 1;
  auto module = ptxsim::load(text.str(), argv[1]);
  if (!module.ok()) return std::puts(to_string(module.error()).c_str()), 1;
  auto program = ptxsim::decode(*module, description->entry);
  if (!program.ok()) return std::puts(to_string(program.error()).c_str()), 1;
  if (ptxsim::enumerate_mutations(**program).empty()) return std::puts("no mutants"), 1;

  if (ptxsim::encode_tensor_map({}).ok()) return std::puts("a tensor map of nothing"), 1;
  return 0;
}
