#include "ptxsim/case/survivors.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "case/json_text.hpp"

namespace ptxsim {

Result<std::vector<Survivor>> parse_survivors(const std::string& json) {
  std::vector<Survivor> list;
  try {
    for (const auto& item : read_json(json)) {
      list.push_back({item.value("entry", ""), item.value("group", ""), item.value("what", ""),
                      item.at("text"), item.at("reason"), item.value("occurrence", -1)});
      if (list.back().reason.empty() || list.back().text.empty())
        return Error{ErrorKind::kInput, "survivors: every entry needs a text and a reason", {}};
    }
  } catch (const Fault& fault) {
    return Error{ErrorKind::kInput, "survivors: " + fault.error().message, fault.error().place};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kInput, std::string("survivors: ") + error.what(), {}};
  }
  return list;
}

namespace {

// How many statements before this one have the text.
int occurrence_of(const Program& program, uint32_t statement, const std::string& text) {
  int count = 0;
  for (uint32_t i = 0; i < statement; ++i)
    count += program.entry->statements[i].text.find(text) != std::string::npos;
  return count;
}

}  // namespace

const Survivor* find_survivor(const std::vector<Survivor>& list, const Program& program,
                              const Mutation& m) {
  const std::string& text = program.entry->statements[m.statement].text;
  const auto found = std::find_if(list.begin(), list.end(), [&](const Survivor& s) {
    return program.entry->name.find(s.entry) != std::string::npos &&
           m.group.find(s.group) != std::string::npos && m.what.find(s.what) != std::string::npos &&
           text.find(s.text) != std::string::npos &&
           (s.occurrence < 0 || s.occurrence == occurrence_of(program, m.statement, s.text));
  });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace ptxsim
