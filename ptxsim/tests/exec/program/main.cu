#include <cstring>

#include "program.hpp"

namespace {
int failed = 0;
}

int fails() { return failed; }

void check(bool right, const char* what, const char* file, int line) {
  if (right) return;
  ++failed;
  std::printf("%s:%d: not as it should be: %s\n", file, line, what);
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)();
  } parts[] = {{"vector_add", vector_add},
               {"host_memory", host_memory},
               {"variables", variables},
               {"graph", graph},
               {"streams_race", streams_race},
               {"streams_copy", streams_copy},
               {"streams_ordered", streams_ordered},
               {"graph_nodes", graph_nodes},
               {"graph_copies", graph_copies},
               {"graph_conditions", graph_conditions},
               {"graph_condition_unset", graph_condition_unset},
               {"graph_memory", graph_memory},
               {"graph_memory_kept", graph_memory_kept},
               {"graph_memory_after_free", graph_memory_after_free},
               {"graph_of_capture", graph_of_capture},
               {"mapped_memory", mapped_memory},
               {"mapped_memory_read_only", mapped_memory_read_only},
               {"mapped_memory_without_access", mapped_memory_without_access},
               {"mapped_memory_kept", mapped_memory_kept},
               {"host_latch", host_latch},
               {"host_latch_counted", host_latch_counted},
               {"host_latch_forgotten", host_latch_forgotten},
               {"processes", processes},
               {"processes_second", processes_second},
               {"managed", managed},
               {"virtual_functions", virtual_functions},
               {"planes", planes},
               {"race", race},
               {"race_again", race_again},
               {"cluster", cluster},
               {"tensor_map", tensor_map},
               {"convolution", convolution},
               {"textures", textures},
               {"texture_shapes", texture_shapes},
               {"texture_of_written", texture_of_written},
               {"surfaces", surfaces},
               {"surface_trap", surface_trap},
               {"image_errors", image_errors},
               {"copy_errors", copy_errors},
               {"launch_errors", launch_errors},
               {"fault", fault},
               {"prints", prints},
               {"asserts", asserts},
               {"leak", leak},
               {"crash", crash},
               {"grid_sync", grid_sync},
               {"pipeline", pipeline},
               {"wide_tiles", wide_tiles},
               {"padding", padding},
               {"pools", pools},
               {"in_place", in_place},
               {"repeats", repeats},
               {"overlap_right", overlap_right},
               {"overlap_missing", overlap_missing},
               {"overlap_late", overlap_late},
               {"overlap_one_warp", overlap_one_warp},
               {"overlap_chain", overlap_chain},
               {"overlap_overwrite", overlap_overwrite},
               {"overlap_graph", overlap_graph}};
  for (const auto& part : parts)
    if (argc == 2 && std::strcmp(argv[1], part.name) == 0) {
      part.run();
      return fails() == 0 ? 0 : 3;
    }
  return 4;
}
