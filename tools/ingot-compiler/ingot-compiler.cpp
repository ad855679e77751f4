// The compiler's program: `ingot compile`, `check`, `debug`, `fit-exits`,
// `tokenize` and `render` end here.
#include "tools/ingot-compiler/Commands.h"

#include "compiler/package/ScratchFolder.h"
#include "runtime/support/MappedFiles.h"
#include "runtime/support/Printable.h"
#include "runtime/support/StandardStreams.h"

#include <cstdio>
#include <iostream>

namespace ingot {

int finish(const Status &status) {
  if (!status)
    std::fprintf(stderr, "error: %s\n",
                 printableLines(status.message()).c_str());
  return exitCode(status);
}

} // namespace ingot

int main(int argc, char **argv) {
  ingot::holdStandardStreams();
  ingot::exitOnBusErrors("ingot-compiler", ingot::kRefused);
  ingot::package::removeScratchOnSignals();
  std::ios::sync_with_stdio(false);
  CLI::App app("Ingot's compiler: language models to artifacts");
  app.name("ingot-compiler");
  app.set_version_flag("--version", "ingot " INGOT_VERSION);
  app.require_subcommand(1);
  std::pair<const char *, ingot::Command> commands[] = {
      {"compile", ingot::addCompileCommand(app)},
      {"check", ingot::addCheckCommand(app)},
      {"debug", ingot::addDebugCommand(app)},
      {"fit-exits", ingot::addFitExitsCommand(app)},
      {"measure-exits", ingot::addMeasureExitsCommand(app)},
      {"tokenize", ingot::addTokenizeCommand(app)},
      {"render", ingot::addRenderCommand(app)}};
  ingot::addExitCodes(app, "; 6 (debug)\nsomething was found");
  auto isNamed = [&](CLI::App *one) { return one->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(isNamed).empty()) {
    std::fprintf(stderr,
                 "error: no command is named \"%s\"\n"
                 "Run with --help for more information.\n",
                 argv[1]);
    return ingot::kWrongUse;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return ingot::exitOf(app, error);
  }
  for (auto &[name, command] : commands)
    if (app.got_subcommand(name))
      return command();
  return ingot::kWrongUse;
}
