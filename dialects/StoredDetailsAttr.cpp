#include "dialects/StoredDetailsAttr.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace ingot {
namespace {

DictionaryAttr
planeAttr(Builder &builder, const StoredPlane &plane,
          llvm::function_ref<std::string(std::uint32_t)> symbolOf) {
  MLIRContext *context = builder.getContext();
  NamedAttrList list;
  list.set("source",
           FlatSymbolRefAttr::get(context, plane.source.empty()
                                               ? symbolOf(plane.fileIndex)
                                               : plane.source));
  list.set("name", builder.getStringAttr(plane.name));
  list.set("offset", builder.getI64IntegerAttr(plane.byteOffset));
  list.set("size", builder.getI64IntegerAttr(plane.sizeBytes));
  list.set("type", builder.getStringAttr(planeTypeName(plane.type)));
  return list.getDictionary(context);
}

// Takes the keys of a dictionary one by one; those left over are unknown.
class DictionaryReader {
public:
  DictionaryReader(DictionaryAttr attr, std::string where)
      : attr_(attr), where_(std::move(where)) {}

  template <typename AttrT> Result<AttrT> take(llvm::StringRef key) {
    ++taken_;
    auto value = attr_.getAs<AttrT>(key);
    if (!value)
      return Status::invalid(where_ + ": expected \"" + key.str() + "\"");
    return value;
  }
  bool has(llvm::StringRef key) const { return attr_.contains(key); }
  Result<std::int64_t> integer(llvm::StringRef key) {
    INGOT_ASSIGN_OR_RETURN(auto value, take<IntegerAttr>(key));
    if (!value.getType().isSignlessInteger(64))
      return Status::invalid(where_ + ": \"" + key.str() + "\" is not an i64");
    return value.getInt();
  }
  Status finish() const {
    if (attr_.size() != taken_)
      return Status::invalid(where_ + ": has keys that are not known");
    return Status::ok();
  }

private:
  DictionaryAttr attr_;
  std::string where_;
  std::size_t taken_ = 0;
};

Result<StoredPlane> readPlane(DictionaryReader &parent, llvm::StringRef key) {
  INGOT_ASSIGN_OR_RETURN(auto attr, parent.take<DictionaryAttr>(key));
  DictionaryReader reader(attr, key.str());
  StoredPlane plane;
  INGOT_ASSIGN_OR_RETURN(auto source, reader.take<FlatSymbolRefAttr>("source"));
  plane.source = source.getValue().str();
  INGOT_ASSIGN_OR_RETURN(auto name, reader.take<StringAttr>("name"));
  plane.name = name.str();
  INGOT_ASSIGN_OR_RETURN(std::int64_t offset, reader.integer("offset"));
  INGOT_ASSIGN_OR_RETURN(std::int64_t size, reader.integer("size"));
  if (offset < 0 || size < 0)
    return Status::invalid(key.str() + ": offset and size are not negative");
  plane.byteOffset = static_cast<std::uint64_t>(offset);
  plane.sizeBytes = static_cast<std::uint64_t>(size);
  INGOT_ASSIGN_OR_RETURN(auto type, reader.take<StringAttr>("type"));
  auto known = planeTypeByName(type.str());
  if (!known)
    return Status::invalid(key.str() + ": unknown type \"" + type.str() + "\"");
  plane.type = *known;
  INGOT_RETURN_IF_ERROR(reader.finish());
  return plane;
}

Result<StoredCodes> readCodes(DictionaryAttr attr) {
  DictionaryReader reader(attr, "codes");
  StoredCodes codes;
  INGOT_ASSIGN_OR_RETURN(auto packing, reader.take<StringAttr>("packing"));
  auto known = codePackingByName(packing.str());
  if (!known)
    return Status::invalid("codes: unknown packing \"" + packing.str() + "\"");
  codes.packing = *known;
  INGOT_ASSIGN_OR_RETURN(codes.bits, reader.integer("bits"));
  INGOT_ASSIGN_OR_RETURN(codes.group, reader.integer("group"));
  INGOT_ASSIGN_OR_RETURN(codes.rowGroup, reader.integer("row_group"));
  INGOT_ASSIGN_OR_RETURN(codes.zeroBias, reader.integer("zero_bias"));
  if (codes.bits < 1 || codes.bits > 8 || codes.zeroBias < 0 ||
      codes.zeroBias > 1)
    return Status::invalid("codes: bits or zero_bias out of range");
  INGOT_ASSIGN_OR_RETURN(codes.scales, readPlane(reader, "scales"));
  if (reader.has("zeros")) {
    INGOT_ASSIGN_OR_RETURN(codes.zeros, readPlane(reader, "zeros"));
  }
  if (reader.has("index")) {
    INGOT_ASSIGN_OR_RETURN(codes.index, readPlane(reader, "index"));
  }
  INGOT_RETURN_IF_ERROR(reader.finish());
  return codes;
}

} // namespace

DictionaryAttr
storedDetailsAttr(MLIRContext *context, const StoredDetails &details,
                  llvm::function_ref<std::string(std::uint32_t)> symbolOf) {
  if (details.empty())
    return {};
  Builder builder(context);
  NamedAttrList list;
  if (details.codes) {
    const StoredCodes &codes = *details.codes;
    NamedAttrList inner;
    inner.set("packing", builder.getStringAttr(codePackingName(codes.packing)));
    inner.set("bits", builder.getI64IntegerAttr(codes.bits));
    inner.set("group", builder.getI64IntegerAttr(codes.group));
    inner.set("row_group", builder.getI64IntegerAttr(codes.rowGroup));
    inner.set("zero_bias", builder.getI64IntegerAttr(codes.zeroBias));
    inner.set("scales", planeAttr(builder, codes.scales, symbolOf));
    if (codes.zeros)
      inner.set("zeros", planeAttr(builder, *codes.zeros, symbolOf));
    if (codes.index)
      inner.set("index", planeAttr(builder, *codes.index, symbolOf));
    list.set("codes", inner.getDictionary(context));
  }
  llvm::SmallVector<Attribute> adapters;
  for (const StoredAdapter &adapter : details.adapters) {
    NamedAttrList inner;
    inner.set("a", planeAttr(builder, adapter.a, symbolOf));
    inner.set("b", planeAttr(builder, adapter.b, symbolOf));
    inner.set("rank", builder.getI64IntegerAttr(adapter.rank));
    inner.set("scale", builder.getF32FloatAttr(adapter.scale));
    inner.set("transposed", builder.getBoolAttr(adapter.transposed));
    adapters.push_back(inner.getDictionary(context));
  }
  if (!adapters.empty())
    list.set("adapters", builder.getArrayAttr(adapters));
  return list.getDictionary(context);
}

Result<StoredDetails> readStoredDetails(DictionaryAttr attr) {
  StoredDetails details;
  if (!attr)
    return details;
  DictionaryReader reader(attr, "details");
  if (reader.has("codes")) {
    INGOT_ASSIGN_OR_RETURN(auto codes, reader.take<DictionaryAttr>("codes"));
    INGOT_ASSIGN_OR_RETURN(details.codes, readCodes(codes));
  }
  if (reader.has("adapters")) {
    INGOT_ASSIGN_OR_RETURN(auto list, reader.take<ArrayAttr>("adapters"));
    for (Attribute element : list) {
      auto inner = dyn_cast<DictionaryAttr>(element);
      if (!inner)
        return Status::invalid("adapters: expected dictionaries");
      DictionaryReader one(inner, "adapter");
      StoredAdapter adapter;
      INGOT_ASSIGN_OR_RETURN(adapter.a, readPlane(one, "a"));
      INGOT_ASSIGN_OR_RETURN(adapter.b, readPlane(one, "b"));
      INGOT_ASSIGN_OR_RETURN(adapter.rank, one.integer("rank"));
      INGOT_ASSIGN_OR_RETURN(auto transposed, one.take<BoolAttr>("transposed"));
      adapter.transposed = transposed.getValue();
      INGOT_ASSIGN_OR_RETURN(auto scale, one.take<FloatAttr>("scale"));
      if (!scale.getType().isF32())
        return Status::invalid("adapter: \"scale\" is not an f32");
      adapter.scale = scale.getValue().convertToFloat();
      INGOT_RETURN_IF_ERROR(one.finish());
      details.adapters.push_back(std::move(adapter));
    }
  }
  INGOT_RETURN_IF_ERROR(reader.finish());
  return details;
}

Result<std::uint64_t> verifyStoredDetails(DictionaryAttr attr,
                                          llvm::StringRef name,
                                          std::int64_t rows,
                                          std::int64_t columns) {
  INGOT_ASSIGN_OR_RETURN(StoredDetails details, readStoredDetails(attr));
  std::uint64_t bytes = 0;
  if (details.codes) {
    INGOT_ASSIGN_OR_RETURN(
        bytes, codesBytes(*details.codes, static_cast<std::uint64_t>(rows),
                          static_cast<std::uint64_t>(columns)));
  }
  INGOT_RETURN_IF_ERROR(checkDetails(details, name.str(),
                                     static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns)));
  return bytes;
}

} // namespace ingot
