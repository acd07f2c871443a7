// Begin and end of the library inside of a program.
#include "fake_cuda/call.hpp"
#include "fake_cuda/patch/static_runtime.hpp"

namespace ptxsim::cuda {
namespace {

// Before the program's own constructors, in which it registers its kernels.
__attribute__((constructor)) void redirect() { redirect_static_runtimes(); }

// After the program's own destructors, which may still free.
__attribute__((destructor)) void end_session() {
  guarded([](Session& session) {
    session.ended();
    return kSuccess;
  });
}

}  // namespace
}  // namespace ptxsim::cuda
