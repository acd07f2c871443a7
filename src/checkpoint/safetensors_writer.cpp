#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/json_events.hpp"
#include "checkpoint/safetensors.hpp"

namespace dualgemm::checkpoint {
namespace {

std::vector<const TensorView*> in_file_order(const TensorFile& file) {
  std::vector<const TensorView*> order;
  for (const auto& [name, tensor] : file.tensors()) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return bits_of(a->dtype) > bits_of(b->dtype);
  });
  return order;
}

// Throws on text that is not UTF-8.
std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

Expected<std::string> make_header(const std::vector<const TensorView*>& order,
                                  const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    std::string items;
    for (const auto& [key, value] : metadata) {
      items += fmt::format("{}{}:{}", items.empty() ? "" : ",", quoted(key), quoted(value));
    }
    json += fmt::format(R"("__metadata__":{{{}}})", items);
  }
  uint64_t begin = 0;
  for (const TensorView* tensor : order) {
    if (tensor->name == "__metadata__" || has_control_characters(tensor->name)) {
      return Status::invalid("tensor name", printable(tensor->name),
                             "must not be __metadata__ nor hold control characters");
    }
    const uint64_t end = begin + tensor->data.size();
    json += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        json.size() > 1 ? "," : "", quoted(tensor->name), name_of(tensor->dtype),
                        fmt::join(tensor->shape, ","), begin, end);
    begin = end;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');  // so that the data start at a multiple of 8
  return json;
}

}  // namespace

Status write_safetensors(AtomicFile& out, const TensorFile& file) {
  const std::string& path = out.path();
  return guarded(path, [&]() -> Status {
    const std::vector<const TensorView*> order = in_file_order(file);
    Expected<std::string> header = Status::invalid(path, "names or metadata", "must be UTF-8");
    try {
      header = make_header(order, file.metadata());
    } catch (const nlohmann::json::type_error&) {  // keeps the message above
    }
    if (!header) return header.status();
    if (header->size() > static_cast<size_t>(kMaxSafetensorsHeaderBytes)) {
      return Status::invalid(path, fmt::format("header of {} bytes", header->size()),
                             fmt::format("must be at most {}", kMaxSafetensorsHeaderBytes));
    }
    const uint64_t length = header->size();
    DUALGEMM_TRY(out.write(&length, sizeof(length)));
    DUALGEMM_TRY(out.write(header->data(), header->size()));
    for (const TensorView* tensor : order) DUALGEMM_TRY(out.write(tensor->data));
    return {};
  });
}

Status write_safetensors(const std::string& path, const TensorFile& file) {
  return guarded(path, [&]() -> Status {
    Expected<AtomicFile> out = AtomicFile::create(path);
    if (!out) return out.status();
    DUALGEMM_TRY(write_safetensors(*out, file));
    return out->commit();
  });
}

}  // namespace dualgemm::checkpoint
