#include "runtime/serve/EngineModel.h"

#include "runtime/support/MappedFiles.h"

#include <ctime>

namespace ingot::serve {

Result<std::unique_ptr<ServedModel>>
EngineModel::create(std::unique_ptr<Engine> engine, std::string id,
                    ControlTokens userText) {
  const std::string &path = engine->artifact().path();
  if (!engine->tokenizer())
    return Status::unsupported(path +
                               ": has no tokenizer, so it cannot be served");
  std::unique_ptr<EngineModel> model(new EngineModel(std::move(engine)));
  const Engine &opened = *model->engine_;
  ModelCard &card = model->card_;
  card.id = id.empty() ? opened.model().name()->str() : std::move(id);
  if (card.id.empty())
    return Status::invalid(path + ": has no name; give one as NAME=" + path);
  card.created = std::time(nullptr);
  card.context = opened.contract().context;
  card.vocab = std::int32_t(opened.model().vocab());
  card.sequences = opened.contract().sequences;
  card.hasExits = !model->engine_->core().options().exits.empty();
  card.defaults = defaultSampling(opened.model());
  card.userText = userText;
  card.fingerprint = "ingot-" INGOT_VERSION "-" + opened.level();
  card.origin = path;
  return std::unique_ptr<ServedModel>(std::move(model));
}

Status EngineModel::checkFile() const {
  return checkMappingUnchanged(
      engine_->artifact().segment(container::SegmentKind::Plan).data());
}

Result<std::vector<std::int32_t>>
EngineModel::chatIds(const ChatRequest &request) const {
  INGOT_ASSIGN_OR_RETURN(
      Rendered rendered,
      renderChat(*engine_->templates(), *engine_->tokenizer(), request));
  return encodeChat(*engine_->tokenizer(), rendered, request.userText);
}

} // namespace ingot::serve
