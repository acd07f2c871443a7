// The names of outputs, what a dry run says, what limits and hostile names do to messages.
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "run_program.hpp"
#include "tools/checkpoint/safetensors.hpp"

namespace dualgemm::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Outputs = CliTest;
using Arguments = std::vector<std::string>;

TEST_F(Outputs, AnEmptyNameIsRefused) {
  make_layer();
  quantize();
  const Arguments before = files();
  const std::vector<Arguments> cases = {
      {"run", path("q.safetensors"), "--activations", path("x.npy"), "--out", ""},
      {"run", path("q.safetensors"), "--activations", path("x.npy"), "--out="},
      {"make-layer", "--out", path("n.safetensors"), "--activations", ""},
      {"make-layer", "--out", ""},
      {"quantize", path("layer.safetensors"), "--out", ""},
      {"convert", path("q.safetensors"), "--out", ""},
      {"bench", "--m", "4", "--n", "64", "--k", "64", "--json", ""},
      {"bench", "--m", "4", "--n", "64", "--k", "64", "--csv="}};
  for (const Arguments& arguments : cases) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments.back() << result;
    const bool says_it = contains(result.err, ": ''; must name a file") ||
                         contains(result.err, "--out: no value; needs one");
    EXPECT_TRUE(says_it) << arguments.back() << result;
  }
  EXPECT_EQ(files(), before);
}

TEST_F(Outputs, OneFileByTwoSpellingsIsRefused) {
  make_layer();
  quantize();
  fs::create_directory(path("model"));
  fs::copy(path("q.safetensors"), path("model/model.safetensors"));
  fs::create_symlink("new.safetensors", path("link.safetensors"));
  fs::create_symlink(".", path("here"));
  write_text("a.safetensors", "old");
  fs::create_hard_link(path("a.safetensors"), path("b.safetensors"));
  const std::string q = path("q.safetensors"), x = path("x.npy");
  const Arguments bench = {"bench", "--m", "4", "--n", "64", "--k", "64"};
  const auto with = [](Arguments words, const Arguments& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<Arguments> cases = {
      {"make-layer", "--out", path("new.safetensors"), "--activations", path("./new.safetensors")},
      {"make-layer", "--out", path("new.safetensors"), "--activations", path("link.safetensors")},
      {"make-layer", "--out", path("new.safetensors"), "--activations",
       path("here/new.safetensors")},
      {"make-layer", "--out", path("a.safetensors"), "--activations", path("b.safetensors")},
      {"run", q, "--activations", x, "--out", path("here/x.npy")},
      {"run", path("model"), "--activations", x, "--out", path("model/model.safetensors")},
      with(bench, {"--json", path("o"), "--csv", path("o")}),
      with(bench, {"--json", path("o"), "--markdown", path("./o")}),
      with(bench, {"--csv", path("here/o"), "--markdown", path("o")})};
  const Arguments before = files();
  for (const Arguments& arguments : cases) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << " " << arguments.back() << result;
    EXPECT_TRUE(contains(result.err, "name "));
  }
  EXPECT_EQ(files(), before);
  EXPECT_EQ(read_text(path("a.safetensors")), "old");
}

TEST_F(Outputs, ADryRunWritesNothing) {
  make_layer();
  quantize();
  fs::create_directory(path("model"));
  fs::copy(path("layer.safetensors"), path("model/model.safetensors"));
  write_text("model/config.json", "{}");
  const std::string layer = path("layer.safetensors"), q = path("q.safetensors"), x = path("x.npy");
  const std::vector<Arguments> jobs = {
      {"make-layer", "--out", path("n.safetensors"), "--activations", path("n.npy")},
      {"quantize", layer, "--out", path("n.safetensors")},
      {"quantize", path("model"), "--out", path("new")},
      {"convert", q, "--to", "ggml", "--out", path("n.safetensors")},
      {"run", q, "--activations", x, "--out", path("n.npy")},
      {"bench", "--m", "4", "--n", "64", "--k", "64", "--csv", path("n.csv")}};
  const Arguments before = files();
  for (Arguments job : jobs) {
    job.push_back("--dry-run");
    const ProgramResult result = run(job);
    EXPECT_EQ(result.exit_code, 0) << job[0] << result;
    EXPECT_TRUE(contains(result.err, "dry run: would write " + path("n")));
    EXPECT_EQ(result.out, "");
    if (job[0] == "bench") continue;
    job.push_back("--json");
    const ProgramResult as_json = run(job);
    EXPECT_EQ(json::parse(as_json.out)["dry_run"], true) << as_json;
    EXPECT_TRUE(contains(json::parse(as_json.out)["would_write"][0], path("n")));
  }
  EXPECT_EQ(files(), before);
  // What cannot be written is found out.
  const ProgramResult refused =
      run({"make-layer", "--out", path("no/such.safetensors"), "--dry-run"});
  EXPECT_EQ(refused.exit_code, 1) << refused;
}

TEST_F(Outputs, ForceReplacesAModelAndNothingElse) {
  make_layer();
  fs::create_directory(path("model"));
  fs::copy(path("layer.safetensors"), path("model/model.safetensors"));
  write_text("model/config.json", "{}");
  const Arguments job = {"quantize", path("model"), "--out", path("q")};
  ASSERT_EQ(run(job).exit_code, 0);
  const ProgramResult again = run(job);
  EXPECT_EQ(again.exit_code, 2) << again;
  EXPECT_TRUE(contains(again.err, "or replace the model in it with --force"));
  ASSERT_EQ(run({"quantize", path("model"), "--out", path("q"), "--force"}).exit_code, 0);
  fs::create_directory(path("other"));
  write_text("other/thesis.tex", "mine");
  const ProgramResult other = run({"quantize", path("model"), "--out", path("other"), "--force"});
  EXPECT_EQ(other.exit_code, 2) << other;
  EXPECT_TRUE(contains(other.err, "holds thesis.tex and no model to replace"));
  EXPECT_EQ(read_text(path("other/thesis.tex")), "mine");
}

// `ulimit -f` of the test's own, which the command inherits.
TEST_F(Outputs, ALimitOfFileSizeIsAnError) {
  make_layer();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const ProgramResult result =
      run({"make-layer", "--out", path("n.safetensors"), "--n", "64", "--k", "64"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(result.exit_code, 1) << result;
  EXPECT_TRUE(contains(result.err, "n.safetensors: File too large"));
  EXPECT_EQ(files(), (Arguments{"layer.safetensors", "x.npy"}));
}

bool acts_on_a_terminal(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F;
  });
}

TEST_F(Outputs, TextFromOutsideIsShownAndNotObeyed) {
  make_layer();
  quantize();
  const std::string escape = "\x1b]0;pwned\x07\x1b[2J", text = read_text(path("q.safetensors"));
  checkpoint::TensorFile hostile = *checkpoint::TensorFile::open(path("q.safetensors"));
  hostile.metadata()["dualgemm.nibble_order"] = escape;
  ASSERT_TRUE(checkpoint::write_safetensors(path("e.safetensors"), hostile).ok());
  hostile.metadata()["dualgemm.nibble_order"] = std::string(1'000'000, 'x');
  ASSERT_TRUE(checkpoint::write_safetensors(path("long.safetensors"), hostile).ok());
  const std::string x = path("x.npy"), q = path("q.safetensors");
  fs::copy(q, path("a\x1b[31mb\rc.safetensors"));
  const std::vector<Arguments> cases = {
      {"validate", path("e.safetensors")},
      {"validate", path("long.safetensors")},
      {"validate", path("a\x1b[31mb\rc.safetensors")},
      {"validate", path("a\x1b[31mb\rc.safetensors"), "--json"},
      {"validate", escape},
      {"run", q, "--prefix", escape, "--activations", x},
      {"run", q, "--activations", x, "--activations-tensor", escape},
      {"run", q, "--activations", x, "--out", path(escape + ".npy")},
      {"quantize", path("layer.safetensors"), "--tensor", escape, "--out", path("o.safetensors")},
      {"quantize", path("layer.safetensors"), "--out", path("o" + escape + ".safetensors")},
      {"make-layer", "--prefix", escape, "--out", path("o.safetensors")},
      {"plan", "--act", escape},
      {"plan", "--m", std::string(100'000, '1')},
      {"plan", "--device", escape},
      {"plan", "--" + escape},
      {escape},
      {"help", escape}};
  for (const Arguments& arguments : cases) {
    const ProgramResult result = run(arguments);
    EXPECT_FALSE(acts_on_a_terminal(result.err)) << arguments[0] << result.err;
    EXPECT_FALSE(acts_on_a_terminal(result.out)) << arguments[0] << result.out;
    if (result.exit_code != 0) {
      EXPECT_LE(result.err.size(), 1500u) << arguments[0];
    }
  }
  for (const char* variable : {"DUALGEMM_FORCE_ISA", "DUALGEMM_NUM_THREADS"}) {
    const ProgramResult result = run({"plan"}, {std::string(variable) + "=" + escape});
    EXPECT_EQ(result.exit_code, 2) << variable << result;
    EXPECT_TRUE(contains(result.err, "\\x1b]0;pwned")) << variable;
    EXPECT_FALSE(acts_on_a_terminal(result.err)) << variable;
  }
}

TEST_F(Outputs, AShardWithoutItsIndexIsRefused) {
  make_layer();
  quantize();
  fs::create_directory(path("part"));
  const std::string shard = path("part/model-00001-of-00002.safetensors");
  fs::copy(path("q.safetensors"), shard);
  for (const Arguments& arguments :
       {Arguments{"validate", path("part")}, Arguments{"validate", shard},
        Arguments{"run", path("part"), "--activations", path("x.npy")},
        Arguments{"convert", shard, "--out", path("o.safetensors")},
        Arguments{"quantize", path("part"), "--out", path("o")}}) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 1) << arguments[0] << result;
    EXPECT_TRUE(contains(result.err, "one shard of several, without"));
  }
  // One of one is whole.
  fs::rename(shard, path("part/model-00001-of-00001.safetensors"));
  EXPECT_EQ(run({"validate", path("part")}).exit_code, 0);
}

// A closed or full stderr takes no message, and no job depends on that. A file that is opened
// does not get the number of a closed stream, or all that is printed would be written into it.
TEST_F(Outputs, ClosedAndFullStreams) {
  make_layer();
  ASSERT_EQ(
      run({"quantize", path("layer.safetensors"), "--out", path("want.safetensors")}).exit_code, 0);
  const std::string want = read_text(path("want.safetensors"));
  const Arguments quantize = {"quantize", path("layer.safetensors"), "--out",
                              path("q.safetensors")};
  for (const char* how : {"2>&-", "2>/dev/full", "<&-", "<&- >&-", "<&- >&- 2>&-"}) {
    EXPECT_EQ(run_redirected(quantize, how), 0) << how;
    EXPECT_EQ(read_text(path("q.safetensors")), want) << how;
    fs::remove(path("q.safetensors"));
  }
  // What a result is printed to must take it; errors keep their status.
  for (const char* how : {">&- 2>&-", ">/dev/full 2>/dev/full"}) {
    EXPECT_EQ(run_redirected({"--version"}, how), 1) << how;
    EXPECT_EQ(run_redirected({"validate", path("want.safetensors")}, how), 1) << how;
    EXPECT_EQ(run_redirected({"nonsense"}, how), 2) << how;
  }
}

}  // namespace
}  // namespace dualgemm::test
