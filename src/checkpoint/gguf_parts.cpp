#include <fmt/format.h>

#include "checkpoint/corrupt.hpp"
#include "checkpoint/gguf.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/json_events.hpp"
#include "checkpoint/mapped_file.hpp"

namespace dualgemm::checkpoint {
namespace {

struct Part {
  TensorFile file;
  GgufSplit split;
};

Expected<Part> open_part(const std::string& path) {
  const Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped) return mapped.status();
  Part part;
  Expected<TensorFile> file = parse_gguf((*mapped)->bytes(), path, &part.split);
  if (!file) return file.status();
  part.file = *std::move(file);
  part.file.keep_alive(*mapped);
  part.file.add_path(path);
  return part;
}

std::string end_of_part(uint64_t number, uint64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

// Adds the tensors of `part`, which must be number `number` of `count`.
Status join(const Part& part, uint64_t number, uint64_t count, TensorFile& all) {
  const std::string& path = part.file.origin();
  if (part.split.number != number || part.split.count != count) {
    return corrupt(path, fmt::format("says part {} of {}", part.split.number + 1, part.split.count),
                   fmt::format("must be part {} of {}", number + 1, count));
  }
  all.share_memory_of(part.file);
  all.add_path(path);
  all.metadata().insert(part.file.metadata().begin(), part.file.metadata().end());
  for (const std::string& tensor : part.file.left_out()) all.leave_out(tensor);
  for (const auto& [name, tensor] : part.file.tensors()) {
    if (all.add(tensor).ok()) continue;
    return corrupt(path, fmt::format("tensor {} is in another part, too", printable(name)),
                   "names must be unique");
  }
  return {};
}

// All parts of the model of which `path` is the part `one`.
Expected<TensorFile> open_parts(const std::string& path, const GgufSplit& one) {
  const std::string end = end_of_part(one.number, one.count);
  if (!path.ends_with(end)) {
    return corrupt(path, fmt::format("part {} of {} by its keys", one.number + 1, one.count),
                   "must be called NAME" + end +
                       " beside the others, or be merged by `llama-gguf-split --merge`");
  }
  const std::string stem = path.substr(0, path.size() - end.size());
  TensorFile all;
  all.set_origin(path);
  uint64_t tensors = 0;
  for (uint64_t number = 0; number < one.count; ++number) {
    const Expected<Part> part = open_part(stem + end_of_part(number, one.count));
    if (!part) return part.status();
    DUALGEMM_TRY(join(*part, number, one.count, all));
    tensors += part->split.tensors_here;
  }
  if (one.tensors.value_or(tensors) == tensors) return all;
  return corrupt(path, fmt::format("{} tensors in {} parts", tensors, one.count),
                 fmt::format("must be {}", *one.tensors));
}

}  // namespace

Expected<TensorFile> open_gguf(const std::string& path) {
  return guarded(path, [&]() -> Expected<TensorFile> {
    Expected<Part> part = open_part(path);
    if (!part) return part.status();
    if (part->split.count <= 1) return std::move(part->file);
    return open_parts(path, part->split);
  });
}

}  // namespace dualgemm::checkpoint
