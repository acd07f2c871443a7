/* Test cases written in C; c_cases_test.cpp runs each as a test of its own. */
#ifndef DUALGEMM_TESTS_CAPI_C_CASES_H
#define DUALGEMM_TESTS_CAPI_C_CASES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every failed check calls this. */
typedef void (*c_fail)(const char* file, int line, const char* text);

typedef struct c_case {
  const char* name;
  void (*run)(c_fail fail);
} c_case;

/* The cases of one file each; the last entry has a null name. */
extern const c_case c_struct_cases[];
extern const c_case c_format_cases[];
extern const c_case c_quantize_cases[];
extern const c_case c_linear_cases[];
extern const c_case c_mlp_cases[];
extern const c_case c_experts_cases[];
extern const c_case c_run_cases[];
extern const c_case c_activation_cases[];

#ifdef __cplusplus
}
#endif

#define C_CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition))
#define C_CHECK_OK(call) \
  ((call) == DUALGEMM_OK ? (void)0 : fail(__FILE__, __LINE__, dualgemm_last_error_message()))
/* The call fails with `code` and a message that holds `part`. */
#define C_CHECK_ERROR(call, code, part)                     \
  (((call) == (code) && dualgemm_last_status() == (code) && \
    strstr(dualgemm_last_error_message(), (part)) != NULL)  \
       ? (void)0                                            \
       : fail(__FILE__, __LINE__, #call ": want " #code " with " #part))

#endif
