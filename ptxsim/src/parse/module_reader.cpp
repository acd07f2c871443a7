#include "parse/module_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "parse/literal.hpp"

namespace ptxsim {
namespace {

constexpr std::string_view kTargets[] = {
    "sm_80",   "sm_86",  "sm_87",   "sm_88",   "sm_89",  "sm_90",   "sm_90a",  "sm_100", "sm_100a",
    "sm_100f", "sm_101", "sm_101a", "sm_101f", "sm_103", "sm_103a", "sm_103f", "sm_110", "sm_110a",
    "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
};

// Up to three sizes; those not given are 1.
std::array<uint32_t, 3> read_sizes(Lexer& lexer) {
  std::array<uint32_t, 3> sizes = {1, 1, 1};
  size_t count = 0;
  do {
    const Token at = lexer.peek();
    const uint64_t size = read_integer(lexer);
    if (count == sizes.size()) lexer.fail(at, "more than three sizes");
    if (size == 0 || size > 0x7fffffff)
      lexer.fail(at, fmt::format("size {} is not positive", static_cast<int64_t>(size)));
    sizes[count++] = static_cast<uint32_t>(size);
  } while (lexer.accept(','));
  return sizes;
}

}  // namespace

ModuleReader::ModuleReader(Lexer& lexer, Module& module, const ParseLimits& limits,
                           const std::string_view* only_entry)
    : lexer_(lexer), module_(module), locations_(module), only_entry_(only_entry) {
  scope_.initial_bytes_left = limits.initial_bytes;
  scope_.registers_left = limits.registers;
}

void ModuleReader::read() {
  read_version();
  read_target();
  while (lexer_.peek().kind != Token::Kind::kEnd) read_directive();
}

void ModuleReader::read_version() {
  if (!lexer_.accept_word("version")) lexer_.unexpected("'.version' at the start of the text");
  const Token token = lexer_.expect_kind(Token::Kind::kNumber, "a version");
  const char* end = token.text.data() + token.text.size();
  const auto major = std::from_chars(token.text.data(), end, module_.version_major);
  const bool has_minor = major.ec == std::errc() && major.ptr != end && *major.ptr == '.';
  const auto minor = std::from_chars(has_minor ? major.ptr + 1 : end, end, module_.version_minor);
  if (!has_minor || minor.ec != std::errc() || minor.ptr != end) {
    lexer_.fail(token,
                fmt::format("{} is no version: expected major.minor", in_quotes(token.text)));
  }
  if (module_.version_major < 7 || module_.version_major > 9) {
    lexer_.fail(token, fmt::format("PTX version {} is not supported: 7.0 to 9.x are", token.text));
  }
}

void ModuleReader::read_target() {
  if (!lexer_.accept_word("target")) lexer_.unexpected("'.target' after '.version'");
  const Token target = lexer_.expect_kind(Token::Kind::kIdentifier, "a target");
  if (std::find(std::begin(kTargets), std::end(kTargets), target.text) == std::end(kTargets)) {
    lexer_.fail(target, fmt::format("target {} is not supported: sm_80 to sm_121 are",
                                    in_quotes(target.text)));
  }
  module_.target = std::string(target.text);
  while (lexer_.accept(',')) {
    const Token option = lexer_.expect_kind(Token::Kind::kIdentifier, "a target option");
    if (option.text != "debug" && !option.text.starts_with("texmode_")) {
      lexer_.fail(option, fmt::format("target option {} is not supported", in_quotes(option.text)));
    }
  }
}

void ModuleReader::read_address_size() {
  const Token at = lexer_.peek();
  const uint64_t bits = read_integer(lexer_);
  if (bits != 64) lexer_.fail(at, fmt::format("address size {} is not supported: 64 is", bits));
}

void ModuleReader::read_directive() {
  const Token directive = lexer_.peek();
  if (lexer_.accept(';')) return;
  if (directive.kind != Token::Kind::kDotWord) lexer_.unexpected("a directive");
  lexer_.take();
  Linkage linkage;
  Token token = directive;
  while (token.is_word("visible") || token.is_word("weak") || token.is_word("common") ||
         token.is_word("extern")) {
    linkage.is_extern = linkage.is_extern || token.is_word("extern");
    token = lexer_.expect_kind(Token::Kind::kDotWord, "a declaration");
  }
  if (token.text.data() != directive.text.data()) return read_linked(token, linkage);
  if (token.is_word("address_size")) return read_address_size();
  if (token.is_word("file")) return read_file();
  if (token.is_word("section")) return read_section();
  if (token.is_word("pragma")) return read_pragma();
  if (token.is_word("alias")) return read_alias();
  read_linked(token, linkage);
}

void ModuleReader::read_linked(const Token& directive, Linkage linkage) {
  if (directive.is_word("entry")) return read_entry();
  if (directive.is_word("func")) return read_function();
  if (directive.is_word("global")) return read_variables(Space::kGlobal, linkage);
  if (directive.is_word("const")) return read_variables(Space::kConst, linkage);
  if (directive.is_word("shared")) return read_variables(Space::kShared, linkage);
  lexer_.fail(directive, fmt::format("unknown directive {} outside a body", describe(directive)));
}

void ModuleReader::read_file() {
  const Token at = lexer_.peek();
  const uint64_t number = read_integer(lexer_);
  if (number > 0x7fffffff) lexer_.fail(at, fmt::format("file number {} is too large", number));
  const Token path = lexer_.expect_kind(Token::Kind::kString, "a path");
  module_.files[static_cast<int>(number)] = std::string(path.text);
  while (lexer_.accept(',')) read_integer(lexer_);  // time stamp, size
}

// Debugging information: not needed, as .file and .loc name the source lines.
void ModuleReader::read_section() {
  if (lexer_.peek().kind == Token::Kind::kDotWord ||
      lexer_.peek().kind == Token::Kind::kIdentifier) {
    lexer_.take();
  }
  lexer_.skip_scope();
}

void ModuleReader::read_pragma() {
  lexer_.expect_kind(Token::Kind::kString, "a string");
  while (lexer_.accept(',')) lexer_.expect_kind(Token::Kind::kString, "a string");
  lexer_.expect(';', "after .pragma");
}

void ModuleReader::read_variables(Space space, Linkage linkage) {
  for (VariableDeclaration& declaration :
       ptxsim::read_variables(lexer_, space, linkage.is_extern, scope_.initial_bytes_left)) {
    const Symbol symbol{Symbol::Kind::kModuleVariable,
                        static_cast<uint32_t>(scope_.variables.size())};
    const auto [found, is_first] = scope_.names.emplace(declaration.name.text, symbol);
    const uint32_t index = found->second.index;
    if (is_first) {
      module_.has_variables = module_.has_variables || space != Space::kShared;
      scope_.variables.push_back(std::move(declaration));
      resolve_addresses(scope_.variables[index]);
      continue;
    }
    // Declared .extern and later defined, or declared .extern twice.
    const bool is_variable = found->second.kind == Symbol::Kind::kModuleVariable;
    if (!is_variable || (!scope_.variables[index].variable.is_extern && !linkage.is_extern)) {
      lexer_.fail(declaration.name,
                  fmt::format("{} is already declared", in_quotes(declaration.name.text)));
    }
    if (linkage.is_extern) continue;
    scope_.variables[index] = std::move(declaration);
    resolve_addresses(scope_.variables[index]);
  }
}

// Initial values that are addresses of functions, or of .global and .const variables declared
// before.
void ModuleReader::resolve_addresses(VariableDeclaration& declaration) const {
  if (declaration.addresses.empty()) return;
  std::vector<InitialAddress> addresses;
  for (const VariableDeclaration::Address& address : declaration.addresses) {
    const auto found = scope_.names.find(address.name.text);
    if (found == scope_.names.end()) return;
    const Symbol symbol = found->second;
    const bool is_function = symbol.kind == Symbol::Kind::kFunction;
    if (!is_function && (symbol.kind != Symbol::Kind::kModuleVariable ||
                         scope_.variables[symbol.index].variable.space == Space::kShared))
      return;
    addresses.push_back({address.at, is_function, symbol.index, address.offset});
  }
  declaration.variable.addresses = std::move(addresses);
  declaration.unsupported.clear();
}

void ModuleReader::skip_parentheses() {
  const Token open = lexer_.take();
  while (!lexer_.accept(')')) {
    if (lexer_.peek().kind == Token::Kind::kEnd) lexer_.fail(open, "'(' without its ')'");
    lexer_.take();
  }
}

void ModuleReader::read_entry() {
  const Token name = lexer_.expect_kind(Token::Kind::kIdentifier, "the name of an entry");
  Entry entry;
  entry.name = std::string(name.text);
  entry.line = name.line;
  EntryBuilder builder(lexer_, scope_, entry);
  if (lexer_.accept('(')) read_parameters(builder);
  read_entry_directives(entry);
  const bool is_defined = lexer_.peek().is('{');
  const auto [found, is_first] =
      scope_.names.try_emplace(std::string(name.text), Symbol{Symbol::Kind::kEntry, 0});
  // Symbol::index counts the definitions: a declaration may come before.
  if (found->second.kind != Symbol::Kind::kEntry || (is_defined && found->second.index > 0)) {
    lexer_.fail(name, fmt::format("{} is already declared", in_quotes(name.text)));
  }
  if (!is_defined) return lexer_.expect(';', "or a body after the declaration of an entry");
  found->second.index = 1;
  if (only_entry_ != nullptr && *only_entry_ != name.text) {
    lexer_.skip_scope();
  } else {
    lexer_.take();
    BodyReader(lexer_, builder, locations_).read();
  }
  module_.entries.push_back(std::move(entry));
}

void ModuleReader::read_parameters(EntryBuilder& builder) {
  while (!lexer_.accept(')')) {
    if (!lexer_.accept_word("param")) lexer_.unexpected("'.param' or ')'");
    builder.add_parameter(read_parameter(lexer_));
    if (!lexer_.accept(',') && !lexer_.peek().is(')')) lexer_.unexpected("',' or ')'");
  }
}

// PTX ISA 9.0, "Performance-Tuning Directives" and "Cluster Dimension Directives".
void ModuleReader::read_entry_directives(Entry& entry) {
  while (lexer_.peek().kind == Token::Kind::kDotWord) {
    const Token directive = lexer_.take();
    const std::string_view name = directive.text;
    if (name == "reqntid") {
      entry.reqntid = read_sizes(lexer_);
    } else if (name == "maxntid") {
      entry.maxntid = read_sizes(lexer_);
    } else if (name == "reqnctapercluster") {
      entry.reqnctapercluster = read_sizes(lexer_);
    } else if (name == "explicitcluster") {
      entry.explicit_cluster = true;
    } else if (name == "maxnreg" || name == "minnctapersm") {
      const uint64_t value = read_integer(lexer_);
      if (value > 0x7fffffff)
        lexer_.fail(directive, fmt::format(".{} {} is too large", name, value));
      (name == "maxnreg" ? entry.maxnreg : entry.minnctapersm) = static_cast<uint32_t>(value);
    } else if (name == "maxnctapersm" || name == "maxclusterrank" || name == "abi_preserve" ||
               name == "abi_preserve_control") {
      read_integer(lexer_);
    } else if (name == "pragma") {
      read_pragma();
    } else if (name == "attribute") {
      if (!lexer_.peek().is('(')) lexer_.unexpected("'(' after .attribute");
      skip_parentheses();
    } else if (name != "blocksareclusters" && name != "noreturn") {
      lexer_.fail(directive, fmt::format("unknown directive {} of an entry", describe(directive)));
    }
  }
}

}  // namespace ptxsim
