// Jobs that write, ended at every call that touches a file: what stands there afterwards is what
// stood there before, or all that the job writes.
#ifdef DUALGEMM_FILE_FAULTS_PATH

#include <map>
#include <set>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors.hpp"
#include "run_program.hpp"

namespace dualgemm::test {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;
// What can be seen in a folder, and in the folders in it: path -> content.
using Contents = std::map<std::string, std::string>;

bool is_left_over(const fs::path& path) {
  return path.filename().string().find(".dualgemm-") != std::string::npos;
}

// Beside this program where it was copied to another machine, else where it was built.
std::string library_of_faults() {
  const std::filesystem::path built = DUALGEMM_FILE_FAULTS_PATH;
  std::error_code ignored;
  const std::filesystem::path beside =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / built.filename();
  return std::filesystem::exists(beside, ignored) ? beside.string() : built.string();
}

class Interrupted : public CliTest {
 protected:
  Contents contents() const {
    Contents all;
    for (auto entry = fs::recursive_directory_iterator(path("")); entry != end(entry); ++entry) {
      if (is_left_over(entry->path())) {
        if (entry->is_directory()) entry.disable_recursion_pending();
      } else if (entry->is_regular_file()) {
        all[fs::relative(entry->path(), path("")).string()] = read_text(entry->path());
      }
    }
    return all;
  }
  std::vector<std::string> left_over() const {
    std::vector<std::string> names;
    for (auto entry = fs::recursive_directory_iterator(path("")); entry != end(entry); ++entry) {
      if (is_left_over(entry->path())) names.push_back(entry->path());
    }
    return names;
  }
  ProgramResult run_with(const Arguments& arguments, Arguments faults) const {
    faults.push_back("LD_PRELOAD=" + library_of_faults());
    return run(arguments, faults);
  }
  // The folder as `before` has it.
  void restore(const Contents& before) const {
    fs::remove_all(path(""));
    fs::create_directory(path(""));
    for (const auto& [name, content] : before) {
      fs::create_directories(fs::path(path(name)).parent_path());
      write_text(name, content);
    }
  }
  long calls_of(const Arguments& arguments) const {
    const std::string count = path("count");
    const ProgramResult whole = run_with(arguments, {"FILE_FAULTS_COUNT=" + count});
    EXPECT_EQ(whole.exit_code, 0) << whole;
    const long calls = std::atol(read_text(count).c_str());
    fs::remove(count);
    return calls;
  }

  // Ends the job by `action` at each of its calls. `is_whole`: is a state right that is neither the
  // old nor the new one?
  void end_everywhere(const Arguments& arguments, const std::string& action,
                      const std::function<bool(const Contents&, const Contents&)>& is_right = {},
                      const Arguments& more = {}) const {
    const Contents before = contents();
    const long calls = calls_of(arguments);
    const Contents after = contents();
    ASSERT_NE(before, after);
    ASSERT_GT(calls, 5);
    for (long call = 1; call <= calls; ++call) {
      restore(before);
      Arguments faults = {"FILE_FAULTS_AT=" + std::to_string(call), "FILE_FAULTS_ACTION=" + action};
      faults.insert(faults.end(), more.begin(), more.end());
      const ProgramResult result = run_with(arguments, faults);
      const Contents now = contents();
      const bool right = now == before || now == after || (is_right && is_right(now, after));
      ASSERT_TRUE(right) << action << " at call " << call << " left\n" << names_of(now) << result;
      if (result.exit_code == 0) {
        ASSERT_EQ(now, after) << action << " at call " << call << " was not reported";
      }
      if (action == "term" || action == "int" || action == "hup") {
        ASSERT_EQ(left_over(), Arguments{}) << action << " at call " << call;
      }
      if (action == "kill" && call % 16 != 0) continue;  // the same command again, each time fails
      const ProgramResult again = run(repeated(arguments, now == after));
      ASSERT_EQ(again.exit_code, 0) << action << " at call " << call << "\n" << again;
      ASSERT_EQ(contents(), after);
    }
  }
  static Arguments repeated(Arguments arguments, bool was_done) {
    // A folder that holds a model, and configs beside a file, are refused without it.
    const bool can_force = arguments.front() == "quantize" && arguments.back() != "--force";
    if (was_done && can_force) arguments.push_back("--force");
    return arguments;
  }
  static std::string names_of(const Contents& contents) {
    std::string text;
    for (const auto& [name, content] : contents)
      text += "  " + name + ", " + std::to_string(content.size()) + " bytes\n";
    return text;
  }

  // A model in two shards in the folder `model`.
  void make_model() const {
    make_layer();
    const Expected<checkpoint::TensorFile> layer =
        checkpoint::TensorFile::open(path("layer.safetensors"));
    ASSERT_TRUE(layer.ok());
    fs::create_directory(path("model"));
    std::string map;
    int number = 0;
    for (const auto& [name, tensor] : layer->tensors()) {
      checkpoint::TensorFile shard;
      shard.share_memory_of(*layer);
      ASSERT_TRUE(shard.add(tensor).ok());
      const std::string file = "model-0000" + std::to_string(++number) + "-of-00002.safetensors";
      ASSERT_TRUE(checkpoint::write_safetensors(path("model/" + file), shard).ok());
      map += (map.empty() ? "" : ", ") + ("\"" + name + "\": \"" + file + "\"");
    }
    write_text("model/model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
    write_text("model/config.json", "{\"model_type\": \"llama\"}");
    write_text("model/tokenizer.json", "{}");
  }
};

TEST_F(Interrupted, QuantizingAModelIntoANewFolder) {
  make_model();
  const Arguments job = {"quantize", path("model"), "--out", path("q")};
  for (const char* action : {"kill", "term", "fail"}) {
    end_everywhere(job, action);
    fs::remove_all(path("q"));
  }
}

// Wherever it ends, the same command goes on, uses what was finished, and leaves nothing beside.
TEST_F(Interrupted, AResumedRunGoesOn) {
  make_model();
  const Arguments job = {"quantize", path("model"), "--out", path("q"), "--resume"};
  const Contents before = contents();
  const long calls = calls_of(job);
  const Contents after = contents();
  EXPECT_EQ(left_over(), Arguments{});
  int resumed[3] = {};
  for (const char* action : {"kill", "term", "fail"}) {
    // Kept between two of its own files a job is what kill leaves; the others are tried here and
    // there.
    const long step = action == std::string("kill") ? 1 : 7;
    for (long call = 1; call <= calls; call += step) {
      restore(before);
      const ProgramResult result = run_with(job, {"FILE_FAULTS_AT=" + std::to_string(call),
                                                  std::string("FILE_FAULTS_ACTION=") + action});
      const Contents now = contents();
      ASSERT_TRUE(now == before || now == after) << action << " at call " << call << "\n" << result;
      const ProgramResult again = run(repeated(job, now == after));
      ASSERT_EQ(again.exit_code, 0) << action << " at call " << call << "\n" << again;
      ASSERT_EQ(contents(), after) << action << " at call " << call;
      ASSERT_EQ(left_over(), Arguments{}) << action << " at call " << call;
      for (int there = 1; there <= 2; ++there) {
        const std::string said = std::to_string(there) + " of 2 shards were there";
        resumed[there] += again.err.find(said) != std::string::npos ? 1 : 0;
      }
    }
  }
  EXPECT_GT(resumed[1], 3);
  EXPECT_GT(resumed[2], 3);
}

// Shards of another job are none of this one's.
TEST_F(Interrupted, AResumedRunWantsTheSameJob) {
  make_model();
  const Arguments job = {"quantize", path("model"), "--out", path("q"), "--resume"};
  const long calls = calls_of(job);
  fs::remove_all(path("q"));
  const auto interrupt = [&] {
    (void)run_with(job, {"FILE_FAULTS_AT=" + std::to_string(calls / 2), "FILE_FAULTS_ACTION=kill"});
    EXPECT_TRUE(fs::exists(path(".q.dualgemm-resume/job.json")));
  };
  interrupt();
  Arguments other = job;
  other.push_back("--four-over-six");
  ProgramResult result = run(other);
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_NE(result.err.find("holds shards of other inputs or options"), std::string::npos)
      << result;
  write_text("model/model-00001-of-00002.safetensors",
             read_text(path("model/model-00001-of-00002.safetensors")));  // another time of change
  EXPECT_EQ(run(job).exit_code, 1);
  EXPECT_FALSE(fs::exists(path("q")));
  // Without --resume nothing is asked of it.
  EXPECT_EQ(run({"quantize", path("model"), "--out", path("q")}).exit_code, 0);
  for (const Arguments& wrong :
       {Arguments{"quantize", path("model"), "--out", path("q.safetensors"), "--resume"},
        Arguments{"quantize", path("model"), "--out", path("r"), "--resume", "--check"}}) {
    result = run(wrong);
    EXPECT_EQ(result.exit_code, 2) << result;
    EXPECT_NE(result.err.find("--resume"), std::string::npos) << result;
  }
}

TEST_F(Interrupted, QuantizingAModelInPlaceOfAnother) {
  make_model();
  fs::create_directory(path("q"));
  for (const char* name : {"model.safetensors", "config.json", "notes.txt", ".hidden"})
    write_text(std::string("q/") + name, "old");
  const Arguments job = {"quantize", path("model"), "--out", path("q"), "--force"};
  const Contents before = contents();
  end_everywhere(job, "kill");
  const Contents after = contents();
  EXPECT_EQ(after.count("q/model.safetensors"), 0u);
  EXPECT_EQ(after.at("q/notes.txt"), "old");
  EXPECT_EQ(after.at("q/.hidden"), "old");
  for (const char* action : {"int", "fail"}) {
    restore(before);
    end_everywhere(job, action);
  }
}

// Where a filesystem has no unnamed files (NFS, FAT, FUSE), signals take the named ones away.
TEST_F(Interrupted, WithoutUnnamedFiles) {
  make_model();
  const Arguments job = {"quantize", path("model/model-00001-of-00002.safetensors"), "--out",
                         path("one/q.safetensors")};
  fs::create_directory(path("one"));
  write_text("one/keep", "");
  for (const char* action : {"int", "term", "hup"}) {
    end_everywhere(job, action, {}, {"FILE_FAULTS_NO_TMPFILE=1"});
    for (const char* name : {"q.safetensors", "config.json", "hf_quant_config.json"})
      fs::remove(path(std::string("one/") + name));
  }
}

// Files under names of their own cannot change in one step: kill -9 between two names leaves the
// first ones, so that a config never speaks of weights that are not there.
TEST_F(Interrupted, ConfigsComeAfterTheirWeights) {
  make_model();
  fs::create_directory(path("one"));
  write_text("one/keep", "");
  const Arguments job = {"quantize", path("model"), "--out", path("one/q.safetensors"), "--force"};
  end_everywhere(job, "kill", [](const Contents& now, const Contents& after) {
    for (const auto& [name, content] : now) {
      if (after.at(name) != content) return false;
    }
    return now.count("one/q.safetensors") == 1;
  });
  for (const char* name : {"q.safetensors", "config.json", "hf_quant_config.json"})
    fs::remove(path(std::string("one/") + name));
  end_everywhere(job, "fail");
}

TEST_F(Interrupted, TwoFilesAppearTogether) {
  const Arguments job = {"make-layer",
                         "--out",
                         path("l.safetensors"),
                         "--activations",
                         path("x.npy"),
                         "--n",
                         "32",
                         "--k",
                         "32",
                         "--m",
                         "3"};
  write_text("x.npy", "old");
  const Contents before = contents();
  for (const char* action : {"term", "fail"}) {
    end_everywhere(job, action);
    restore(before);
  }
  end_everywhere(job, "kill", [](const Contents& now, const Contents& after) {
    return now.at("l.safetensors") == after.at("l.safetensors") && now.at("x.npy") == "old";
  });
}

TEST_F(Interrupted, OneFile) {
  make_layer();
  quantize();
  write_text("d.npy", "old");
  const Contents before = contents();
  const std::vector<Arguments> jobs = {
      {"run", path("q.safetensors"), "--activations", path("x.npy"), "--out", path("d.npy")},
      {"convert", path("q.safetensors"), "--to", "ggml", "--out", path("d.safetensors")}};
  for (const Arguments& job : jobs) {
    for (const char* action : {"kill", "term", "fail"}) {
      restore(before);
      end_everywhere(job, action);
    }
  }
}

TEST_F(Interrupted, WhatAKillLeftGoesWithTheNextRun) {
  make_model();
  const Arguments job = {"quantize", path("model"), "--out", path("q")};
  const Contents before = contents();
  const long calls = calls_of(job);
  restore(before);
  run_with(job, {"FILE_FAULTS_AT=" + std::to_string(calls / 2), "FILE_FAULTS_ACTION=kill"});
  ASSERT_FALSE(left_over().empty());
  const ProgramResult again = run(job);
  EXPECT_EQ(again.exit_code, 0) << again;
  EXPECT_TRUE(contains(again.err, "which an interrupted run left; starting anew"));
  EXPECT_EQ(left_over(), Arguments{});
}

// One that is cut while it is read is named, and nothing is left of what was written.
TEST_F(Interrupted, AnInputThatIsCutIsNamed) {
  const Arguments make = {"make-layer", "--out", path("big.safetensors"), "--n", "256",
                          "--k",        "256"};
  for (const char* staging : {"FILE_FAULTS_X=1", "FILE_FAULTS_NO_TMPFILE=1"}) {
    ASSERT_EQ(run(make).exit_code, 0);
    const Arguments faults = {"FILE_FAULTS_CUT=" + path("big.safetensors"), staging};
    const ProgramResult result =
        run_with({"quantize", path("big.safetensors"), "--out", path("q.safetensors")}, faults);
    EXPECT_EQ(result.exit_code, 1) << result;
    EXPECT_TRUE(contains(result.err, "big.safetensors: became shorter while it was read"));
    EXPECT_EQ(files(), (Arguments{"big.safetensors"}));
  }
  // What is copied and not computed with: the system's write meets the gap, without a signal.
  ASSERT_EQ(run(make).exit_code, 0);
  const ProgramResult copied =
      run_with({"quantize", path("big.safetensors"), "--tensor",
                "model.layers.0.mlp.gate_proj.weight", "--out", path("q.safetensors")},
               {"FILE_FAULTS_CUT=" + path("big.safetensors")});
  EXPECT_EQ(copied.exit_code, 1) << copied;
  EXPECT_EQ(files(), (Arguments{"big.safetensors"}));
}

}  // namespace
}  // namespace dualgemm::test

#endif
