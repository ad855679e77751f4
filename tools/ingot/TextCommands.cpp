// `ingot tokenize` and `ingot render` on an artifact, and the way over to the
// compiler for everything that is the compiler's.
#include "tools/ingot/Commands.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace ingot::cli {
namespace {

Result<Tokenizer> openTokenizer(const Artifact &artifact) {
  auto tables = artifact.segment(container::SegmentKind::Tokenizer);
  if (tables.empty())
    return Status::unsupported(artifact.path() + ": has no tokenizer");
  return Tokenizer::open(tables);
}

} // namespace

Status tokenize(const TokenizeFlags &flags) {
  INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(flags.path));
  INGOT_ASSIGN_OR_RETURN(Tokenizer tokenizer, openTokenizer(artifact));
  return tokenizeLines(tokenizer, flags);
}

Status render(const RenderFlags &flags) {
  INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(flags.path));
  INGOT_ASSIGN_OR_RETURN(Tokenizer tokenizer, openTokenizer(artifact));
  auto segment = artifact.segment(container::SegmentKind::Template);
  if (segment.empty())
    return Status::unsupported(flags.path + ": has no chat template");
  INGOT_ASSIGN_OR_RETURN(ChatTemplateSet templates, readTemplates(segment));
  return renderText(templates, tokenizer, flags);
}

Status runCompiler(int argc, char **argv) {
  char self[4096];
  ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0)
    return Status::io(std::string("cannot find this program's folder: ") +
                      std::strerror(errno));
  std::string path(self, std::size_t(length));
  path = path.substr(0, path.rfind('/') + 1) + "ingot-compiler";
  if (::access(path.c_str(), X_OK) != 0)
    return Status::unsupported(
        "`ingot " + std::string(argv[1]) +
        "` on this input is the compiler's work, and the compiler is not "
        "installed here: " +
        path + " does not exist");
  argv[0] = path.data();
  ::execv(path.c_str(), argv);
  return Status::io(path + ": cannot start: " + std::strerror(errno));
}

} // namespace ingot::cli
