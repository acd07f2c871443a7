// What rows of the decoders' tables say of their instructions: that each says something, that what
// it says fits together, and that it is what the handlers do, as far as an observer of the cases in
// insn/ can see.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "insn/registry.hpp"
#include "machine/execution.hpp"
#include "ptxsim/case/case.hpp"

namespace {

using ptxsim::Decoder, ptxsim::Form, ptxsim::Mutants, ptxsim::Statement, ptxsim::Trait,
    ptxsim::Traits;

const std::filesystem::path kFolder = PTXSIM_TEST_FOLDER;

// "mbarrier.arrive": a row, or one of its forms, with its traits.
struct Named {
  std::string name;
  const Traits* traits;
};

std::vector<Named> all_traits() {
  std::vector<Named> all;
  for (const std::string_view root : ptxsim::decoded_roots()) {
    const Decoder& decoder = *ptxsim::find_decoder(root);
    all.push_back({std::string(root), &decoder.traits});
    for (const Form& form : decoder.forms) {
      std::string name(root);
      for (const std::string_view modifier : form.modifiers)
        if (!modifier.empty()) name += "." + std::string(modifier);
      all.push_back({std::move(name), &form.traits});
    }
  }
  return all;
}

TEST(Traits, EveryMnemonicSaysWhatItDoes) {
  EXPECT_GT(ptxsim::decoded_roots().size(), 100u);
  for (const Named& row : all_traits()) EXPECT_TRUE(row.traits->has(ptxsim::kAllDeeds)) << row.name;
}

TEST(Traits, AnUnknownRootHasNone) {
  Statement statement;
  statement.root = "frobnicate";
  EXPECT_EQ(ptxsim::traits_of(statement).set, Trait::kNone);
}

TEST(Traits, OneTraitAsksForAnother) {
  const std::pair<Trait, Trait> kRules[] = {
      {Trait::kFollowed, Trait::kReads},
      {Trait::kNonCoherent, Trait::kReads},
      {Trait::kStrong, Trait::kReads | Trait::kWrites | Trait::kUpdates},
      {Trait::kSeesUndefined, Trait::kWrites | Trait::kControls},
      {Trait::kPassesOn, Trait::kComputes},
      {Trait::kWaitsForLoads, Trait::kBarrier | Trait::kFence},
      {Trait::kScFence, Trait::kFence},
      {Trait::kArrives, Trait::kBarrier},
      {Trait::kEndsMbarrier, Trait::kBarrier},
      {Trait::kGenericProxy, Trait::kAsync},
      {Trait::kPrefetches, Trait::kHints},
      {Trait::kToGlobal, Trait::kQueries},
      {Trait::kJumps | Trait::kEnds | Trait::kCalls, Trait::kControls},
  };
  for (const Named& row : all_traits()) {
    for (const auto& [trait, needed] : kRules)
      EXPECT_TRUE(!row.traits->has(trait) || row.traits->has(needed))
          << row.name << ": " << static_cast<uint32_t>(trait);
    const bool computes = row.traits->has(Trait::kComputes);
    EXPECT_FALSE(computes && row.traits->has(Trait::kReads | Trait::kWrites | Trait::kUpdates |
                                             Trait::kCopies | Trait::kAsync | Trait::kControls))
        << row.name;
  }
}

TEST(Traits, EveryGroupOfMutantsHasAnInstruction) {
  std::set<Mutants> used;
  for (const Named& row : all_traits()) used.insert(row.traits->mutants);
  for (int group = 0; group <= static_cast<int>(Mutants::kPreviousGrid); ++group)
    EXPECT_TRUE(used.contains(static_cast<Mutants>(group))) << group;
}

// What ptxas assembles has all forms that rows single out: no form is hidden by those after it.
TEST(Traits, EveryFormOfARowIsMet) {
  std::set<const Traits*> met;
  std::ifstream file(kFolder / "forms.txt");
  ASSERT_TRUE(file);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("no ")) line.erase(0, 3);
    line.erase(0, line.find(' ') + 1);
    std::istringstream words(line.substr(0, line.find_first_of(" ;")));
    Statement statement;
    std::getline(words, statement.root, '.');
    for (std::string word; std::getline(words, word, '.');) statement.modifiers.push_back(word);
    if (const Decoder* decoder = ptxsim::find_decoder(statement.root))
      met.insert(&decoder->traits_of(statement));
  }
  for (const std::string_view root : ptxsim::decoded_roots())
    for (const Form& form : ptxsim::find_decoder(root)->forms)
      EXPECT_TRUE(met.contains(&form.traits))
          << root << "." << form.modifiers[0] << " " << form.modifiers[1];
}

// What an observer has seen of statements with the same traits.
struct Sight {
  std::string text;  // of one of the statements
  Trait seen = Trait::kNone;
};
using Sights = std::map<const Traits*, Sight>;

class Watcher final : public ptxsim::Observer {
 public:
  explicit Watcher(Sights& sights) : sights_(sights) {}
  bool wants_statements() const override { return true; }
  bool wants_global_accesses() const override { return true; }

  void executed(const ptxsim::Execution& x, const ptxsim::Insn&, bool) override {
    saw(x, Trait::kNone);
  }
  void shared_access(const ptxsim::Execution& x, int, ptxsim::Cta&, uint32_t, uint32_t,
                     ptxsim::AccessKind kind) override {
    saw_access(x, kind);
  }
  void global_access(const ptxsim::Execution& x, int, const ptxsim::MemoryAt&, uint32_t,
                     ptxsim::AccessKind kind) override {
    saw_access(x, kind);
  }
  void strong_write(const ptxsim::Execution& x, int, const ptxsim::MemoryAt&, bool, bool) override {
    saw(x, Trait::kStrong);
  }
  void strong_read(const ptxsim::Execution& x, int, const ptxsim::MemoryAt&, bool) override {
    saw(x, Trait::kStrong);
  }
  // What operations do that copy, multiply or move tensor memory is no access of their thread.
  void async_shared(ptxsim::AsyncOp, const ptxsim::Execution& x, ptxsim::Cta&, uint32_t, uint32_t,
                    ptxsim::AccessKind kind) override {
    if (!traits_of(x).has(Trait::kCopies | Trait::kMultiplies | Trait::kTensorMemory))
      saw_access(x, kind);
  }
  void issued(const ptxsim::Execution& x, int, ptxsim::AsyncOp, ptxsim::AsyncKind) override {
    saw(x, Trait::kAsync);
  }
  void mbarrier_arrived(const ptxsim::Execution& x, int, const ptxsim::Mbarrier&,
                        ptxsim::BarrierOrder) override {
    saw(x, Trait::kArrives);
  }
  void threads_exited(const ptxsim::Execution& x, uint32_t) override { saw(x, Trait::kEnds); }

 private:
  static const Statement& statement_of(const ptxsim::Execution& x) {
    return x.program().entry->statements[x.insn->statement];
  }
  static const Traits& traits_of(const ptxsim::Execution& x) {
    return ptxsim::find_decoder(statement_of(x).root)->traits_of(statement_of(x));
  }
  void saw(const ptxsim::Execution& x, Trait trait) {
    Sight& sight = sights_[&traits_of(x)];
    sight.text = statement_of(x).text;
    sight.seen = sight.seen | trait;
  }
  void saw_access(const ptxsim::Execution& x, ptxsim::AccessKind kind) {
    // Strong loads and stores of one word are told as atomic.
    const Traits& traits = traits_of(x);
    if (kind == ptxsim::AccessKind::kAtomic && traits.has(Trait::kStrong) &&
        traits.has(Trait::kReads | Trait::kWrites))
      return saw(x, traits.set & (Trait::kReads | Trait::kWrites));
    saw(x, kind == ptxsim::AccessKind::kRead    ? Trait::kReads
           : kind == ptxsim::AccessKind::kWrite ? Trait::kWrites
                                                : Trait::kUpdates);
  }

  Sights& sights_;
};

void watch(const std::filesystem::path& path, Sights& sights) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  auto description = ptxsim::parse_case(ptxsim::case_text(text.str()), path.parent_path().string());
  ASSERT_TRUE(description.ok()) << to_string(description.error());
  auto module = ptxsim::load(text.str(), path.string());
  ASSERT_TRUE(module.ok()) << to_string(module.error());
  auto program = ptxsim::decode(*module, description->entry);
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  ASSERT_FALSE(ptxsim::load_launches(*description, *module));
  ptxsim::run_case(*description, *program, {},
                   {[&](ptxsim::Cluster&) { return std::make_unique<Watcher>(sights); }});
}

const Traits* traits_of_load(const char* space) {
  Statement statement;
  statement.root = "ld";
  statement.modifiers = {space};
  return &ptxsim::find_decoder("ld")->traits_of(statement);
}

TEST(Traits, AreWhatHandlersDo) {
  Sights sights;
  for (const char* folder : {"insn", "calls"})
    for (const auto& file : std::filesystem::directory_iterator(kFolder / folder))
      if (file.path().extension() == ".ptx") watch(file.path(), sights);
  constexpr Trait kSeen = Trait::kReads | Trait::kWrites | Trait::kUpdates | Trait::kAsync |
                          Trait::kArrives | Trait::kEnds;
  for (const Named& row : all_traits())
    EXPECT_TRUE(!row.traits->has(kSeen) || sights.contains(row.traits))
        << row.name << " is in no case";
  for (const auto& [traits, sight] : sights) {
    // Images are read, written or updated, as the mnemonic says; functions that are called may
    // read: printf does.
    if (traits->has(Trait::kImage | Trait::kCalls)) continue;
    if (traits == traits_of_load("param") || traits == traits_of_load("const")) {
      EXPECT_TRUE(traits->has(Trait::kReads) && !traits->has(Trait::kFollowed)) << sight.text;
      EXPECT_EQ(sight.seen, Trait::kNone) << sight.text;
      continue;
    }
    const auto is_seen = [&seen = sight.seen](Trait trait) {
      return (seen & trait) != Trait::kNone;
    };
    for (const Trait trait :
         {Trait::kReads, Trait::kWrites, Trait::kUpdates, Trait::kStrong, Trait::kEnds})
      EXPECT_EQ(is_seen(trait), traits->has(trait))
          << sight.text << ": " << static_cast<uint32_t>(trait);
    // Some that PTX calls asynchronous are done at once here; mbarrier.complete_tx arrives without
    // being an arrival.
    EXPECT_TRUE(traits->has(Trait::kAsync) || !is_seen(Trait::kAsync)) << sight.text;
    EXPECT_TRUE(is_seen(Trait::kArrives) || !traits->has(Trait::kArrives)) << sight.text;
  }
}

}  // namespace
