#include "tools/ingot/Report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unistd.h>

namespace ingot::cli {

std::string format(const char *pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  int size = std::vsnprintf(nullptr, 0, pattern, arguments);
  va_end(arguments);
  std::string text(std::size_t(std::max(size, 0)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

std::string bytesText(double bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit)
    bytes /= 1024;
  return format(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

Result<std::string> readAll(const std::string &path) {
  bool isInput = path == "-";
  std::FILE *file = isInput ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return Status(errno == ENOENT ? StatusCode::NotFound : StatusCode::IoError,
                  path + ": cannot open: " + std::strerror(errno));
  std::string text;
  char chunk[1 << 16];
  for (std::size_t got; (got = std::fread(chunk, 1, sizeof chunk, file)) > 0;)
    if (text.append(chunk, got).size() > kMaxReadBytes)
      break;
  bool failed = std::ferror(file) != 0;
  if (!isInput)
    std::fclose(file);
  if (failed)
    return Status::io((isInput ? "standard input" : path) +
                      std::string(": cannot read"));
  if (text.size() > kMaxReadBytes)
    return Status::invalid((isInput ? "standard input" : path) +
                           std::string(": holds more than ") +
                           bytesText(double(kMaxReadBytes)));
  return text;
}

std::string jsonText(const nlohmann::ordered_json &value) {
  return value.dump(1, ' ', false,
                    nlohmann::ordered_json::error_handler_t::replace);
}

Status standardOutputStatus() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return Status::io("standard output: cannot write");
  return Status::ok();
}

const Colour &errorColour() {
  static const Colour colour = [] {
    const char *none = std::getenv("NO_COLOR");
    if (!::isatty(STDERR_FILENO) || (none && *none))
      return Colour{};
    return Colour{"\033[1m", "\033[2m", "\033[31m", "\033[0m"};
  }();
  return colour;
}

std::string profileTable(const std::vector<LaunchProfile> &profile,
                         double bandwidth) {
  struct Sum {
    std::uint64_t calls = 0;
    double seconds = 0, bytes = 0;
  };
  std::map<std::string, Sum> byKernel;
  double total = 0;
  for (const LaunchProfile &launch : profile) {
    if (launch.calls == 0)
      continue;
    // "layer.3.qkv" and "layer.7.qkv" are one row.
    std::string name = launch.name;
    if (name.rfind("layer.", 0) == 0)
      if (auto dot = name.find('.', 6); dot != std::string::npos)
        name = "layer.*" + name.substr(dot);
    Sum &sum = byKernel[name + "  " + launch.kernel];
    sum.calls += launch.calls;
    sum.seconds += launch.seconds;
    sum.bytes += launch.bytes;
    total += launch.seconds;
  }
  std::vector<std::pair<std::string, Sum>> rows(byKernel.begin(),
                                                byKernel.end());
  std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
    return a.second.seconds > b.second.seconds;
  });
  std::string text = format("%-56s %8s %10s %7s %8s %9s\n", "launch  kernel",
                            "calls", "us/call", "time", "GB/s", "of limit");
  for (const auto &[name, sum] : rows) {
    double rate = sum.seconds > 0 ? sum.bytes / sum.seconds : 0;
    text += format("%-56s %8llu %10.1f %6.1f%% %8.2f", name.c_str(),
                   static_cast<unsigned long long>(sum.calls),
                   sum.seconds / double(sum.calls) * 1e6,
                   total > 0 ? sum.seconds / total * 100 : 0, rate / 1e9);
    text += bandwidth > 0 ? format(" %8.0f%%\n", rate / bandwidth * 100)
                          : format(" %9s\n", "-");
  }
  return text;
}

} // namespace ingot::cli
