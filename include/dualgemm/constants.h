/**
 * @file constants.h
 * The constants of the C interface. dualgemm.h includes it.
 */
#ifndef DUALGEMM_CONSTANTS_H
#define DUALGEMM_CONSTANTS_H

#include <stdint.h>

#include "dualgemm/enums.h"
#include "dualgemm/export.h"

#ifdef __cplusplus
#define DUALGEMM_NOEXCEPT noexcept
#else
#define DUALGEMM_NOEXCEPT
#endif

/* The numbers never change, new ones may be added. */

#define DUALGEMM_SF_VEC 16 /**< neighbours along k that share one E4M3 block scale */
#define DUALGEMM_PREPARED_HEADER_BYTES 256 /**< in front of each expert's prepared weights */

/** One of the codes of DUALGEMM_STATUS_TABLE. */
typedef int32_t dualgemm_status;

/* What each constant means stands in the tables of enums.h, beside its name. */
enum { DUALGEMM_STATUS_TABLE(DUALGEMM_C_CONSTANT) };       /**< DUALGEMM_OK, ... */
enum { DUALGEMM_DATA_TYPE_TABLE(DUALGEMM_C_CONSTANT) };    /**< DUALGEMM_E2M1, _F16, _BF16, _F32 */
enum { DUALGEMM_SCALE_LAYOUT_TABLE(DUALGEMM_C_CONSTANT) }; /**< DUALGEMM_SCALES_... */
enum { DUALGEMM_ACTIVATION_TABLE(DUALGEMM_C_CONSTANT) };   /**< DUALGEMM_SILU, ... */
enum { DUALGEMM_COMBINE_TABLE(DUALGEMM_C_CONSTANT) };      /**< DUALGEMM_COMBINE_... */
enum { DUALGEMM_GROUPING_TABLE(DUALGEMM_C_CONSTANT) };     /**< DUALGEMM_GROUPING_... */
enum { DUALGEMM_STRATEGY_TABLE(DUALGEMM_C_CONSTANT) };     /**< DUALGEMM_STRATEGY_... */
enum { DUALGEMM_DEVICE_TABLE(DUALGEMM_C_CONSTANT) };       /**< DUALGEMM_DEVICE_... */
enum { DUALGEMM_ISA_TABLE(DUALGEMM_C_CONSTANT) };          /**< DUALGEMM_ISA_... */
enum { DUALGEMM_REGIME_TABLE(DUALGEMM_C_CONSTANT) };       /**< DUALGEMM_REGIME_... */
enum { DUALGEMM_PREPARATION_TABLE(DUALGEMM_C_CONSTANT) };  /**< DUALGEMM_PREPARATION_... */
enum { DUALGEMM_PREPARED_FORMAT_TABLE(DUALGEMM_C_CONSTANT) }; /**< DUALGEMM_PREPARED_... */
enum { DUALGEMM_BIAS_TABLE(DUALGEMM_C_CONSTANT) };           /**< DUALGEMM_BIAS_NONE, _F32, _BF16 */
enum { DUALGEMM_GLOBAL_SCALING_TABLE(DUALGEMM_C_CONSTANT) }; /**< DUALGEMM_SCALING_... */

#endif /* DUALGEMM_CONSTANTS_H */
