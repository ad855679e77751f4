// The compiler's program: `ingot compile`, `check`, `debug`, `fit-exits`,
// `tokenize` and `render` end here.
#include "tools/ingot-compiler/Commands.h"

#include "runtime/support/Printable.h"
#include "runtime/support/StandardStreams.h"

#include <cstdio>
#include <iostream>

namespace ingot {

int exitCode(const Status &status) {
  switch (status.code()) {
  case StatusCode::Ok:
    return 0;
  case StatusCode::InvalidInput:
  case StatusCode::NotFound:
    return 2;
  case StatusCode::Unsupported:
    return 3;
  case StatusCode::IoError:
  case StatusCode::OutOfMemory:
  case StatusCode::Busy:
    return 4;
  case StatusCode::Internal:
    break;
  }
  return 5;
}

int finish(const Status &status) {
  if (!status)
    std::fprintf(stderr, "error: %s\n",
                 printableLines(status.message()).c_str());
  return exitCode(status);
}

} // namespace ingot

int main(int argc, char **argv) {
  ingot::holdStandardStreams();
  std::ios::sync_with_stdio(false);
  CLI::App app("Ingot's compiler: language models to artifacts");
  app.name("ingot-compiler");
  app.set_version_flag("--version", "ingot " INGOT_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done; 1 wrong usage; 2 an input is missing or broken;\n"
      "3 a well-formed input needs what this build cannot do; 4 reading,\n"
      "writing or memory failed; 5 a fault of the compiler itself; 6 (debug) "
      "something\nwas found.");
  std::pair<const char *, ingot::Command> commands[] = {
      {"compile", ingot::addCompileCommand(app)},
      {"check", ingot::addCheckCommand(app)},
      {"debug", ingot::addDebugCommand(app)},
      {"fit-exits", ingot::addFitExitsCommand(app)},
      {"measure-exits", ingot::addMeasureExitsCommand(app)},
      {"tokenize", ingot::addTokenizeCommand(app)},
      {"render", ingot::addRenderCommand(app)}};
  auto isNamed = [&](CLI::App *one) { return one->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(isNamed).empty()) {
    std::fprintf(stderr,
                 "error: no command is named \"%s\"\n"
                 "Run with --help for more information.\n",
                 argv[1]);
    return 1;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  for (auto &[name, command] : commands)
    if (app.got_subcommand(name))
      return command();
  return 1;
}
