// What the tests of src/checkpoint share: a directory of their own, files built byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::test {

// An empty directory that disappears with its content.
class TempDirectory {
 public:
  TempDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "dualgemm_io_";
    name.append(6, 'X');  // the pattern that mkdtemp fills in
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << name;
    path_ = name;
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  // Names of all entries, hidden ones too.
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_text(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  ASSERT_TRUE(out.good()) << path;
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::vector<std::byte> to_vector(std::string_view text) {
  const std::span<const std::byte> bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::string little_endian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

// Header length, header, data: what a writer of safetensors puts together, with nothing checked.
inline std::string safetensors_bytes(const std::string& json, const std::string& data) {
  return little_endian<uint64_t>(json.size()) + json + data;
}

// The three parts of a message hold what the caller expects to read in it.
inline ::testing::AssertionResult fails_with(const Status& status, StatusCode code,
                                             std::string_view part_of_message) {
  if (status.code() != code) {
    return ::testing::AssertionFailure()
           << "expected " << status_code_name(code) << ", got " << status_code_name(status.code())
           << ": " << status.message();
  }
  if (status.message().find(part_of_message) == std::string::npos) {
    return ::testing::AssertionFailure()
           << "no '" << part_of_message << "' in: " << status.message();
  }
  if (status.argument().empty() || status.observed().empty() || status.rule().empty()) {
    return ::testing::AssertionFailure() << "an empty part in: " << status.message();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace dualgemm::test
