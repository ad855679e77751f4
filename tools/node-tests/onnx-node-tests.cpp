// Runs every case below a folder, each in a process of its own, so that a case
// that crashes or does not end is one failure and not the end of the run.
#include "compiler/codegen/graph/NodeTest.h"
#include "runtime/support/Printable.h"
#include "tools/ExitCodes.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using ingot::graph::NodeTestOutcome;
using ingot::graph::NodeTestResult;

// The child writes a digit for the outcome and the reason into a pipe.
NodeTestResult runApart(const std::string &folder, unsigned seconds) {
  int ends[2];
  if (::pipe(ends) != 0)
    return {NodeTestOutcome::Failed, "no pipe"};
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::alarm(seconds);
    NodeTestResult result = ingot::graph::runNodeTest(folder);
    std::string text =
        std::to_string(static_cast<int>(result.outcome)) + result.reason;
    for (std::size_t at = 0; at < text.size();) {
      ssize_t count = ::write(ends[1], text.data() + at, text.size() - at);
      if (count <= 0)
        break;
      at += static_cast<std::size_t>(count);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return {NodeTestOutcome::Failed,
            WTERMSIG(status) == SIGALRM
                ? "did not end in " + std::to_string(seconds) + " s"
                : "ended by signal " + std::to_string(WTERMSIG(status))};
  if (text.empty() || text[0] < '0' || text[0] > '2')
    return {NodeTestOutcome::Failed, "ended without a result"};
  return {static_cast<NodeTestOutcome>(text[0] - '0'), text.substr(1)};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Runs ONNX back-end test cases: every folder below FOLDER that "
               "holds a model.onnx");
  std::string folder;
  std::string pattern;
  bool json = false;
  unsigned seconds = 60;
  app.add_option("FOLDER", folder)->required()->check(CLI::ExistingDirectory);
  app.add_option("--only", pattern, "Only cases whose name contains this");
  app.add_option("--seconds", seconds, "Most seconds for one case")
      ->check(CLI::Range(1, 3600));
  app.add_flag("--json", json, "Print the lists as JSON");
  ingot::addExitCodes(app, "; 1 a case\nfailed");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return ingot::exitOf(app, error);
  }

  namespace fs = std::filesystem;
  std::map<std::string, std::string> cases; // name to folder
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error))
    if (at->path().filename() == "model.onnx") {
      std::string name =
          fs::relative(at->path().parent_path(), folder, error).string();
      if (name.find(pattern) != std::string::npos)
        cases.emplace(name, at->path().parent_path().string());
    }
  if (error) {
    std::fprintf(stderr, "error: %s: %s\n", folder.c_str(),
                 error.message().c_str());
    return 2;
  }
  if (cases.empty()) {
    std::fprintf(stderr, "error: %s holds no case\n", folder.c_str());
    return 2;
  }

  const char *names[] = {"passed", "failed", "refused"};
  nlohmann::ordered_json lists{{"passed", nlohmann::json::array()},
                               {"failed", nlohmann::json::array()},
                               {"refused", nlohmann::json::array()}};
  for (const auto &[name, path] : cases) {
    NodeTestResult result = runApart(path, seconds);
    auto &list = lists[names[static_cast<int>(result.outcome)]];
    if (result.outcome == NodeTestOutcome::Passed)
      list.push_back(name);
    else
      list.push_back({{"case", name}, {"reason", result.reason}});
  }
  if (json) {
    std::printf(
        "%s\n",
        lists.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
            .c_str());
  } else {
    for (const char *which : {"refused", "failed"})
      for (const auto &one : lists[which])
        std::printf("%s %s: %s\n", which,
                    ingot::printable(one["case"].get<std::string>()).c_str(),
                    ingot::printable(one["reason"].get<std::string>()).c_str());
    std::printf("%zu cases: %zu passed, %zu failed, %zu refused\n",
                cases.size(), lists["passed"].size(), lists["failed"].size(),
                lists["refused"].size());
  }
  return lists["failed"].empty() ? 0 : 1;
}
