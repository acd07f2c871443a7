#include "capi/error.hpp"

namespace dualgemm::capi {
namespace {

struct LastStatus {
  dualgemm_status code = DUALGEMM_OK;
  std::string message, argument, observed, rule;  // all empty: see the accessors
};

thread_local LastStatus last;

dualgemm_status record_text_free(dualgemm_status code) noexcept {
  last.code = code;
  last.message.clear();
  last.argument.clear();
  last.observed.clear();
  last.rule.clear();
  return code;
}

}  // namespace

dualgemm_status record(const Status& status) noexcept {
  const auto code = static_cast<dualgemm_status>(status.code());
  if (status.ok()) return record_text_free(code);
  try {
    last.message = status.message();
    last.argument = status.argument();
    last.observed = status.observed();
    last.rule = status.rule();
  } catch (...) {
    return record_text_free(code);  // no memory for the text; the code is what counts
  }
  return last.code = code;
}

dualgemm_status record_out_of_memory() noexcept { return record_text_free(DUALGEMM_OUT_OF_MEMORY); }

}  // namespace dualgemm::capi

using dualgemm::capi::last;

const char* dualgemm_status_name(dualgemm_status status) noexcept {
  return dualgemm::status_code_name(static_cast<dualgemm::StatusCode>(status));
}

dualgemm_status dualgemm_last_status(void) noexcept { return last.code; }

const char* dualgemm_last_error_message(void) noexcept {
  return last.message.empty() ? dualgemm_status_name(last.code) : last.message.c_str();
}
const char* dualgemm_last_error_argument(void) noexcept { return last.argument.c_str(); }
const char* dualgemm_last_error_observed(void) noexcept { return last.observed.c_str(); }
const char* dualgemm_last_error_rule(void) noexcept { return last.rule.c_str(); }
