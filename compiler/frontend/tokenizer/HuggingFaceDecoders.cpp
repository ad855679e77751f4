// The decoders of tokenizer.json. A step works on single tokens until one joins
// them (Fuse, ByteLevel); from then on only the ends of the text can be stripped,
// for the text streams out while it grows.
#include "compiler/frontend/tokenizer/ComponentParts.h"
#include "compiler/frontend/tokenizer/HuggingFaceComponents.h"
#include "runtime/text/Utf8.h"

namespace ingot {
namespace {

using Kind = DecoderStep::Kind;

class DecoderReader {
public:
  explicit DecoderReader(DecoderSpec &out) : out_(out) {}

  Status read(const ComponentReader &component) {
    INGOT_ASSIGN_OR_RETURN(std::string type, component.string("type"));
    if (type == "Sequence")
      return readSequence(
          component, "decoders",
          [&](const ComponentReader &element) { return read(element); });
    if (type == "Fuse") {
      joined_ = true;
      return component.allowOnly({"type"});
    }
    if (type == "Strip")
      return readStrip(component);
    if (joined_)
      return component.unsupported("decoder " + quoteName(type) +
                                   " on text that is already joined");
    if (bytesSeen_ && type != "ByteLevel")
      return component.unsupported("decoder " + quoteName(type) +
                                   " after ByteFallback, before Fuse");
    if (type == "ByteLevel") {
      joined_ = true;
      out_.steps.push_back({Kind::ByteLevel});
      return component.allowOnly(
          {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    }
    if (type == "ByteFallback") {
      bytesSeen_ = true;
      out_.steps.push_back({Kind::ByteFallback});
      return component.allowOnly({"type"});
    }
    return readTokenStep(component, type);
  }

private:
  Status readTokenStep(const ComponentReader &component,
                       const std::string &type) {
    DecoderStep step{Kind::Replace};
    if (type == "Replace") {
      INGOT_RETURN_IF_ERROR(
          component.allowOnly({"type", "pattern", "content"}));
      INGOT_ASSIGN_OR_RETURN(Pattern pattern, readPattern(component));
      INGOT_ASSIGN_OR_RETURN(step.content, component.string("content"));
      step.text = pattern.string.value_or("");
      step.regex = pattern.regex;
      if (step.text.empty() && step.regex.value_or("").empty())
        return component.unsupported("Replace with nothing to find");
    } else if (type == "Metaspace") {
      INGOT_ASSIGN_OR_RETURN(Metaspace metaspace, readMetaspace(component));
      step.kind = Kind::Metaspace;
      step.text = metaspace.replacement;
      step.erasesFirst = metaspace.scheme != PrependScheme::Never;
    } else if (type == "WordPiece") {
      INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "prefix", "cleanup"}));
      step.kind = Kind::WordPiece;
      INGOT_ASSIGN_OR_RETURN(step.text, component.string("prefix"));
      INGOT_ASSIGN_OR_RETURN(step.cleanup, component.boolean("cleanup"));
    } else if (type == "BPEDecoder") {
      INGOT_RETURN_IF_ERROR(component.allowOnly({"type", "suffix"}));
      step.kind = Kind::BytePairSuffix;
      INGOT_ASSIGN_OR_RETURN(step.text, component.string("suffix"));
    } else if (type == "CTC") {
      INGOT_RETURN_IF_ERROR(component.allowOnly(
          {"type", "pad_token", "word_delimiter_token", "cleanup"}));
      // Repeats are dropped as the tokens come, before any other step.
      if (!out_.steps.empty())
        return component.unsupported("CTC behind another decoder");
      step.kind = Kind::Ctc;
      INGOT_ASSIGN_OR_RETURN(step.text, component.string("pad_token"));
      INGOT_ASSIGN_OR_RETURN(step.content,
                             component.string("word_delimiter_token"));
      INGOT_ASSIGN_OR_RETURN(step.cleanup, component.boolean("cleanup"));
      out_.dropRepeats = true;
    } else {
      return component.unsupported("decoder " + quoteName(type));
    }
    out_.steps.push_back(std::move(step));
    return Status::ok();
  }

  Status readStrip(const ComponentReader &component) {
    INGOT_RETURN_IF_ERROR(
        component.allowOnly({"type", "content", "start", "stop"}));
    DecoderStep step{Kind::Strip};
    INGOT_ASSIGN_OR_RETURN(step.text, component.string("content"));
    INGOT_ASSIGN_OR_RETURN(int64_t start, component.integer("start"));
    INGOT_ASSIGN_OR_RETURN(int64_t stop, component.integer("stop"));
    if (step.text.empty() || utf8Length(step.text[0]) != step.text.size() ||
        start < 0 || start > 1024 || stop < 0 || stop > 1024)
      return component.invalid("expected a character in \"content\" and 0 to "
                               "1024 in \"start\" and \"stop\"");
    step.start = static_cast<uint32_t>(start);
    step.stop = static_cast<uint32_t>(stop);
    if (!joined_) {
      if (bytesSeen_)
        return component.unsupported("Strip after ByteFallback, before Fuse");
      out_.steps.push_back(std::move(step));
      return Status::ok();
    }
    if (out_.stripCount > 0 || out_.stripEndCount > 0)
      return component.unsupported("a second Strip of the joined text");
    out_.stripText = step.text;
    out_.stripCount = step.start;
    out_.stripEndCount = step.stop;
    return Status::ok();
  }

  DecoderSpec &out_;
  bool joined_ = false;    // tokens are one text from here on
  bool bytesSeen_ = false; // tokens may be bytes
};

} // namespace

Status readDecoder(const ComponentReader &component, TokenizerSpec &spec) {
  return DecoderReader(spec.decoder).read(component);
}

} // namespace ingot
