// Cases, launches and files that are not valid: one line with the position, exit code 2.
#include "cli/program.hpp"

namespace {

using namespace ptxsim_test;

class BadCase : public Program, public testing::WithParamInterface<BadText> {};

TEST_P(BadCase, IsRefused) {
  const BadText& bad = GetParam();
  write("c.json", replaced(kCase, bad.from, bad.to));
  expect_refused(run(), bad.position, bad.reason);
}

INSTANTIATE_TEST_SUITE_P(
    Json, BadCase,
    testing::Values(
        BadText{"Malformed", "[32],", "[32]],", "c.json:1:33", "syntax error"},
        BadText{"Truncated", "{\"buffer\": \"out\"}]}", "{\"buffer\": ", "c.json:4:42",
                "syntax error"},
        BadText{"UnknownKey", "\"block\"", "\"blok\"", "c.json:1:28",
                "the case has the unknown key 'blok'; it may have: entry, grid"},
        BadText{"UnknownKeyOfABuffer", "\"iota\"", "\"itoa\"", "c.json:2:65",
                "a buffer has the unknown key 'itoa'"},
        BadText{"WrongType", "\"twice\"", "7", "c.json:1:11", "entry: must be a string"},
        BadText{"FlagThatIsANumber", "\"iota\": true", "\"iota\": 1", "c.json:2:65",
                "buffers[0].iota: must be true or false"},
        BadText{"BuffersThatAreNoList", "\"params\": [{\"buffer\": \"in\"}, {\"buffer\": \"out\"}]",
                "\"params\": {}", "c.json:4:12", "params: must be a list"},
        BadText{"UnknownElementType", "\"type\": \"u32\", \"count\": 32, \"expect\"",
                "\"type\": \"u33\", \"count\": 32, \"expect\"", "c.json:3:38",
                "buffers[1].type: type 'u33' is unknown"},
        BadText{"NegativeCount", "\"count\": 32, \"iota\"", "\"count\": -1, \"iota\"",
                "c.json:2:53", "buffers[0].count: -1; must be an integer from 0 to"},
        BadText{"FractionalCount", "\"count\": 32, \"iota\"", "\"count\": 1.5, \"iota\"",
                "c.json:2:53", "buffers[0].count: 1.5; must be an integer"},
        BadText{"BufferBeyondMemory", "\"count\": 32, \"iota\"",
                "\"count\": 4611686018427387904, \"iota\"", "c.json:2:53", "must be an integer"},
        BadText{"BuffersTogetherBeyondMemory",
                "\"count\": 32, \"iota\": true},\n             {\"name\": \"out\", \"type\": "
                "\"u32\", \"count\": 32",
                "\"values\": [1]},\n{\"name\": \"out\", \"type\": \"u32\", \"count\": 268435456",
                "c.json:3:1",
                "1073741824 bytes; a case may have 1073741824 of them in all, of which 1073741820 "
                "are left"},
        BadText{"EmptyBuffer", "\"count\": 32, \"iota\"", "\"count\": 0, \"iota\"", "c.json:2:14",
                "buffer 'in' of 0 bytes"},
        BadText{"ValueThatDoesNotFit", "[0, 2, 4, 6]", "[0, 4294967296]", "c.json:3:72",
                "buffers[1].expect[1]: 4294967296 does not fit into 32 bits"},
        BadText{"PatternThatIsNone", "[0, 2, 4, 6]", "[\"0xg\"]", "c.json:3:69",
                "'0xg' is no pattern of 32 bits"},
        BadText{"MissingName", "\"name\": \"in\", ", "", "c.json:2:14",
                "buffers[0]: 'name' is missing"},
        BadText{"TwoBuffersOfOneName", "\"name\": \"out\"", "\"name\": \"in\"", "c.json:3:23",
                "there is a buffer 'in' already"},
        BadText{"MissingFile", "\"iota\": true", "\"file\": \"none.bin\"", "c.json:2:65",
                "cannot read './none.bin'"},
        BadText{"FileThatIsADirectory", "\"iota\": true", "\"file\": \".\"", "c.json:2:65",
                "cannot read './.'"},
        BadText{"UnknownBuffer", "{\"buffer\": \"out\"}", "{\"buffer\": \"none\"}", "c.json:4:42",
                "params[1].buffer: there is no buffer 'none'"},
        BadText{"OverlappingBuffers", "\"name\": \"out\"",
                "\"address\": 68719476736, \"name\": \"out\"", "c.json:3:14",
                "buffer 'out' at 0x1000000000 overlaps buffer 'in'"},
        BadText{"TensorMapOfRank0", "{\"buffer\": \"out\"}",
                "{\"tensor_map\": {\"buffer\": \"out\", \"dims\": [], \"box\": []}}", "c.json:4:72",
                "tensor map of rank 0; 1 to 5"},
        BadText{"TensorMapWithALargeBox", "{\"buffer\": \"out\"}",
                "{\"tensor_map\": {\"buffer\": \"out\", \"dims\": [64], \"box\": [512]}}",
                "c.json:4:46", "512"},
        BadText{"RuleThatIsNone", "\"block\": [32]", "\"expect_reports\": [\"X1\"]", "c.json:1:39",
                "'X1' is no rule such as R1"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Program, RefusesAFileOfValuesWhereItIsWrong) {
  write("c.json", replaced(kCase, "[0, 2, 4, 6]", "\"c.values#out\""));
  expect_refused(run(), "c.json:3:68", "buffers[1].expect: cannot read './c.values'");
  write("c.values", "out: u32 2\n0 2\n4 6\n");
  expect_refused(run(), "./c.values:3:1", "more than 2 values");
  write("c.values", "in: u32 2\n0 2\n");
  expect_refused(run(), "c.json:3:68", "'c.values' has no values 'out'; it has: in");
}

TEST_F(Program, ReadsValuesBesideTheCaseAndNotWhereItRuns) {
  std::filesystem::create_directory(path("sub"));
  write("sub/c.json", replaced(kCase, "[0, 2, 4, 6]", "\"c.values#out\""));
  write("sub/c.values", "out: u32 32\n0..62/2\n");
  const std::vector<std::string> right{"run", "k.ptx", "--case", "sub/c.json"};
  EXPECT_EQ(start(right).exit_code, 0) << start(right);
  std::istringstream lines(kCase);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += "//! " + line + "\n";
  write("sub/k.ptx", replaced(text, "[0, 2, 4, 6]", "\"c.values#out\"") + kKernel);
  EXPECT_EQ(start({"run", "sub/k.ptx"}).exit_code, 0);
  EXPECT_EQ(start({"run", path("sub/k.ptx").string()}).exit_code, 0);
  write("sub/c.values", "out: u32 4 hex\n0 2 4 7\n");
  EXPECT_EQ(start({"run", "sub/k.ptx"}).exit_code, 1);
}

// What the entry and the hardware allow: refused at the line of the entry.
class BadLaunch : public Program, public testing::WithParamInterface<BadText> {};

TEST_P(BadLaunch, IsRefused) {
  const BadText& bad = GetParam();
  write("c.json", replaced(kCase, bad.from, bad.to));
  expect_refused(run(), bad.position, bad.reason);
}

INSTANTIATE_TEST_SUITE_P(
    Json, BadLaunch,
    testing::Values(BadText{"MissingEntry", "\"twice\"", "\"thrice\"", "k.ptx",
                            "entry 'thrice' is not in the module; it has: twice"},
                    BadText{"TooFewParameters", ", {\"buffer\": \"out\"}", "", "k.ptx:4",
                            "8 bytes of parameters; entry 'twice' has 16"},
                    BadText{"TooManyParameters", "{\"buffer\": \"out\"}",
                            "{\"buffer\": \"out\"}, {\"type\": \"u8\", \"value\": 0}", "k.ptx:4",
                            "17 bytes of parameters; entry 'twice' has 16"},
                    BadText{"NoThreads", "[32]", "[0]", "k.ptx:4",
                            "block 0x1x1; every extent must be at least 1"},
                    BadText{"LargeBlock", "[32]", "[1024, 2]", "k.ptx:4",
                            "2048 threads; at most 1024"},
                    BadText{"HugeBlock", "[32]", "[4294967295, 4294967295, 4294967295]", "k.ptx:4",
                            "block 4294967295x4294967295x4294967295"},
                    BadText{"HugeGrid", "\"block\"",
                            "\"grid\": [4294967295, 4294967295, 4294967295], \"block\"", "k.ptx:4",
                            "grid 4294967295x4294967295x4294967295"},
                    BadText{"GridOfManyClusters", "\"block\"", "\"grid\": [2147483647], \"block\"",
                            "k.ptx:4", "2147483647 clusters; at most 16777216"},
                    BadText{"HugeCluster", "\"block\"", "\"cluster\": [65536, 65536], \"block\"",
                            "k.ptx:4", "cluster 65536x65536x1"},
                    BadText{"GridThatIsNoMultipleOfTheCluster", "\"block\"",
                            "\"grid\": [3], \"cluster\": [2], \"block\"", "k.ptx:4",
                            "grid 3x1x1 is not a multiple of cluster 2x1x1"},
                    BadText{"HugeDynamicSharedMemory", "\"block\"",
                            "\"dynamic_shared_bytes\": 4294967295, \"block\"", "k.ptx:4",
                            "4294967295 of dynamic shared memory"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Program, RefusesVariablesBeyondMemory) {
  for (const char* variable :
       {".local .b8 frame[200000000000];", ".global .b8 table[200000000000];",
        ".const .b8 table[200000000000];"}) {
    write("k.ptx",
          replaced(kKernel, ".reg .b32 %r<4>;", std::string(".reg .b32 %r<4>; ") + variable));
    expect_refused(run(), "k.ptx:4", "200000000000 bytes of");
  }
}

TEST_F(Program, RefusesAnInfiniteLoopWhereTheBudgetEnds) {
  write("k.ptx", replaced(kKernel, "  ret;", "again:\n  bra again;"));
  expect_refused(run({"--budget", "1000"}), "k.ptx:18", "the budget is 1000; CTA (0,0,0), warp 0");
}

TEST_F(Program, RefusesATensorMapThatTheStandInDidNotEncode) {
  write("k.ptx", R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128])
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  .shared .align 128 .b8 tile[128];
  .shared .align 8 .b64 full;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 ret;
  mov.u32 %r2, full;
  mov.u32 %r3, tile;
  cvta.param.u64 %rd1, map;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r1}], [%r2];
  ret;
}
)");
  write("map.bin", std::string(128, '\x2a'));
  write("c.json", R"({"block": [32], "params": [{"file": "map.bin"}]})");
  expect_refused(run(), "k.ptx:18",
                 "is no tensor map: bits 2 .. 3 of word 2 are 0x2; must be 0; CTA (0,0,0), warp 0");
}

TEST_F(Program, GivesTheLineOfACaseInsideTheKernel) {
  write("k.ptx", "//! {\"entry\": \"twice\",\n// a remark\n//!  \"block\": \"wide\"}\n" + kKernel);
  expect_refused(start({"run", "k.ptx"}), "k.ptx:3:15", "block: must be a list");
}

TEST_F(Program, RefusesAKernelWithoutACase) {
  expect_refused(start({"run", "k.ptx"}), "k.ptx", "no case: give --case");
}

TEST_F(Program, RefusesFilesThatCannotBeRead) {
  expect_refused(start({"run", "none.ptx", "--case", "c.json"}), "none.ptx", "No such file");
  expect_refused(start({"run", "k.ptx", "--case", "none.json"}), "none.json", "No such file");
  std::filesystem::create_directory(path("folder"));
  expect_refused(start({"run", "folder", "--case", "c.json"}), "folder", "is a directory");
  expect_refused(start({"run", "k.ptx", "--case", "folder"}), "folder", "is a directory");
  expect_refused(start({"check", "folder"}), "folder", "is a directory");
}

TEST_F(Program, RefusesEmptyFiles) {
  write("empty", "");
  expect_refused(start({"run", "empty", "--case", "c.json"}), "empty:1:1", "expected '.version'");
  expect_refused(start({"run", "k.ptx", "--case", "empty"}), "empty:1:1",
                 "unexpected end of input");
}

TEST_F(Program, KeepsAnErrorOnOneLine) {
  write("a\nb", "");
  expect_refused(start({"check", "a\nb"}), "a\\x0ab:1:1", "expected '.version'");
  write("c.json", replaced(kCase, "\"twice\"", "\"tw\\nice\""));
  expect_refused(run(), "k.ptx", "entry 'tw\\x0aice' is not in the module");
}

TEST_F(Program, RefusesOptionsThatAreNotValid) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--seeds", "0"},
                                             {"--seeds", "-1"},
                                             {"--seed", "-1"},
                                             {"--budget", "-5"},
                                             {"--resident", "0"},
                                             {"--resident", "4000000000"},
                                             {"--schedule", "hasty"},
                                             {"--mma", "nearly"},
                                             {"--dump", "out"},
                                             {"--dump", "none=file"},
                                             {"--frobnicate"}}) {
    SCOPED_TRACE(arguments[0]);
    expect_refused(run(arguments), "", arguments[0]);
  }
  expect_refused(start({}), "", "subcommand");
  expect_refused(start({"frobnicate"}), "", "subcommand");
}

TEST_F(Program, RefusesToWriteWhereItCannot) {
  const Outcome trace = run({"--trace", "/nowhere/trace"});
  EXPECT_EQ(trace.exit_code, 2) << trace;
  EXPECT_EQ(trace.err, "error: --trace: cannot write '/nowhere/trace'\n");
  const Outcome dump = run({"--dump", "out=/nowhere/out"});
  EXPECT_EQ(dump.exit_code, 2) << dump;
  EXPECT_EQ(dump.err, "error: --dump: cannot write '/nowhere/out'\n");
}

}  // namespace
