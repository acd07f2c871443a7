// Runs every PTX case on the GPU and in ptxsim and compares the buffers bit for bit. Cases with a
// tolerance (approximate functions) are compared by ulp, and the largest distance is printed.
//   ptxsim_silicon <folder of .ptx files>...
//   ptxsim_silicon --time <.ptx file> <.json file>...
// --time: instead, how long each case takes on the GPU; a line of JSON for each (time_on_device). A
// file whose name ends in .cold.json is timed with cold caches.
// Exit codes: 0 all agree; 1 a difference, or a kernel that failed; 2 no GPU or unreadable input.
#include <fmt/format.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>
#include <string_view>

#include "device.hpp"

namespace {

using namespace ptxsim;

struct Verdict {
  enum Kind { kAgrees, kDiffers, kNotHere, kBroken } kind = kAgrees;
  std::string text;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Numbers of representable f32 values between two patterns.
int64_t ulps(uint32_t a, uint32_t b) {
  const auto ordered = [](uint32_t x) {
    return (x >> 31) != 0 ? -static_cast<int64_t>(x & 0x7fffffff) : int64_t{x};
  };
  return std::abs(ordered(a) - ordered(b));
}

struct Distance {
  uint64_t bytes = 0, first = 0;
  int64_t largest_ulps = 0;
};

Distance compare(const CaseBuffer& buffer, const std::vector<std::byte>& device,
                 const std::vector<std::byte>& simulated, const std::vector<bool>& written) {
  Distance d;
  const bool by_ulp =
      buffer.type == ElementType::kF32 && (buffer.absolute != 0 || buffer.relative != 0);
  const size_t step = by_ulp ? 4 : 1;
  for (size_t i = 0; i + step <= device.size(); i += step) {
    if (!written.empty() && !written[i])
      continue;  // uninitialised in both, with different patterns
    if (std::memcmp(&device[i], &simulated[i], step) == 0) continue;
    if (by_ulp) {
      uint32_t a, b;
      std::memcpy(&a, &device[i], 4);
      std::memcpy(&b, &simulated[i], 4);
      const bool both_nan = (a & 0x7fffffff) > 0x7f800000 && (b & 0x7fffffff) > 0x7f800000;
      if (!both_nan) d.largest_ulps = std::max(d.largest_ulps, ulps(a, b));
      continue;
    }
    if (d.bytes++ == 0) d.first = i;
  }
  return d;
}

bool runs_here(const Module& module, const silicon::DeviceInfo& device) {
  const int arch = std::atoi(module.target.c_str() + 3);  // "sm_90a"
  const bool specific = module.target.back() == 'a';
  const int here = device.major * 10 + device.minor;
  return specific ? arch == here : arch <= here;
}

std::string differences(const Case& c, const silicon::DeviceRun& device,
                        const CaseResult& simulated, int64_t& worst) {
  std::string text;
  for (size_t i = 0; i < c.buffers.size(); ++i) {
    const CaseBuffer& buffer = c.buffers[i];
    CaseResult& result = const_cast<CaseResult&>(simulated);
    const GlobalBuffer& mine = *result.memory.find(buffer.name);
    const Distance d = compare(buffer, device.buffers[i], mine.data, mine.written);
    worst = std::max(worst, d.largest_ulps);
    if (d.bytes == 0) continue;
    const size_t width = bytes_of(buffer.type), at = d.first / width * width;
    uint64_t there = 0, here = 0;
    std::memcpy(&there, &device.buffers[i][at], width);
    std::memcpy(&here, &mine.data[at], width);
    text += fmt::format("{}{}: {} bytes differ, first [{}]: GPU 0x{:x}, ptxsim 0x{:x}",
                        text.empty() ? "" : "; ", buffer.name, d.bytes, at / width, there, here);
  }
  return text;
}

Verdict run_file(const std::filesystem::path& path, const silicon::DeviceInfo& device) {
  const std::string ptx = read(path), json = case_text(ptx), folder = path.parent_path().string();
  auto module = load(ptx, path.filename().string());
  auto c = parse_case(json, folder);
  if (!c.ok()) return {Verdict::kBroken, to_string(c.error())};
  if (!module.ok()) return {Verdict::kBroken, to_string(module.error())};
  if (!runs_here(**module, device)) return {Verdict::kNotHere, "needs " + (*module)->target};
  if (!c->launches.empty()) return {Verdict::kNotHere, "several launches"};
  if (c->expect_error || c->expect_reports)
    return {Verdict::kNotHere, "a broken rule: not run on silicon"};
  auto program = decode(*module, c->entry);
  if (!program.ok()) return {Verdict::kBroken, to_string(program.error())};
  const CaseResult simulated = run_case(*c, *program, Options{});
  if (!simulated.mismatches.empty())
    return {Verdict::kBroken, "in ptxsim: " + simulated.mismatches[0]};
  auto on_device = silicon::run_on_device(ptx, json, folder);
  if (!on_device.ok()) return {Verdict::kBroken, "on the GPU: " + on_device.error().message};
  int64_t worst = 0;
  const std::string text = differences(*c, *on_device, simulated, worst);
  if (!text.empty()) return {Verdict::kDiffers, text};
  return {Verdict::kAgrees, worst == 0 ? "same bits" : fmt::format("at most {} ulp", worst)};
}

static constexpr const char* kNames[] = {"", "DIFFERS: ", "not compared: ", "BROKEN: "};
// Why cases were not compared, and how many for each reason.
struct Reasons {
  static constexpr size_t kMost = 16;
  struct {
    char text[64];
    int count;
  } list[kMost] = {};

  void add(const std::string& text) {
    for (auto& reason : list) {
      if (reason.count != 0 && text.compare(0, sizeof reason.text - 1, reason.text) != 0) continue;
      if (reason.count++ == 0) text.copy(reason.text, sizeof reason.text - 1);
      return;
    }
  }
};

// What the processes share: the file whose turn it is, and how many ended how.
struct RunProgress {
  size_t next = 0;
  int counts[4] = {};
  Reasons not_compared;
};

constexpr int kNoDevice = 9;

int print_device() {
  const auto device = silicon::open_device();
  if (!device.ok()) {
    std::cerr << device.error().message << "\n";
    return kNoDevice;
  }
  std::cout << fmt::format(
                   "{}, compute capability {}.{}, driver {}\n\n| case | comparison |\n|---|---|\n",
                   device.value().name, device.value().major, device.value().minor,
                   device.value().driver)
            << std::flush;
  return 0;
}

// Until one is broken: a kernel that fails leaves the GPU's context unusable.
int print_rows(const std::vector<std::filesystem::path>& files, RunProgress& progress) {
  const auto device = silicon::open_device();
  while (progress.next < files.size()) {
    const std::filesystem::path& file = files[progress.next];
    const Verdict verdict = device.ok() ? run_file(file, device.value())
                                        : Verdict{Verdict::kBroken, device.error().message};
    std::cout << fmt::format("| {} | {}{} |\n", file.stem().string(), kNames[verdict.kind],
                             verdict.text)
              << std::flush;
    ++progress.counts[verdict.kind];
    if (verdict.kind == Verdict::kNotHere) progress.not_compared.add(verdict.text);
    ++progress.next;
    if (verdict.kind == Verdict::kBroken) break;
  }
  return 0;
}

int print_times(const std::filesystem::path& kernel, const std::vector<std::string>& cases) {
  const auto device = silicon::open_device();
  if (!device.ok()) {
    std::cerr << device.error().message << "\n";
    return 2;
  }
  const std::string ptx = read(kernel);
  for (const std::string& name : cases) {
    const std::filesystem::path file = name;
    const auto us = silicon::time_on_device(ptx, read(file), file.parent_path().string(),
                                            name.ends_with(".cold.json"));
    if (!us.ok()) {
      std::cerr << name << ": " << us.error().message << "\n";
      return 1;
    }
    std::cout << fmt::format("{{\"file\": \"{}\", \"device\": \"{}\", \"us\": {:.4g}}}\n",
                             file.filename().string(), device.value().name, us.value())
              << std::flush;
  }
  return 0;
}

// In a process of its own. True when it came to its end and returned 0.
template <class F>
bool apart(F&& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  return child >= 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 && std::string_view(argv[1]) == "--time")
    return print_times(argv[2], {argv + 3, argv + argc});
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  void* const shared =
      mmap(nullptr, sizeof(RunProgress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (files.empty() || shared == MAP_FAILED || !apart(print_device)) return 2;
  RunProgress& progress = *new (shared) RunProgress;
  while (progress.next < files.size()) {
    const size_t begin = progress.next;
    if (apart([&] { return print_rows(files, progress); }) && progress.next > begin) continue;
    std::cout << fmt::format("| {} | {}the process ended |\n", files[progress.next].stem().string(),
                             kNames[Verdict::kBroken]);
    ++progress.counts[Verdict::kBroken];
    ++progress.next;
  }
  const int(&counts)[4] = progress.counts;
  std::cout << fmt::format("\n{} agree, {} differ, {} not compared, {} broken\n", counts[0],
                           counts[1], counts[2], counts[3]);
  for (const auto& reason : progress.not_compared.list)
    if (reason.count != 0)
      std::cout << fmt::format("{} not compared: {}\n", reason.count, reason.text);
  return counts[1] + counts[3] == 0 ? 0 : 1;
}
