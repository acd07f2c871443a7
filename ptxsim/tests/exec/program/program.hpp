// A program of many small parts, each a function of its own: `program <part>`. It returns 0 when
// everything was as CUDA has it, on a GPU too.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>

int fails();  // checks that failed so far
void check(bool right, const char* what, const char* file, int line);

#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)
#define CHECK_CUDA(call) check((call) == cudaSuccess, #call, __FILE__, __LINE__)

void vector_add();
void host_memory();
void variables();
void graph();
void streams_race();
void streams_copy();
void streams_ordered();
void race();
void race_again();
void cluster();
void tensor_map();
void launch_errors();
void copy_errors();
void fault();
void prints();
void asserts();
void leak();
void grid_sync();
void pipeline();
void wide_tiles();
void padding();
void pools();
void in_place();
void repeats();
void overlap_right();
void overlap_missing();
void overlap_late();
void overlap_one_warp();
void overlap_chain();
void overlap_overwrite();
void overlap_graph();
void crash();
void graph_nodes();
void graph_copies();
void graph_conditions();
void graph_condition_unset();
void graph_memory();
void graph_memory_kept();
void graph_memory_after_free();
void graph_of_capture();
void mapped_memory();
void mapped_memory_read_only();
void mapped_memory_without_access();
void mapped_memory_kept();
void host_latch();
void host_latch_counted();
void host_latch_forgotten();
void processes();
void processes_second();
void managed();
void virtual_functions();
void planes();
void convolution();
void textures();
void texture_shapes();
void texture_of_written();
void surfaces();
void surface_trap();
void image_errors();
