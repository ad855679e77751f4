#include "tools/ingot/Report.h"

#include "runtime/support/Printable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
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

std::string jsonText(const nlohmann::ordered_json &value, int indent) {
  // Pure ASCII: what is not is a \u escape, so no byte commands a terminal.
  return value.dump(indent, ' ', /*ensure_ascii=*/true,
                    nlohmann::ordered_json::error_handler_t::replace);
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
    text += format("%-56s %8llu %10.1f %6.1f%% %8.2f", printable(name).c_str(),
                   static_cast<unsigned long long>(sum.calls),
                   sum.seconds / double(sum.calls) * 1e6,
                   total > 0 ? sum.seconds / total * 100 : 0, rate / 1e9);
    text += bandwidth > 0 ? format(" %8.0f%%\n", rate / bandwidth * 100)
                          : format(" %9s\n", "-");
  }
  return text;
}

} // namespace ingot::cli
