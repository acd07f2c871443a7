// Base of the streaming JSON readers: every event is refused until a derived class accepts it.
// Streaming keeps duplicate keys visible, depth bounded by the reader's own states, and memory
// proportional to what is kept.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonEvents(std::string origin) : origin_(std::move(origin)) {}

  // Drives the reader; its own complaint wins over the parser's.
  Status read(std::string_view json);

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { return refuse("a number"); }
  bool number_float(number_float_t, const string_t&) override {
    return refuse("a fraction or a number beyond 64 bits");
  }
  bool string(string_t&) override { return refuse("a string"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_object(size_t) override { return refuse("an object"); }
  bool key(string_t&) override { return refuse("a key"); }
  bool end_object() override { return refuse("the end of an object"); }
  bool start_array(size_t) override { return refuse("an array"); }
  bool end_array() override { return refuse("the end of an array"); }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override;

 protected:
  // What the reader is looking at, for messages.
  virtual std::string place() const = 0;
  bool refuse(const std::string& observed) { return fail(place(), observed, "has no place here"); }
  bool fail(const std::string& where, const std::string& observed, const std::string& rule);

 private:
  std::string origin_;
  Status status_;
};

// core::printable() in quotes, shortened: a name or a value within a message.
std::string printable(std::string_view text);
bool has_control_characters(std::string_view text);

}  // namespace dualgemm::checkpoint
