// What signals do to the command, whichever file it reads or writes.
#pragma once

namespace dualgemm::cli {

// SIGINT, SIGTERM, SIGHUP: temporary files and folders are removed, then the signal has its default
//   effect, so that a shell sees which it was (130, 143, 129). Ignored ones (nohup) stay ignored.
// SIGXFSZ: ignored, so that a file beyond `ulimit -f` is an error of the write like a full disk.
// SIGBUS within a file that is read: it was cut meanwhile. A message names it, temporary files are
//   removed, exit status 1. Any other SIGBUS has its default effect.
void install_signal_handlers();

}  // namespace dualgemm::cli
