// help, man page and completions come from one table: each must hold every command, option and
// value.
#include <nlohmann/json.hpp>
#include <set>

#include "dualgemm/dualgemm.hpp"
#include "run_program.hpp"

namespace dualgemm::test {
namespace {

using nlohmann::json;
using TableOfCommands = CliTest;

json table_of(const ProgramResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result;
  return json::parse(result.out, nullptr, false);
}

TEST_F(TableOfCommands, HelpCommandEqualsHelpOption) {
  const json table = table_of(run({"help", "--json"}));
  ASSERT_GE(table["commands"].size(), 12u);
  for (const json& command : table["commands"]) {
    const std::string name = command["command"];
    const ProgramResult by_command = run({"help", name}), by_option = run({name, "--help"});
    EXPECT_EQ(by_command.exit_code, 0) << name;
    EXPECT_EQ(by_command.out, by_option.out) << name;
    for (const json& option : command["options"]) {
      for (const std::string spelling : option["names"])
        EXPECT_TRUE(contains(by_command.out, spelling)) << name;
    }
  }
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
}

TEST_F(TableOfCommands, EveryCommandHasJson) {
  const json table = table_of(run({"help", "--json"}));
  for (const json& command : table["commands"]) {
    std::set<std::string> names;
    for (const json& option : command["options"]) {
      for (const std::string name : option["names"]) names.insert(name);
    }
    EXPECT_EQ(names.count("--json"), 1u) << command["command"];
    EXPECT_EQ(names.count("--color"), 1u) << command["command"];
  }
}

// What the library's tables hold is what help offers.
TEST_F(TableOfCommands, ChoicesAreTheLibrarys) {
  const json plan = table_of(run({"help", "plan", "--json"}));
  int seen = 0;
  for (const json& option : plan["options"]) {
    const std::string name =
        option["names"].empty() ? "" : option["names"].back().get<std::string>();
    if (name == "--act") {
      ++seen;
      for (const std::string choice : option["choices"]) EXPECT_TRUE(parse_activation(choice));
      EXPECT_EQ(option["choices"].front(), name_of(ActivationKind::kSilu));
      EXPECT_EQ(option["choices"].back(), name_of(ActivationKind::kIdentity));
    }
    if (name == "--isa") {
      ++seen;
      const std::vector<std::string> choices = option["choices"];
      for (const Isa isa : {Isa::kAuto, Isa::kAvx2, Isa::kSm80})
        EXPECT_NE(std::find(choices.begin(), choices.end(), name_of(isa)), choices.end());
    }
    if (name == "--strategy") {
      ++seen;
      const std::vector<std::string> choices = option["choices"];
      for (const StrategyId strategy : all_strategies())
        EXPECT_NE(std::find(choices.begin(), choices.end(), name_of(strategy)), choices.end());
    }
  }
  EXPECT_EQ(seen, 3);
  const std::string overview = run({"help"}).out;
  for (const StrategyId strategy : all_strategies())
    EXPECT_TRUE(contains(overview, std::string("  ") + name_of(strategy) + " "));
}

TEST_F(TableOfCommands, OptionsAreGrouped) {
  const std::string help = run({"help", "bench"}).out;
  size_t last = 0;
  for (const char* heading :
       {"\nShape:\n", "\nProblem:\n", "\nExecution:\n", "\nTiming:\n", "\nOutput:\n"}) {
    const size_t at = help.find(heading);
    ASSERT_NE(at, std::string::npos) << heading << help;
    EXPECT_GT(at, last);
    last = at;
  }
}

TEST_F(TableOfCommands, HelpFitsTheTerminal) {
  for (const int width : {50, 80, 120}) {
    const std::vector<std::string> environment = {"COLUMNS=" + std::to_string(width)};
    for (const char* command : {"", "run", "bench", "quantize", "plan"}) {
      std::vector<std::string> arguments = {"help"};
      if (*command != '\0') arguments.emplace_back(command);
      std::istringstream lines(run(arguments, environment).out);
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(line.size(), static_cast<size_t>(width)) << command << ": " << line;
    }
  }
}

TEST_F(TableOfCommands, ColourOnlyWhenAskedFor) {
  EXPECT_EQ(run({"help", "run"}).out.find('\033'), std::string::npos);
  EXPECT_NE(run({"help", "run", "--color", "always"}).out.find('\033'), std::string::npos);
  EXPECT_NE(run({"run", "--help", "--color=always"}).out.find('\033'), std::string::npos);
  EXPECT_EQ(run({"help", "run", "--color", "always", "--json"}).out.find('\033'),
            std::string::npos);
}

TEST_F(TableOfCommands, CompletionsKnowEveryCommandAndOption) {
  const json table = table_of(run({"help", "--json"}));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const ProgramResult script = run({"completion", shell});
    ASSERT_EQ(script.exit_code, 0) << script;
    for (const json& command : table["commands"]) {
      EXPECT_TRUE(contains(script.out, command["command"]));
      for (const json& option : command["options"]) {
        for (const std::string name : option["names"]) {
          const bool fish = std::string(shell) == "fish";
          const std::string spelled = !fish                      ? name
                                      : name.rfind("--", 0) == 0 ? "-l " + name.substr(2)
                                                                 : "-s " + name.substr(1);
          EXPECT_TRUE(contains(script.out, spelled)) << shell;
        }
      }
    }
    EXPECT_EQ(table_of(run({"completion", shell, "--json"}))["script"], script.out);
  }
}

// The script at work: what bash offers at some cursors.
TEST_F(TableOfCommands, BashCompletes) {
  write_text("complete.bash", run({"completion", "bash"}).out);
  const auto offered = [&](const std::string& words, int cursor) {
    write_text("ask.bash", "set -eu\nsource " + path("complete.bash") + "\nCOMP_WORDS=(" + words +
                               ")\nCOMP_CWORD=" + std::to_string(cursor) +
                               "\n_dualgemm\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    FILE* pipe = popen(("bash " + path("ask.bash") + " 2>&1").c_str(), "r");
    std::string out;
    for (int c = pipe == nullptr ? EOF : fgetc(pipe); c != EOF; c = fgetc(pipe))
      out += static_cast<char>(c);
    if (pipe != nullptr) pclose(pipe);
    return out;
  };
  EXPECT_EQ(offered("dualgemm ver", 1), "verify\n");
  EXPECT_EQ(offered("dualgemm plan --act gelu_t", 3), "gelu_tanh\n");
  EXPECT_EQ(offered("dualgemm plan --batch", 2), "--batch-invariant\n");
  EXPECT_EQ(offered("dualgemm completion z", 2), "zsh\n");
}

TEST_F(TableOfCommands, ManPageNamesEverything) {
  const ProgramResult page = run({"man"});
  ASSERT_EQ(page.exit_code, 0) << page;
  EXPECT_EQ(page.out.rfind(".TH DUALGEMM 1", 0), 0u);
  for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "ENVIRONMENT"})
    EXPECT_TRUE(contains(page.out, std::string(".SH ") + section));
  const json table = table_of(run({"help", "--json"}));
  for (const json& command : table["commands"])
    EXPECT_TRUE(contains(page.out, "dualgemm " + std::string(command["command"]).substr(0, 4)));
  EXPECT_TRUE(contains(page.out, "\\fB\\-\\-batch\\-invariant\\fR"));
  // What is not there is not checked: groff comes with man on most machines.
  write_text("dualgemm.1", page.out);
  const std::string check = "command -v groff > /dev/null && groff -man -ww -z " +
                            path("dualgemm.1") + " > " + path("groff.txt") + " 2>&1";
  if (std::system(check.c_str()) != 0 && !std::filesystem::exists(path("groff.txt")))
    GTEST_SKIP() << "groff is not installed";
  EXPECT_EQ(read_text(path("groff.txt")), "");
}

TEST_F(TableOfCommands, GpusAreListedAndDescribed) {
  const json list = table_of(run({"info", "--devices", "--json"}))["gpus"];
  ASSERT_GE(list.size(), 8u);
  std::set<std::string> names;
  for (const json& gpu : list) {
    EXPECT_TRUE(names.insert(gpu["name"]).second) << gpu["name"];
    for (const json& alias : gpu["aliases"]) EXPECT_TRUE(names.insert(alias).second) << alias;
    EXPECT_GE(gpu["compute_capability"].get<int>(), 80);
    EXPECT_GT(gpu["sms"].get<int>(), 0);
  }
  for (const char* name :
       {"b200", "b300", "h200", "h100", "rtx5090", "sm_100a", "sm_90a", "sm_120a"})
    EXPECT_EQ(names.count(name), 1u) << name;
  const std::string table = run({"info", "--devices"}).out;
  for (const json& gpu : list) EXPECT_TRUE(contains(table, gpu["name"]));
}

TEST_F(TableOfCommands, PlansForGpusThatAreNotThere) {
  const std::vector<std::string> shape = {"plan", "--m",  "256",    "--n",     "4096",
                                          "--k",  "7168", "--json", "--device"};
  const auto plan_for = [&](const std::string& device) {
    std::vector<std::string> arguments = shape;
    arguments.push_back(device);
    return run(arguments);
  };
  const json info = table_of(run({"info", "--json", "--no-peaks"}));
  if (info["build"]["cuda"] == false) {
    const ProgramResult refused = plan_for("h200");
    EXPECT_EQ(refused.exit_code, 2) << refused;
    EXPECT_TRUE(contains(refused.err, "no CUDA part"));
    return;
  }
  const std::pair<const char*, const char*> expected[] = {
      {"b200", "sm100a"}, {"sm_100a", "sm100a"}, {"b300", "sm100a"}, {"h200", "sm90a"},
      {"h100", "sm90a"},  {"rtx4090", "sm80"},   {"a100", "sm80"},   {"rtx5090", "sm120a"},
      {"gb10", "sm120a"}, {"l40s", "sm80"},      {"rtx3090", "sm80"}};
  for (const auto& [device, isa] : expected) {
    const json plan = table_of(plan_for(device));
    EXPECT_EQ(plan["isa"], isa) << device;
    EXPECT_EQ(plan["device"], "cuda");
    EXPECT_EQ(plan["for_gpu"], device);
  }
  for (const char* device : {"rtx5090", "gb10", "a100", "rtx3090", "rtx4090", "l40s"}) {
    const json time = table_of(plan_for(device))["predicted"];
    ASSERT_TRUE(time.is_object()) << device;
    EXPECT_GT(time["low_us"], 0.0);
    EXPECT_LT(time["low_us"], time["us"]);
    EXPECT_LT(time["us"], time["high_us"]);
  }
  EXPECT_TRUE(table_of(plan_for("h200"))["predicted"].is_null());
  write_text("mine.json", R"({"product": "mine", "compute_capability": 90, "sms": 66})");
  EXPECT_EQ(table_of(plan_for(path("mine.json")))["isa"], "sm90a");
  write_text("old.json", R"({"compute_capability": 75, "sms": 40})");
  EXPECT_EQ(plan_for(path("old.json")).exit_code, 2);
  write_text("bad.json", R"({"compute_capability": 90})");
  EXPECT_TRUE(contains(plan_for(path("bad.json")).err, "sms: missing"));
  write_text("broken.json", "{");
  EXPECT_EQ(plan_for(path("broken.json")).exit_code, 2);
  EXPECT_EQ(plan_for(path("absent.json")).exit_code, 1);
}

TEST_F(TableOfCommands, WhatIsWrittenIsReportedAsJson) {
  const json made = table_of(run({"make-layer", "--out", path("l.safetensors"), "--m", "5", "--n",
                                  "32", "--k", "64", "--json"}));
  EXPECT_EQ(made["out"], path("l.safetensors"));
  EXPECT_EQ(made["n"], 32);
  EXPECT_EQ(run({"quantize", path("l.safetensors"), "--out", path("q.safetensors")}).exit_code, 0);
  const json converted =
      table_of(run({"convert", path("q.safetensors"), "--out", path("s.safetensors"),
                    "--scale-layout", "swizzled_128x4", "--json"}));
  EXPECT_EQ(converted["scale_layout"], "swizzled_128x4");
  EXPECT_TRUE(converted["convention"].is_null());
}

}  // namespace
}  // namespace dualgemm::test
