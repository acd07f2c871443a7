#include "fake_cuda/shared_bytes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace ptxsim::cuda {

std::shared_ptr<SharedBytes> SharedBytes::of_own(int descriptor) {
  struct stat status {};
  if (descriptor < 0) return nullptr;
  if (fstat(descriptor, &status) == 0 && status.st_size > 0) {
    const auto bytes = static_cast<size_t>(status.st_size);
    void* begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (begin != MAP_FAILED)
      return std::shared_ptr<SharedBytes>(
          new SharedBytes(descriptor, static_cast<std::byte*>(begin), bytes, status.st_ino));
  }
  close(descriptor);
  return nullptr;
}

std::shared_ptr<SharedBytes> SharedBytes::make(uint64_t bytes) {
  const int descriptor = memfd_create("ptxsim", MFD_CLOEXEC);
  if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    close(descriptor);
    return nullptr;
  }
  return of_own(descriptor);
}

std::shared_ptr<SharedBytes> SharedBytes::of_descriptor(int descriptor) {
  return of_own(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

std::shared_ptr<SharedBytes> SharedBytes::of_process(int process, int descriptor,
                                                     uint64_t identity) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  auto found = of_own(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return found != nullptr && found->identity() == identity ? found : nullptr;
}

int SharedBytes::new_descriptor() const { return fcntl(descriptor_, F_DUPFD, 0); }

SharedBytes::~SharedBytes() {
  munmap(begin_, bytes_);
  close(descriptor_);
}

}  // namespace ptxsim::cuda
