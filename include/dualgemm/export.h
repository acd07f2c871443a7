/* DUALGEMM_API marks what the shared library exports; everything else may be hidden. */
#ifndef DUALGEMM_EXPORT_H
#define DUALGEMM_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define DUALGEMM_API __attribute__((visibility("default")))
#else
#define DUALGEMM_API
#endif

#endif /* DUALGEMM_EXPORT_H */
