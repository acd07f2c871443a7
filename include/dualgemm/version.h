/* Version of the library; the build reads these three lines. */
#ifndef DUALGEMM_VERSION_H
#define DUALGEMM_VERSION_H

#define DUALGEMM_VERSION_MAJOR 0
#define DUALGEMM_VERSION_MINOR 1
#define DUALGEMM_VERSION_PATCH 0

#endif /* DUALGEMM_VERSION_H */
