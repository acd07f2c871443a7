// Programs that nvcc made, unchanged, below `ptxsim exec`: with NVIDIA's runtime linked into them,
// and with its shared library.
#include "cli/program_with_tools.hpp"

#ifdef PTXSIM_NVCC_PROGRAM

namespace ptxsim_test {
namespace {

class ExecProgram : public Program {
 protected:
  Outcome run_part(const std::string& part, const std::string& device = "b200",
                   const char* program = PTXSIM_NVCC_PROGRAM) const {
    return start({"exec", "--device", device, "--", program, part});
  }
  // Right by its own checks, and by ptxsim's.
  static void expect_clean(const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_EQ(outcome.out, "") << outcome;
    EXPECT_TRUE(contains(outcome.err, "0 errors, 0 warnings")) << outcome;
  }
};

TEST_F(ExecProgram, RightPartsAreRight) {
  for (const char* device : {"b200", "h200"})
    for (const char* part : {"vector_add",       "host_memory",
                             "variables",        "graph",
                             "graph_nodes",      "graph_conditions",
                             "processes",        "host_latch_counted",
                             "graph_of_capture", "mapped_memory",
                             "managed",          "virtual_functions",
                             "planes",           "cluster",
                             "tensor_map",       "convolution",
                             "textures",         "texture_shapes",
                             "surfaces",         "grid_sync",
                             "padding",          "pools"}) {
      SCOPED_TRACE(std::string(device) + " " + part);
      expect_clean(run_part(part, device));
    }
}

// It also makes a copy that CUDA refuses, which is a warning.
TEST_F(ExecProgram, CopiesAreNodesOfGraphs) {
  for (const char* device : {"b200", "h200"}) {
    const Outcome outcome = run_part("graph_copies", device);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_EQ(outcome.out, "") << outcome;
    EXPECT_TRUE(contains(outcome.err, "12 bytes that are not inside one allocation")) << outcome;
    EXPECT_TRUE(contains(outcome.err, "0 errors, 1 warnings")) << outcome;
  }
}

TEST_F(ExecProgram, AConditionThatNothingSetsIsReported) {
  const Outcome outcome = run_part("graph_condition_unset");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "no kernel has set it in this launch")) << outcome;
}

// It also frees what a graph has freed, which is refused without a word, as cudaFree does.
TEST_F(ExecProgram, NodesOfGraphsAllocateAndFree) {
  for (const char* device : {"b200", "h200"}) expect_clean(run_part("graph_memory", device));
}

TEST_F(ExecProgram, AGraphWhoseMemoryIsThereStillIsNotLaunched) {
  const Outcome outcome = run_part("graph_memory_kept");
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "128 bytes of a graph's node are there still")) << outcome;
  EXPECT_TRUE(contains(outcome.err, "0 errors, 1 warnings")) << outcome;
}

TEST_F(ExecProgram, WhatAGraphHasFreedIsNotThere) {
  const Outcome outcome = run_part("graph_memory_after_free");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "graph_memory.cu:")) << outcome;
}

TEST_F(ExecProgram, MappedMemoryHasItsAccess) {
  const Outcome written = run_part("mapped_memory_read_only");
  EXPECT_EQ(written.exit_code, 1) << written;
  EXPECT_EQ(written.out, "") << written;
  EXPECT_TRUE(contains(written.err, "is read only")) << written;
  const Outcome none = run_part("mapped_memory_without_access");
  EXPECT_EQ(none.exit_code, 1) << none;
  EXPECT_EQ(none.out, "") << none;
  EXPECT_TRUE(contains(none.err, "mapped_memory.cu:")) << none;
}

TEST_F(ExecProgram, HandlesOfMemoryThatAreKeptAreLeaks) {
  const Outcome outcome = run_part("mapped_memory_kept");
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, "2097152 bytes of mapped memory were never freed")) << outcome;
}

TEST_F(ExecProgram, ALaunchThatWaitsForTheHostIsBegunAnew) {
  for (const char* option : {"--strict", "--no-sanitizer"}) {
    const Outcome outcome = start({"exec", option, "--", PTXSIM_NVCC_PROGRAM, "host_latch"});
    expect_clean(outcome);
    EXPECT_TRUE(contains(outcome.err, "4 launches of 2 kernels")) << outcome;
  }
  const Outcome forgotten =
      start({"exec", "--budget", "100000", "--", PTXSIM_NVCC_PROGRAM, "host_latch_forgotten"});
  EXPECT_EQ(forgotten.exit_code, 1) << forgotten;
  EXPECT_EQ(forgotten.out, "") << forgotten;
  EXPECT_TRUE(contains(forgotten.err, "the budget is 100000")) << forgotten;
}

TEST_F(ExecProgram, SharedRuntime) {
  for (const char* part :
       {"vector_add", "variables", "managed", "cluster", "tensor_map", "textures", "surfaces"}) {
    SCOPED_TRACE(part);
    expect_clean(run_part(part, "b200", PTXSIM_NVCC_PROGRAM_SHARED));
  }
}

TEST_F(ExecProgram, KernelsOfASharedLibrary) {
  const Outcome outcome = start({"exec", "--strict", "--", PTXSIM_NVCC_WITH_LIBRARY});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "41\n");
  EXPECT_TRUE(contains(outcome.err, "1 launches of 1 kernels"));
}

TEST_F(ExecProgram, TextureOfWhatTheKernelWritesIsReported) {
  const Outcome outcome = run_part("texture_of_written");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.err, "[R20]")) << outcome;
}

TEST_F(ExecProgram, SurfaceAccessesOutsideTrap) {
  const Outcome outcome = run_part("surface_trap");
  EXPECT_TRUE(
      contains(outcome.err, "surface access at byte 32, row 0, slice 0; rows have 32 bytes"))
      << outcome;
}

TEST_F(ExecProgram, WhatNoImageMayBeIsRefused) {
  const Outcome outcome = run_part("image_errors");
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "3 channels of 8 bits, kind 1")) << outcome;
  EXPECT_TRUE(contains(outcome.err, "a linear filter needs floats")) << outcome;
  EXPECT_TRUE(contains(outcome.err, "anisotropic filtering is not modelled")) << outcome;
}

TEST_F(ExecProgram, RaceIsReported) {
  const Outcome outcome = run_part("race");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.err, "[R16]"));
  EXPECT_TRUE(contains(outcome.err, "racy_sum(int const*, int*)"));
  EXPECT_TRUE(contains(outcome.err, "kernels.cu:"));
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST_F(ExecProgram, FindingsOfSeveralLaunchesAreOne) {
  const Outcome once = run_part("race"), twice = run_part("race_again");
  EXPECT_EQ(twice.exit_code, 1) << twice;
  EXPECT_EQ(count_of(twice.err, "[R16]"), count_of(once.err, "[R16]")) << twice;
  EXPECT_EQ(count_of(twice.err, "in:      2 launches"), count_of(once.err, "[R16]")) << twice;
}

// Programmatic dependent launches: what may overlap is judged, and both grids are named.
TEST_F(ExecProgram, GridsThatWaitMayOverlap) { expect_clean(run_part("overlap_right")); }

TEST_F(ExecProgram, GridsThatDoNotWaitAreReported) {
  const struct {
    const char *part, *kernel, *earlier, *message;
  } cases[] = {
      {"overlap_missing", "consume", "produce", "before griddepcontrol.wait"},
      {"overlap_late", "consume", "produce", "before griddepcontrol.wait"},
      {"overlap_one_warp", "consume", "produce", "before griddepcontrol.wait"},
      {"overlap_graph", "consume", "produce", "before griddepcontrol.wait"},
      {"overlap_overwrite", "overwrite", "read_on", "may still read"},
      {"overlap_chain", "consume", "produce", "that one has not waited for it"},
  };
  for (const auto& [part, kernel, earlier, message] : cases)
    for (const char* schedule : {"eager", "lazy", "random"}) {
      const Outcome outcome =
          start({"exec", "--schedule", schedule, "--", PTXSIM_NVCC_PROGRAM, part});
      EXPECT_EQ(outcome.exit_code, 1) << outcome;
      EXPECT_TRUE(contains(outcome.err, "1 errors, 0 warnings")) << outcome;
      EXPECT_TRUE(contains(outcome.err, message)) << outcome;
      EXPECT_TRUE(contains(outcome.err, "[R21]")) << outcome;
      EXPECT_TRUE(contains(outcome.err, std::string("(anonymous namespace)::") + earlier))
          << outcome;
      EXPECT_TRUE(contains(outcome.err, std::string("(anonymous namespace)::") + kernel))
          << outcome;
    }
}

TEST_F(ExecProgram, StreamsThatNothingOrdersAreReported) {
  const Outcome launches = run_part("streams_race"), copies = run_part("streams_copy");
  for (const Outcome* outcome : {&launches, &copies}) {
    EXPECT_EQ(outcome->exit_code, 1) << *outcome;
    EXPECT_TRUE(contains(outcome->err, "1 errors, 0 warnings")) << *outcome;
    EXPECT_TRUE(contains(outcome->err, "[R23]")) << *outcome;
    EXPECT_TRUE(contains(outcome->err, "(anonymous namespace)::fill(int*)' in another stream"));
  }
  EXPECT_TRUE(contains(launches.err, "streams.cu:")) << launches;
  EXPECT_TRUE(contains(copies.err, "'cudaMemcpyAsync' reads global memory")) << copies;
}

TEST_F(ExecProgram, OrderedStreamsAreNot) { expect_clean(run_part("streams_ordered")); }

TEST_F(ExecProgram, RefusalsAreThoseOfCuda) {
  for (const char* part : {"launch_errors", "copy_errors"}) {
    const Outcome outcome = run_part(part);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_EQ(outcome.out, "") << outcome;
  }
}

TEST_F(ExecProgram, AGpuThatRunsNoClusterRefusesThem) {
  const Outcome outcome =
      start({"exec", "--max-clusters", "0", "--", PTXSIM_NVCC_PROGRAM, "cluster"});
  EXPECT_NE(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, "cluster 2x1x1; none can be scheduled")) << outcome;
}

TEST_F(ExecProgram, RepeatedLaunchesAreCountedOnly) {
  const Outcome all = run_part("repeats");
  EXPECT_EQ(all.out, "20 21\n5\n6\n") << all;
  const Outcome once = start({"exec", "--once", "--", PTXSIM_NVCC_PROGRAM, "repeats"});
  EXPECT_EQ(once.exit_code, 0) << once;
  EXPECT_EQ(once.out, "1 1\n2\n2\n") << once;
  EXPECT_TRUE(contains(once.err, "27 launches of 1 kernels")) << once;
  EXPECT_TRUE(contains(once.err, "24 launches were counted only")) << once;
}

using ExecProgramWithTools = ProgramWithTools;

TEST_F(ExecProgramWithTools, LaunchesOfGraphsAndRepeatedOnesAreCountedWithTheFirst) {
  tool("nvdisasm", R"(printf '.section .text.any\n//## File ".nv_debug_ptx_txt", line 9\n')"
                   R"(; echo ' /*0000*/ EXIT ;')");
  for (const bool once : {false, true}) {
    std::filesystem::remove(path("arguments"));
    std::vector<std::string> arguments{"exec", "--time", "--json", "--report", "t.json"};
    if (once) arguments.push_back("--once");
    arguments.insert(arguments.end(), {"--", PTXSIM_NVCC_PROGRAM, once ? "repeats" : "graph"});
    const Outcome outcome = start(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    const auto kernels = nlohmann::json::parse(read("t.json")).at("kernels");
    uint64_t timed = 0;
    for (const auto& kernel : kernels) {
      EXPECT_EQ(kernel.at("instructions").at("from"), "ptxas") << kernel;
      timed += kernel.at("timed").get<uint64_t>();
    }
    const std::string runs = read("arguments");
    EXPECT_EQ(static_cast<size_t>(std::count(runs.begin(), runs.end(), '\n')), kernels.size());
    EXPECT_GT(timed, kernels.size());
    EXPECT_TRUE(left_nothing_behind());
  }
}

TEST_F(ExecProgram, ASampleOfTheClusters) {
  const Outcome some = start({"exec", "--once", "--sample", "4", "--json", "--report", "s.json",
                              "--", PTXSIM_NVCC_PROGRAM, "repeats"});
  EXPECT_EQ(some.exit_code, 0) << some;
  // The last of 16 CTAs is none of the four, and what these have not touched is not known.
  EXPECT_EQ(some.out, "1 0\n2\n3\n") << some;
  const auto kernel = nlohmann::json::parse(read("s.json")).at("kernels").at(0);
  EXPECT_EQ(kernel.at("launches"), 27);
  EXPECT_EQ(kernel.at("repeated"), 23);
  EXPECT_EQ(kernel.at("clusters_left_out"), 4 * 12);
}

TEST_F(ExecProgram, FaultIsSticky) {
  const Outcome outcome = run_part("fault");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "errors.cu:"));
}

// Lanes answer for each other by a match.sync, which is a warning.
TEST_F(ExecProgram, PipelineOfLibcuxx) {
  const Outcome outcome = run_part("pipeline");
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "0 errors, ")) << outcome;
}

// What NVIDIA's libraries do although no document allows it: their lanes answer for each other by a
// shfl.sync, and they write in place what they have read with ld.global.nc.
TEST_F(ExecProgram, WhatLibrariesRelyOnIsAWarning) {
  for (const auto& [part, rule] :
       {std::pair{"wide_tiles", "[R16]"}, std::pair{"in_place", "[R20]"}}) {
    const Outcome outcome = run_part(part);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_TRUE(contains(outcome.err, "0 errors, ")) << outcome;
    EXPECT_TRUE(contains(outcome.err, rule)) << outcome;
  }
}

TEST_F(ExecProgram, KernelsPrint) {
  const Outcome outcome = run_part("prints");
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "thread 3 says 42, 0.5\n") << outcome;
}

TEST_F(ExecProgram, FailedAssertion) {
  const Outcome outcome = run_part("asserts");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "Assertion `number == 1` failed")) << outcome;
}

TEST_F(ExecProgram, LeakIsAWarning) {
  const Outcome outcome = run_part("leak");
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, "12345 bytes of device memory were never freed"));
  EXPECT_EQ(start({"exec", "--strict", "--", PTXSIM_NVCC_PROGRAM, "leak"}).exit_code, 1);
}

TEST_F(ExecProgram, CrashLeavesTheReportSoFar) {
  const Outcome outcome = run_part("crash");
  EXPECT_EQ(outcome.exit_code, 134) << outcome;
  EXPECT_TRUE(contains(outcome.err, "1 launches of 1 kernels"));
  EXPECT_TRUE(contains(outcome.err, "signal 6"));
}

TEST_F(ExecProgram, StrippedProgramIsNamed) {
  const Outcome outcome = run_part("vector_add", "b200", PTXSIM_NVCC_PROGRAM_STRIPPED);
  EXPECT_NE(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(contains(outcome.err, "it was stripped; link with -cudart shared"));
}

TEST_F(ExecProgram, WithoutPtxForTheDevice) {
  const Outcome machine_code = start({"exec", "--device", "h200", "--", PTXSIM_NVCC_MACHINE_CODE});
  EXPECT_EQ(machine_code.exit_code, 0) << machine_code;
  EXPECT_EQ(machine_code.out, "cudaErrorNoKernelImageForDevice\n");
  EXPECT_TRUE(contains(machine_code.err,
                       "no PTX that runs on sm_90; the fat binary has machine code of sm_90"));
  const Outcome other = run_part("vector_add", "rtx5090");
  EXPECT_EQ(other.exit_code, 3) << other;
  EXPECT_TRUE(contains(other.err, "no PTX that runs on sm_120; the fat binary has PTX of sm_"));
}

}  // namespace
}  // namespace ptxsim_test

#endif
