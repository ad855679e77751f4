// What the server needs of a model: facts and text functions that any thread
// may call, and an engine that one thread drives. An interface, so that the
// protocol is tested without weights.
#pragma once

#include "runtime/engine/ChatPrompt.h"
#include "runtime/engine/EngineCore.h"
#include "runtime/engine/EngineMetrics.h"
#include "runtime/sample/SamplingParams.h"
#include "runtime/support/Status.h"
#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::serve {

struct ModelCard {
  std::string id;
  std::int64_t created = 0; // seconds since 1970
  std::int32_t context = 0; // prompt and output together
  std::int32_t vocab = 0;
  std::int32_t sequences = 1; // that run at once
  bool hasExits = false;      // that a request may leave at
  SamplingParams defaults;    // for fields that a request leaves out
  ControlTokens userText = ControlTokens::Barred; // in messages
  std::string fingerprint;                        // changes where answers may
  std::string origin;                             // the file
};

class ServedModel {
public:
  virtual ~ServedModel() = default;

  // From any thread.
  virtual const ModelCard &card() const = 0;
  // Is its file still what was opened?
  virtual Status checkFile() const { return Status::ok(); }
  virtual const Tokenizer &tokenizer() const = 0;
  virtual bool hasChatTemplate() const = 0;
  virtual Result<std::vector<std::int32_t>>
  chatIds(const ChatRequest &request) const = 0;

  // From the engine's thread.
  virtual Result<RequestId> submit(TokenRequest request,
                                   EngineCore::OnFinish onFinish) = 0;
  virtual bool cancel(RequestId id) = 0;
  virtual bool isIdle() const = 0;
  virtual Status step() = 0;
  virtual EngineMetrics metrics() const = 0;
};

} // namespace ingot::serve
