// An engine on an artifact, as a model to serve.
#pragma once

#include "runtime/engine/Engine.h"
#include "runtime/serve/ServedModel.h"

namespace ingot::serve {

class EngineModel : public ServedModel {
public:
  // `id`: what requests call it; empty: the model's own name. `userText`: may
  // messages form control tokens? Refuses an artifact without a tokenizer.
  static Result<std::unique_ptr<ServedModel>>
  create(std::unique_ptr<Engine> engine, std::string id,
         ControlTokens userText = ControlTokens::Barred);

  const ModelCard &card() const override { return card_; }
  Status checkFile() const override;
  const Tokenizer &tokenizer() const override { return *engine_->tokenizer(); }
  bool hasChatTemplate() const override {
    return engine_->templates() != nullptr;
  }
  Result<std::vector<std::int32_t>>
  chatIds(const ChatRequest &request) const override;

  Result<RequestId> submit(TokenRequest request,
                           EngineCore::OnFinish onFinish) override {
    return engine_->core().submit(std::move(request), std::move(onFinish));
  }
  bool cancel(RequestId id) override { return engine_->core().cancel(id); }
  bool isIdle() const override { return engine_->core().isIdle(); }
  Status step() override { return engine_->step(); }
  EngineMetrics metrics() const override { return engine_->metrics(); }

private:
  explicit EngineModel(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)) {}

  std::unique_ptr<Engine> engine_;
  ModelCard card_;
};

} // namespace ingot::serve
