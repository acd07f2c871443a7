#include "tools/checkpoint_jobs/finished_shards.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/safetensors.hpp"
#include "tools/checkpoint_jobs/model_folder.hpp"

namespace dualgemm::checkpoint {
namespace {

namespace paths = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kJob[] = "job.json";

Status write_text(const std::string& path, const std::string& text) {
  return write_file(path, std::as_bytes(std::span(text)));
}

Json json_of(const QuantizeCheckpointReport& report) {
  Json quantized = Json::array();
  for (const QuantizedTensor& one : report.quantized) {
    quantized.push_back({{"name", one.name},
                         {"module", one.module},
                         {"n", one.n},
                         {"k", one.k},
                         {"bytes_before", one.bytes_before},
                         {"bytes_after", one.bytes_after},
                         {"global_scale", one.global_scale},
                         {"shares_scale", one.shares_scale},
                         {"has_input_scale", one.has_input_scale}});
  }
  return {{"quantized", quantized},
          {"copied", report.copied},
          {"left_alone", report.left_alone},
          {"unfit", report.unfit}};
}

// What json_of() wrote; throws where it is none.
void add_report(const Json& json, QuantizeCheckpointReport& report) {
  for (const Json& one : json.at("quantized")) {
    QuantizedTensor tensor;
    tensor.name = one.at("name").get<std::string>();
    tensor.module = one.at("module").get<std::string>();
    tensor.n = one.at("n").get<int64_t>();
    tensor.k = one.at("k").get<int64_t>();
    tensor.bytes_before = one.at("bytes_before").get<int64_t>();
    tensor.bytes_after = one.at("bytes_after").get<int64_t>();
    tensor.global_scale = one.at("global_scale").get<float>();
    tensor.shares_scale = one.at("shares_scale").get<bool>();
    tensor.has_input_scale = one.at("has_input_scale").get<bool>();
    report.quantized.push_back(std::move(tensor));
  }
  for (const auto& [key, names] : {std::pair{"copied", &report.copied},
                                   {"left_alone", &report.left_alone},
                                   {"unfit", &report.unfit}}) {
    for (const Json& name : json.at(key)) names->push_back(name.get<std::string>());
  }
}

}  // namespace

Expected<FinishedShards> FinishedShards::open(const std::string& target, const std::string& job) {
  FinishedShards shards;
  std::string text = target;
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  const paths::path path(text);
  const paths::path parent = path.has_parent_path() ? path.parent_path() : paths::path(".");
  shards.folder_ =
      (parent / ("." + path.filename().string().substr(0, 200) + ".dualgemm-resume")).string();
  if (mkdir(shards.folder_.c_str(), 0777) != 0 && errno != EEXIST) {
    return Status::error(errno == ENOENT ? StatusCode::kNotFound : StatusCode::kIoError,
                         shards.folder_, std::strerror(errno), "must be a folder to write to");
  }
  shards.lock_ = ::open(shards.folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (shards.lock_ >= 0 && flock(shards.lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Status::invalid("--resume", shards.folder_, "another run holds it");
  const Expected<std::string> before = read_small_file(shards.path(kJob));
  if (!before) return before.status();
  if (before->empty()) {
    DUALGEMM_TRY(write_text(shards.path(kJob), job));
    return shards;
  }
  if (*before == job) return shards;
  return Status::invalid("--resume", shards.folder_,
                         "holds shards of other inputs or options: run with those, or remove it");
}

FinishedShards::FinishedShards(FinishedShards&& other) noexcept
    : folder_(std::move(other.folder_)), lock_(std::exchange(other.lock_, -1)) {}

FinishedShards::~FinishedShards() {
  if (lock_ >= 0) close(lock_);
}

std::string FinishedShards::path(const std::string& shard) const {
  std::string name = shard;
  if (const size_t of = name.rfind("-of-"); of != std::string::npos) name.replace(of, 4, "_of_");
  return folder_ + "/" + name;
}

Expected<bool> FinishedShards::find(const std::string& shard,
                                    QuantizeCheckpointReport& report) const {
  const std::string name = path(shard) + ".json";
  const Expected<std::string> text = read_small_file(name);
  if (!text) return text.status();
  if (text->empty() || access(path(shard).c_str(), F_OK) != 0) return false;
  QuantizeCheckpointReport found;
  const Json json = Json::parse(*text, nullptr, false);
  try {
    add_report(json, found);
  } catch (const nlohmann::json::exception& error) {
    return Status::error(StatusCode::kCorruptFile, name, error.what(), "remove the folder");
  }
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(report.quantized, found.quantized);
  append(report.copied, found.copied);
  append(report.left_alone, found.left_alone);
  append(report.unfit, found.unfit);
  return true;
}

Status FinishedShards::add(const std::string& shard, const TensorFile& tensors,
                           const QuantizeCheckpointReport& report) const {
  DUALGEMM_TRY(write_safetensors(path(shard), tensors));
  return write_text(path(shard) + ".json", json_of(report).dump(1) + "\n");
}

Status FinishedShards::put(const std::string& shard, const std::string& to) const {
  std::error_code error;
  paths::create_hard_link(path(shard), to, error);
  if (!error) return {};
  paths::copy_file(path(shard), to, error);
  if (!error) return {};
  return Status::error(StatusCode::kIoError, to, error.message(), "the shard could not be copied");
}

void FinishedShards::remove() noexcept {
  // Ended between two files it would be a job that lacks some: first a name that the next run for
  // this target sweeps away.
  constexpr std::string_view kEnd = "resume";
  const std::string going =
      fmt::format("{}{}-done.tmp", folder_.substr(0, folder_.size() - kEnd.size()), getpid());
  std::error_code error, ignored;
  paths::rename(folder_, going, error);
  paths::remove_all(error ? folder_ : going, ignored);
}

std::string identity_of(const TensorFile& in) {
  Json files = Json::array();
  for (const std::string& path : in.paths()) {
    struct stat info = {};
    (void)stat(path.c_str(), &info);
    std::error_code ignored;
    files.push_back(
        {{"path", paths::canonical(path, ignored).string()},
         {"bytes", static_cast<int64_t>(info.st_size)},
         {"changed", fmt::format("{}.{:09}", info.st_mtim.tv_sec, info.st_mtim.tv_nsec)}});
  }
  return files.dump(1);
}

}  // namespace dualgemm::checkpoint
