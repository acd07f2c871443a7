// The command on a terminal of its own: what it draws depends on $TERM.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace {

// What `dualgemm <arguments>` writes on a terminal whose type is `term`, both streams together.
std::string on_terminal(const char* term, const std::vector<std::string>& arguments) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return "no terminal";
  const int device = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  const char* override_path = std::getenv("DUALGEMM_BINARY");
  std::string binary = override_path != nullptr ? override_path : DUALGEMM_BINARY_PATH;
  std::vector<char*> argv{binary.data()};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    setenv("TERM", term, 1);
    unsetenv("NO_COLOR");
    dup2(device, STDOUT_FILENO);
    dup2(device, STDERR_FILENO);
    execv(binary.c_str(), argv.data());
    _exit(127);
  }
  close(device);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(terminal, buffer, sizeof buffer)) > 0;)  // EIO: all have closed it
    text.append(buffer, static_cast<size_t>(got));
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  return text;
}

const std::vector<std::string> kVerify = {"verify", "--m", "4,8",        "--n",  "16",
                                          "--k",    "32",  "--strategy", "fused"};

TEST(DumbTerminal, GetsNoControlSequencesAndNoLineTwice) {
  for (const char* term : {"dumb", ""}) {
    const std::string text = on_terminal(term, kVerify);
    EXPECT_NE(text.find("0 wrong"), std::string::npos) << text;
    EXPECT_EQ(text.find('\033'), std::string::npos) << text;
    for (size_t at = text.find('\r'); at != std::string::npos; at = text.find('\r', at + 1))
      EXPECT_EQ(text[at + 1], '\n') << "a line is drawn over: " << text;
  }
}

TEST(DumbTerminal, OthersGetProgress) {
  EXPECT_NE(on_terminal("xterm", kVerify).find("\r\033[K"), std::string::npos);
}

}  // namespace
