#include "runtime/serve/EncoderModel.h"

#include "runtime/support/MappedFiles.h"

#include <ctime>

namespace ingot::serve {

Result<std::unique_ptr<ServedEncoder>>
EncoderModel::create(std::unique_ptr<Encoder> encoder, std::string id) {
  const std::string &path = encoder->artifact().path();
  if (!encoder->tokenizer())
    return Status::unsupported(path +
                               ": has no tokenizer, so it cannot be served");
  std::unique_ptr<EncoderModel> model(new EncoderModel(std::move(encoder)));
  const Encoder &opened = *model->encoder_;
  ModelCard &card = model->card_;
  card.id = id.empty() ? opened.model().name()->str() : std::move(id);
  if (card.id.empty())
    return Status::invalid(path + ": has no name; give one as NAME=" + path);
  card.created = std::time(nullptr);
  card.context = opened.core().longestText();
  card.vocab = std::int32_t(opened.model().vocab());
  card.sequences = opened.contract().sequences;
  card.fingerprint = "ingot-" INGOT_VERSION "-" + opened.level();
  card.origin = path;
  return std::unique_ptr<ServedEncoder>(std::move(model));
}

Status EncoderModel::checkFile() const {
  return checkMappingUnchanged(
      encoder_->artifact().segment(container::SegmentKind::Plan).data());
}

} // namespace ingot::serve
