// A kernel launch written to files, for the interpreter to run: case.json, the parameter blob, the
// buffers' contents and the expected matrix. Device addresses in it are made up: nothing here talks
// to a driver or a GPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace cutlass_case {

using Bytes = std::vector<uint8_t>;
struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

// What one output must be: |d[l][row][col] - value| <= bound, both in double; bound 0 asks for
// equality. Elements of the buffer between `cols` and `row_stride` must stay untouched.
struct Expected {
  std::string buffer;
  std::string type;  // f32, f16 or bf16
  int64_t batches = 1, rows = 0, cols = 0;
  int64_t row_stride = 0, batch_stride = 0;  // elements
  std::vector<double> value, bound;          // batches * rows * cols
};

class LaunchRecord {
 public:
  std::string entry;
  Dim3 grid, block, cluster;
  uint32_t dynamic_shared_bytes = 0;
  Bytes params;
  Expected expected;

  // Both return the made-up device address. Buffers lie far apart, so that any access past one is
  // seen.
  uint64_t add_input(const std::string& name, Bytes data) {
    const uint64_t bytes = data.size();
    return add({name, std::move(data), bytes, true});
  }
  uint64_t add_output(const std::string& name, uint64_t bytes) {
    return add({name, {}, bytes, false});
  }

  void write(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    write_file(folder / "params.bin", params.data(), params.size());
    for (const Buffer& buffer : buffers_) {
      if (buffer.is_input) {
        write_file(folder / (buffer.name + ".bin"), buffer.data.data(), buffer.data.size());
      }
    }
    write_file(folder / "expected.bin", expected.value.data(), expected.value.size() * 8);
    write_file(folder / "bound.bin", expected.bound.data(), expected.bound.size() * 8);
    const std::string text = json();
    write_file(folder / "case.json", text.data(), text.size());
  }

 private:
  struct Buffer {
    std::string name;
    Bytes data;
    uint64_t bytes;
    bool is_input;
  };
  std::vector<Buffer> buffers_;

  static uint64_t address(size_t index) { return 0x10'0000'0000 + index * 0x1000'0000; }
  uint64_t add(Buffer buffer) {
    buffers_.push_back(std::move(buffer));
    return address(buffers_.size() - 1);
  }

  static void write_file(const std::filesystem::path& path, const void* data, size_t bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  }

  std::string json() const {
    std::ostringstream out;
    const auto dim = [&out](const char* name, const Dim3& d) {
      out << "  \"" << name << "\": [" << d.x << ", " << d.y << ", " << d.z << "],\n";
    };
    out << "{\n  \"entry\": \"" << entry << "\",\n";
    dim("grid", grid);
    dim("block", block);
    dim("cluster", cluster);
    out << "  \"dynamic_shared_bytes\": " << dynamic_shared_bytes << ",\n";
    out << "  \"params\": \"params.bin\",\n  \"buffers\": [\n";
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& buffer = buffers_[i];
      out << "    {\"name\": \"" << buffer.name << "\", \"address\": " << address(i)
          << ", \"bytes\": " << buffer.bytes;
      if (buffer.is_input) out << ", \"file\": \"" << buffer.name << ".bin\", \"read_only\": true";
      out << (i + 1 < buffers_.size() ? "},\n" : "}\n");
    }
    out << "  ],\n  \"expected\": {\"buffer\": \"" << expected.buffer << "\", \"type\": \""
        << expected.type << "\", \"batches\": " << expected.batches
        << ", \"rows\": " << expected.rows << ", \"cols\": " << expected.cols
        << ", \"row_stride\": " << expected.row_stride
        << ", \"batch_stride\": " << expected.batch_stride
        << ", \"value\": \"expected.bin\", \"bound\": \"bound.bin\"}\n}\n";
    return out.str();
  }
};

// The object that a kernel takes by value, as bytes. Padding inside it is zero in `params`, which
// was value-initialised.
template <class Params>
Bytes blob_of(const Params& params) {
  Bytes bytes(sizeof(Params));
  std::memcpy(bytes.data(), static_cast<const void*>(&params), sizeof(Params));
  return bytes;
}

}  // namespace cutlass_case
