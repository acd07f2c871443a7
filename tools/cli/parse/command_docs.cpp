#include "tools/cli/parse/command_docs.hpp"

#include <algorithm>

#include "dualgemm/dualgemm.hpp"
#include "tools/cli/parse/parse_values.hpp"

namespace dualgemm::cli {
namespace {

OptionDoc doc_of(const CLI::Option& option) {
  OptionDoc doc;
  for (const std::string& name : option.get_snames()) doc.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) doc.names.push_back("--" + name);
  const std::string type = option.get_type_name();  // "TYPE:a|b" where there are choices
  if (option.get_items_expected_max() > 0) doc.value = type.substr(0, type.find(':'));
  if (doc.names.empty()) doc.value = option.get_name(true);
  if (const size_t colon = type.find(':'); colon != std::string::npos)
    doc.choices = split(type.substr(colon + 1), '|');
  doc.what = option.get_description();
  doc.default_text = option.get_default_str();
  doc.required = option.get_required();
  doc.repeatable = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  doc.group = option.get_positional() ? "Arguments" : option.get_group();
  return doc;
}

}  // namespace

ProgramDoc document(const CLI::App& program) {
  ProgramDoc doc{program.get_description(), program.get_footer(), {}};
  for (const CLI::App* app : program.get_subcommands(nullptr)) {
    CommandDoc command{app->get_name(), app->get_description(), {}, app->get_footer()};
    for (const CLI::Option* option : app->get_options()) command.options.push_back(doc_of(*option));
    std::vector<std::string> groups = {"Arguments"};  // then in the order of their first options
    for (const OptionDoc& option : command.options) {
      if (option.group == kOutputGroup) continue;
      if (std::find(groups.begin(), groups.end(), option.group) == groups.end())
        groups.push_back(option.group);
    }
    const auto place = [&](const OptionDoc& option) {
      return std::find(groups.begin(), groups.end(), option.group) - groups.begin();
    };
    std::stable_sort(command.options.begin(), command.options.end(),
                     [&](const OptionDoc& x, const OptionDoc& y) { return place(x) < place(y); });
    doc.commands.push_back(std::move(command));
  }
  return doc;
}

const CommandDoc* find_command(const ProgramDoc& program, const std::string& name) {
  for (const CommandDoc& command : program.commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::vector<std::string> command_names(const ProgramDoc& program) {
  std::vector<std::string> names;
  for (const CommandDoc& command : program.commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> option_names(const CommandDoc& command) {
  std::vector<std::string> names;
  for (const OptionDoc& option : command.options) {
    for (const std::string& name : option.names) {
      if (name.rfind("--", 0) == 0) names.push_back(name);
    }
  }
  return names;
}

std::string usage_line(const CommandDoc& command) {
  std::string text = "dualgemm " + command.name + " [OPTIONS]";
  for (const OptionDoc& option : command.options) {
    if (!option.names.empty()) continue;
    text += option.required ? " " + option.value : " [" + option.value + "]";
  }
  return text;
}

Json to_json(const CommandDoc& command) {
  Json options = Json::array();
  for (const OptionDoc& option : command.options) {
    options.push_back({{"names", option.names},
                       {"value", option.value},
                       {"what", option.what},
                       {"default", option.default_text},
                       {"choices", option.choices},
                       {"required", option.required},
                       {"group", option.group}});
  }
  return {{"command", command.name}, {"what", command.what}, {"options", std::move(options)}};
}

Json to_json(const ProgramDoc& program) {
  Json commands = Json::array();
  for (const CommandDoc& command : program.commands) commands.push_back(to_json(command));
  return {{"program", "dualgemm"}, {"version", version()}, {"commands", std::move(commands)}};
}

}  // namespace dualgemm::cli
