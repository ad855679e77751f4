#include "dialects/lm/Provenance.h"

#include "dialects/lm/LmDialect.h"

using namespace mlir;

namespace ingot::lm {
namespace {

constexpr llvm::StringLiteral kFrom = "from";

Location named(MLIRContext *context, llvm::StringRef name, Location child) {
  return NameLoc::get(StringAttr::get(context, name), child);
}

// The tensor or node that an imported operator's location names.
std::string importedName(Location child) {
  auto name = dyn_cast<NameLoc>(child);
  return name ? name.getName().str() : std::string();
}

void append(Location location, std::vector<Origin> &origins) {
  auto name = dyn_cast<NameLoc>(location);
  if (!name) {
    // Upstream rewrites fuse locations as they are.
    if (auto fused = dyn_cast<FusedLoc>(location))
      for (Location inner : fused.getLocations())
        append(inner, origins);
    return;
  }
  auto fused = dyn_cast<FusedLoc>(name.getChildLoc());
  if (!fused) {
    origins.push_back({name.getName().str(), importedName(name.getChildLoc())});
    return;
  }
  auto columns = dyn_cast_or_null<DenseI64ArrayAttr>(fused.getMetadata());
  if (!columns || columns.size() != std::int64_t(fused.getLocations().size())) {
    for (Location inner : fused.getLocations())
      append(inner, origins);
    return;
  }
  std::int64_t first = 0;
  for (auto [inner, width] :
       llvm::zip(fused.getLocations(), columns.asArrayRef())) {
    std::size_t begin = origins.size();
    append(inner, origins);
    if (origins.size() > begin) {
      // Of several operators, the last one's result has the columns.
      origins.back().first = first;
      origins.back().columns = width;
    }
    first += width;
  }
}

} // namespace

Location importedLocation(MLIRContext *context, llvm::StringRef name,
                          llvm::StringRef imported) {
  return imported.empty()
             ? nameLocation(context, name)
             : named(context, name, nameLocation(context, imported));
}

Location derivedLocation(MLIRContext *context, llvm::StringRef name,
                         llvm::ArrayRef<Location> from) {
  // Without a name of its own, the first that is found among them.
  if (name.empty())
    return FusedLoc::get(context, from);
  return named(context, name,
               FusedLoc::get(from, StringAttr::get(context, kFrom), context));
}

Location columnsLocation(MLIRContext *context, llvm::StringRef name,
                         llvm::ArrayRef<Location> from,
                         llvm::ArrayRef<std::int64_t> columns) {
  if (name.empty())
    return FusedLoc::get(context, from);
  return named(
      context, name,
      FusedLoc::get(from, DenseI64ArrayAttr::get(context, columns), context));
}

Location renamedLocation(Location location, llvm::StringRef name) {
  auto old = dyn_cast<NameLoc>(location);
  return named(location.getContext(), name, old ? old.getChildLoc() : location);
}

std::vector<Origin> originsOf(Location location) {
  std::vector<Origin> origins;
  append(location, origins);
  return origins;
}

} // namespace ingot::lm
