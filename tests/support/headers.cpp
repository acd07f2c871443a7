// Nothing: the target of this file owns the precompiled header that the tests share
// (tests/CMakeLists.txt).
