// Bytes that several processes see: a file of memory, which ends with its last descriptor and its
// last mapping. It is handed on by a descriptor, or found by the process and the number there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ptxsim::cuda {

class SharedBytes {
 public:
  // nullptr: the system refuses it, or there is no such thing.
  static std::shared_ptr<SharedBytes> make(uint64_t bytes);
  static std::shared_ptr<SharedBytes> of_descriptor(int descriptor);  // which stays the caller's
  static std::shared_ptr<SharedBytes> of_process(int process, int descriptor, uint64_t identity);
  ~SharedBytes();
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  std::byte* begin() const { return begin_; }
  uint64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }
  uint64_t identity() const { return identity_; }  // the same in every process
  int new_descriptor() const;                      // the caller's; -1: refused

 private:
  SharedBytes(int descriptor, std::byte* begin, uint64_t bytes, uint64_t identity)
      : descriptor_(descriptor), begin_(begin), bytes_(bytes), identity_(identity) {}
  static std::shared_ptr<SharedBytes> of_own(int descriptor);  // takes it over

  int descriptor_;
  std::byte* begin_;
  uint64_t bytes_, identity_;
};

}  // namespace ptxsim::cuda
