// Any bytes as the JSON that Python writes: what another parser accepts is accepted, members are
// parts of the text that are JSON themselves, and an edited text is read as the old one with the
// new member.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "checkpoint/json_text.hpp"
#include "tools/checkpoint_jobs/quantization_config.hpp"

namespace {

using namespace dualgemm;
using namespace dualgemm::checkpoint;

void require(bool condition) {
  if (!condition) std::abort();  // the only way to tell libFuzzer
}

// A parser whose depth is bounded by ours. It skips a byte order mark and ends at a zero byte.
bool accepted_elsewhere(std::string_view text) {
  return text.find('\0') == text.npos && !text.starts_with("\xEF\xBB\xBF") &&
         nlohmann::json::accept(text);
}

void check_members(std::string_view text, const std::vector<JsonMember>& members) {
  const char* end = text.data();
  for (const JsonMember& member : members) {
    require(member.value.data() > end && !member.value.empty());
    end = member.value.data() + member.value.size();
    require(end < text.data() + text.size());
    require(check_json(member.value, "value").ok());
  }
}

void check_edited(std::string_view text, const std::vector<JsonMember>& members) {
  const bool is_there = find_member(members, "key") != nullptr;
  const std::string edited = with_json_member(text, members, "key", "[NaN]");
  const auto again = json_members(edited, "edited");
  require(again.ok() && again->size() == members.size() + (is_there ? 0 : 1));
  require(find_member(*again, "key")->value == "[NaN]");
  for (size_t i = 0; i < members.size(); ++i) {
    require((*again)[i].key == members[i].key);
    require(members[i].key == "key" || (*again)[i].value == members[i].value);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Status status = check_json(text, "fuzz");
  require(status.ok() || !status.message().empty());
  if (accepted_elsewhere(text))
    require(status.ok() || status.observed().find("too deeply") != std::string::npos);
  const auto members = json_members(text, "fuzz");
  require(status.ok() || !members.ok());
  if (members) {
    check_members(text, *members);
    check_edited(text, *members);
  }
  const auto config = config_with_quantization(text, "config.json", Convention::kModelOpt, {});
  if (config) require(json_members(*config, "config.json").ok());
  return 0;
}
