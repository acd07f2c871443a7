// SARIF and JUnit's XML as their schemas have them: SARIF 2.1.0, the schema of the OASIS standard
// (errata 01), as far as ptxsim writes it; JUnit's as Jenkins and the XSD of Windy Road have it.
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <utility>

#include "cli/program.hpp"

namespace ptxsim_test {
namespace {

using Json = nlohmann::json;

// A property: how its value is, and whether it is required. Types: "text", "uri", "line" (an
// integer from 1 on), "index" (from -1 on), "bag", "a|b|c" (one of), or the name of an object;
// behind "*", a list of it.
struct Property {
  const char* type;
  bool is_required = false;
};
const std::map<std::string, std::map<std::string, Property>> kSarif = {
    {"sarifLog", {{"$schema", {"uri"}}, {"version", {"2.1.0", true}}, {"runs", {"*run", true}}}},
    {"run", {{"tool", {"tool", true}}, {"results", {"*result"}}}},
    {"tool", {{"driver", {"toolComponent", true}}}},
    {"toolComponent", {{"name", {"text", true}}, {"rules", {"*reportingDescriptor"}}}},
    {"reportingDescriptor", {{"id", {"text", true}}}},
    {"result",
     {{"ruleId", {"text"}},
      {"ruleIndex", {"index"}},
      {"level", {"none|note|warning|error"}},
      {"message", {"message", true}},
      {"locations", {"*location"}},
      {"occurrenceCount", {"line"}},
      {"suppressions", {"*suppression"}},
      {"properties", {"bag"}}}},
    {"message", {{"text", {"text", true}}}},  // or an id, which ptxsim does not write
    {"location",
     {{"physicalLocation", {"physicalLocation"}}, {"logicalLocations", {"*logicalLocation"}}}},
    {"physicalLocation",
     {{"artifactLocation", {"artifactLocation", true}}, {"region", {"region"}}}},
    {"artifactLocation", {{"uri", {"uri"}}}},
    {"region", {{"startLine", {"line"}}}},
    {"logicalLocation", {{"name", {"text"}}, {"kind", {"text"}}}},
    {"suppression", {{"kind", {"inSource|external", true}}, {"justification", {"text"}}}},
};

bool is_one_of(const std::string& value, std::string choices) {
  choices = "|" + choices + "|";
  return choices.find("|" + value + "|") != std::string::npos;
}

// What is not as the schema has it, one line each.
void check(const Json& value, std::string type, const std::string& path, std::string& wrong) {
  const auto expect = [&](bool right) {
    if (!right) wrong += path + " is no " + type + ": " + value.dump().substr(0, 100) + "\n";
  };
  if (type.starts_with('*')) {
    type.erase(0, 1);
    if (!value.is_array()) return expect(false);
    for (size_t i = 0; i < value.size(); ++i)
      check(value[i], type, path + "[" + std::to_string(i) + "]", wrong);
    // Most lists of the schema have unique items; results are a plain list.
    if (type != "result") expect(std::set<Json>(value.begin(), value.end()).size() == value.size());
    return;
  }
  static const std::regex kUriReference("([a-z]+://)?[A-Za-z0-9._~/%-]*");
  if (type == "text") return expect(value.is_string());
  if (type == "uri")
    return expect(value.is_string() && std::regex_match(value.get<std::string>(), kUriReference));
  if (type == "line") return expect(value.is_number_integer() && value.get<int64_t>() >= 1);
  if (type == "index") return expect(value.is_number_integer() && value.get<int64_t>() >= -1);
  if (type == "bag") return expect(value.is_object());
  const auto object = kSarif.find(type);
  if (object == kSarif.end())
    return expect(value.is_string() && is_one_of(value.get<std::string>(), type));
  if (!value.is_object()) return expect(false);
  for (const auto& [name, property] : object->second)
    if (property.is_required && !value.contains(name)) wrong += path + " lacks " + name + "\n";
  for (const auto& [name, member] : value.items()) {
    const auto known = object->second.find(name);
    if (known == object->second.end())
      wrong += path + " has the property " + name + ", which is not in the schema\n";
    else
      check(member, known->second.type, path + "." + name, wrong);
  }
}

std::string wrong_in_sarif(const Json& log) {
  std::string wrong;
  check(log, "sarifLog", "log", wrong);
  return wrong;
}

// An element of XML: its name, attributes, elements and text.
struct Element {
  std::string name, text;
  std::map<std::string, std::string> attributes;
  std::vector<Element> children;
};

// XML without comments, CDATA and namespaces; throws where it is not well formed.
class Xml {
 public:
  explicit Xml(const std::string& text) : text_(text) {
    for (const unsigned char c : text_)
      if (c < 0x20 && c != '\n' && c != '\t' && c != '\r') fail("control character");
    skip("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  }
  Element element() {
    Element e;
    skip("<");
    e.name = word();
    for (blanks(); text_[at_] != '/' && text_[at_] != '>'; blanks()) {
      const std::string name = word();
      skip("=\"");
      if (!e.attributes.emplace(name, characters('"')).second) fail("attribute twice");
      skip("\"");
    }
    if (text_[at_] == '/') {
      skip("/>");
      return e;
    }
    skip(">");
    while (text_.compare(at_, 2, "</") != 0) {
      if (text_.at(at_) == '<')
        e.children.push_back(element());
      else
        e.text += characters('<');
    }
    skip("</" + e.name + ">");
    return e;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument(what + " at " + text_.substr(at_, 60));
  }
  void skip(const std::string& part) {
    if (text_.compare(at_, part.size(), part) != 0) fail("no " + part);
    at_ += part.size();
  }
  void blanks() { at_ = std::min(text_.find_first_not_of(" \n\t", at_), text_.size() - 1); }
  std::string word() {
    const size_t end = text_.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at_);
    if (end == at_ || end == std::string::npos) fail("no name");
    const size_t begin = std::exchange(at_, end);
    return text_.substr(begin, end - begin);
  }
  std::string characters(char end) {
    std::string out;
    for (; text_.at(at_) != end; ++at_) {
      if (text_[at_] == '<' || text_[at_] == '>') fail("bare bracket");
      if (text_[at_] != '&') {
        out += text_[at_];
        continue;
      }
      static const std::map<std::string, char> kNames = {
          {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"#10", '\n'}};
      const size_t semicolon = text_.find(';', at_);
      const auto found = kNames.find(text_.substr(at_ + 1, semicolon - at_ - 1));
      if (found == kNames.end()) fail("unknown entity");
      out += found->second;
      at_ = semicolon;
    }
    return out;
  }
  const std::string& text_;
  size_t at_ = 0;
};

void expect_attributes(const Element& e, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    EXPECT_TRUE(e.attributes.count(name)) << e.name << " " << name;
  EXPECT_EQ(e.attributes.size(), names.size()) << e.name;
}

void expect_suite(const Element& suite) {
  EXPECT_EQ(suite.name, "testsuite");
  expect_attributes(suite, {"id", "package", "name", "timestamp", "hostname", "tests", "failures",
                            "errors", "time"});
  ASSERT_GE(suite.children.size(), 3u);
  EXPECT_EQ(suite.children.front().name, "properties");
  EXPECT_EQ(suite.children[suite.children.size() - 2].name, "system-out");
  EXPECT_EQ(suite.children.back().name, "system-err");
  int failures = 0;
  for (size_t i = 1; i + 2 < suite.children.size(); ++i) {
    const Element& test = suite.children[i];
    EXPECT_EQ(test.name, "testcase");
    expect_attributes(test, {"classname", "name", "time"});
    ASSERT_LE(test.children.size(), 1u);
    for (const Element& child : test.children) {
      EXPECT_TRUE(child.name == "failure" || child.name == "skipped") << child.name;
      if (child.name == "failure") {
        expect_attributes(child, {"type", "message"});
        ++failures;
      }
    }
  }
  EXPECT_EQ(suite.attributes.at("tests"), std::to_string(suite.children.size() - 3));
  EXPECT_EQ(suite.attributes.at("failures"), std::to_string(failures));
}

class FindingsFormat : public Program {
 protected:
  // A kernel with a finding, in a file of this name.
  void write_racing(const std::string& name) const {
    write(name, read_file(std::string(PTXSIM_TEST_RULES) + "/R16_bad.ptx"));
  }
  static std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(FindingsFormat, SarifIsAsItsSchemaHasIt) {
  const std::string odd = "a&b<c>'\"\xc3\xa4 #%.ptx";
  write_racing(odd);
  write("known.json",
        "[{\"rule\": \"R16\", \"kernel\": \"kernel\", \"reason\": \"\\u001b & <known>\"}]");
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", odd},
           {"run", path(odd).string(), "--suppress", "known.json"},
           {"run", "k.ptx", "--case", "c.json"},
           {"run", odd, "--entry", "kernel", "--schedule", "all", "--seeds", "2"}}) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--sarif", "out.sarif"});
    const Outcome outcome = start(all);
    const Json log = Json::parse(read("out.sarif"), nullptr, false);
    ASSERT_TRUE(log.is_object()) << outcome;
    EXPECT_EQ(wrong_in_sarif(log), "") << outcome;
  }
}

// Vectors of PTX are written in braces, which SARIF keeps for arguments: "{0}" is one, "{{0}}" is
// the text "{0}".
TEST_F(FindingsFormat, BracesOfPtxAreNoPlacesOfArguments) {
  write("k.ptx", replaced(kKernel, "ld.global.u32 %r2, [%rd4];",
                          "{\n.reg .b32 %v;\nld.global.v2.u32 {%r2, %v}, [%rd4];\n}"));
  write("c.json", replaced(kCase, "\"block\": [32]", "\"block\": [64]"));
  const Outcome outcome = run({"--sarif", "out.sarif"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(read("out.sarif"), "ld.global.v2.u32 {{%r2, %v}}, [%rd4];")) << outcome;
}

TEST_F(FindingsFormat, TheCheckOfSarifFindsWhatIsWrong) {
  EXPECT_NE(wrong_in_sarif(Json::parse(R"({"version": "2.1.0"})")), "");
  EXPECT_NE(
      wrong_in_sarif(Json::parse(R"({"version": "2.1.0", "runs": [{"tool": {"driver": {}}}]})")),
      "");
  EXPECT_NE(
      wrong_in_sarif(Json::parse(
          R"({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{"level": "fatal"}]}]})")),
      "");
  EXPECT_EQ(
      wrong_in_sarif(Json::parse(
          R"({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": []}]})")),
      "");
}

TEST_F(FindingsFormat, JunitIsWellFormedAndAsItsSchemaHasIt) {
  const std::string odd = "a&b<c>'\"\xc3\xa4\x1b\xff.ptx";
  write_racing(odd);
  write("known.json", "[{\"rule\": \"R16\", \"kernel\": \"kernel\", \"reason\": \"x\"}]");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"run", odd, "--schedule", "all"},
                                             {"run", odd, "--suppress", "known.json"},
                                             {"run", "k.ptx", "--case", "c.json"}}) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--junit", "out.xml"});
    const Outcome outcome = start(all);
    const std::string text = read("out.xml");
    try {
      const Element suites = Xml(text).element();
      EXPECT_EQ(suites.name, "testsuites");
      for (const Element& suite : suites.children) expect_suite(suite);
      EXPECT_GE(suites.children.size(), 1u);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << outcome << text;
    }
  }
  start({"run", odd, "--junit", "out.xml"});
  const Element test = Xml(read("out.xml")).element().children.at(0).children.at(2);
  EXPECT_TRUE(contains(test.attributes.at("name"), "a&b<c>'\"\xc3\xa4\\x1b\\xff.ptx:"))
      << test.attributes.at("name");
}

}  // namespace
}  // namespace ptxsim_test
