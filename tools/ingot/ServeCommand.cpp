// `ingot serve`: opens the models, listens, says where, and logs a line for
// each request on standard error.
#include "tools/ExitCodes.h"
#include "tools/ingot/Commands.h"
#include "tools/ingot/Report.h"

#include "runtime/serve/EncoderModel.h"
#include "runtime/serve/EngineModel.h"
#include "runtime/serve/Server.h"
#include "tools/text/InputText.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace ingot::cli {
namespace {

constexpr std::int32_t kStepTokens = 512;
constexpr std::int32_t kChunkTokens = 64;

struct NamedPath {
  std::string name, path;
};

// NAME=PATH, unless a file has that very name.
NamedPath splitName(const std::string &text) {
  std::error_code error;
  std::size_t equals = text.find('=');
  if (equals == std::string::npos || std::filesystem::exists(text, error))
    return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

EngineOptions engineOptions(const ServeFlags &flags) {
  EngineOptions options;
  options.device = flags.device;
  options.level = flags.level;
  options.threads = flags.threads;
  options.context = flags.context;
  options.sequences = flags.sequences;
  options.stepTokens = flags.stepTokens ? flags.stepTokens : kStepTokens;
  options.chunkTokens = flags.chunkTokens ? flags.chunkTokens : kChunkTokens;
  options.stallFactor = flags.stallFactor;
  options.verifyChecksums = flags.verify;
  if (flags.kvMebibytes)
    options.kvBytes = std::uint64_t(flags.kvMebibytes) << 20;
  else
    options.kvPart = std::uint32_t(2 * flags.models.size());
  return options;
}

// Is the artifact an encoder? Only its description is looked at.
Result<bool> isEncoder(const std::string &path) {
  INGOT_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
  return artifact.plan().model()->embedding() != nullptr;
}

Result<std::unique_ptr<serve::ServedEncoder>>
openEncoder(const NamedPath &named, const ServeFlags &flags,
            std::string &memory) {
  EncoderOptions options;
  options.level = flags.level;
  options.threads = flags.threads;
  options.stepTokens = flags.stepTokens;
  options.verifyChecksums = flags.verify;
  options.context = flags.context;
  options.sequences = flags.sequences;
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Encoder> encoder,
                         Encoder::open(named.path, options));
  memory = encoder->contract().describe();
  return serve::EncoderModel::create(std::move(encoder), named.name);
}

void say(bool json, const std::string &message) {
  if (json)
    std::fprintf(stderr, "%s\n", serve::messageJson(message).c_str());
  else
    std::fprintf(stderr, "ingot: %s\n", message.c_str());
}

} // namespace

Status serve(const ServeFlags &flags) {
  serve::ServerOptions options;
  if (!flags.apiKeyFile.empty()) {
    INGOT_ASSIGN_OR_RETURN(std::string text, readText(flags.apiKeyFile));
    auto keys = serve::readApiKeys(text);
    if (!keys)
      return keys.status().withContext(flags.apiKeyFile);
    options.keys = std::move(*keys);
  }
  EngineOptions wanted = engineOptions(flags);
  INGOT_RETURN_IF_ERROR(flags.speculation.apply(wanted));
  std::vector<std::unique_ptr<serve::ServedModel>> models;
  std::vector<std::unique_ptr<serve::ServedEncoder>> encoders;
  if (flags.host.empty())
    return Status::invalid("--host is empty, expected a name or an address");
  for (const std::string &each : flags.models) {
    NamedPath named = splitName(each);
    if (named.path != each && named.name.empty())
      return Status::invalid("\"" + each + "\": expected a name before the =");
    INGOT_ASSIGN_OR_RETURN(bool encodes, isEncoder(named.path));
    if (encodes) {
      std::string memory;
      INGOT_ASSIGN_OR_RETURN(auto encoder, openEncoder(named, flags, memory));
      say(flags.logJson,
          "encoder \"" + encoder->card().id + "\": " + named.path +
              ", texts of up to " + std::to_string(encoder->card().context) +
              " tokens, batch " + std::to_string(encoder->card().sequences));
      if (!flags.logJson)
        std::fprintf(stderr, "%s", memory.c_str());
      encoders.push_back(std::move(encoder));
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                           Engine::open(named.path, wanted));
    const MemoryContract &contract = engine->contract();
    if (const std::uint64_t needed = contract.stateBytes();
        flags.kvMebibytes && needed + (1 << 20) <= wanted.kvBytes)
      say(flags.logJson,
          "note: --kv-memory of " + std::to_string(flags.kvMebibytes) +
              " MiB: the cache takes " + std::to_string(needed >> 20) +
              " MiB, all that " + std::to_string(contract.sequences) +
              " sequences of " + std::to_string(contract.context) +
              " tokens need (--sequences, --context)");
    std::string memory = contract.describe();
    std::string place = engine->placement();
    if (!engine->whyNotDevice().empty())
      place += " (no CUDA device: " + engine->whyNotDevice() + ")";
    INGOT_ASSIGN_OR_RETURN(
        std::unique_ptr<serve::ServedModel> model,
        serve::EngineModel::create(std::move(engine), named.name,
                                   flags.allowControlTokens
                                       ? ControlTokens::Allowed
                                       : ControlTokens::Barred));
    say(flags.logJson,
        "model \"" + model->card().id + "\": " + named.path + ", context " +
            std::to_string(model->card().context) + ", batch " +
            std::to_string(model->card().sequences) + ", " + place);
    if (!flags.logJson)
      std::fprintf(stderr, "%s", memory.c_str());
    models.push_back(std::move(model));
  }

  if (models.empty())
    for (auto [isGiven, flag] :
         {std::pair(wanted.speculation != Speculation::None,
                    "--speculate and --draft"),
          std::pair(!flags.device.empty() && flags.device != "cpu", "--device"),
          std::pair(flags.kvMebibytes != 0, "--kv-memory"),
          std::pair(flags.chunkTokens != 0, "--chunk-tokens"),
          std::pair(flags.stallFactor != ServeFlags().stallFactor,
                    "--stall-factor"),
          std::pair(flags.allowControlTokens, "--allow-control-tokens")})
      if (isGiven)
        return Status::invalid(std::string(flag) +
                               ": for models that generate, and all of these "
                               "are encoders");

  options.http.host = flags.host;
  options.http.port = std::uint16_t(flags.port);
  options.http.maxConnections = std::size_t(flags.maxConnections);
  options.http.maxBodyBytes = std::uint64_t(flags.maxBodyKibibytes) << 10;
  options.http.handleSignals = true;
  options.requestsPerMinute = flags.rateLimit;
  options.maxQueue = flags.maxQueue;
  options.drainTimeout = std::chrono::seconds(flags.drainSeconds);
  options.stallTimeout = std::chrono::seconds(flags.stallSeconds);
  bool json = flags.logJson;
  options.onRecord = [json](const serve::RequestRecord &record) {
    std::string line = json ? serve::logJson(record) : serve::logLine(record);
    std::fprintf(stderr, "%s\n", line.c_str());
  };
  options.onMessage = [json](const std::string &message) {
    say(json, message);
  };
  INGOT_ASSIGN_OR_RETURN(
      std::unique_ptr<serve::Server> server,
      serve::Server::create(std::move(models), options, std::move(encoders)));
  bool isLocal = flags.host == "127.0.0.1" || flags.host == "localhost" ||
                 flags.host == "::1";
  if (!isLocal && options.keys.empty())
    say(json, "note: anyone who reaches " + flags.host +
                  " may ask; --api-key-file limits that");
  say(json, "listening on http://" + flags.host + ":" +
                std::to_string(server->port()));
  switch (server->run()) {
  case serve::ServerEnd::Drained:
    break;
  case serve::ServerEnd::Interrupted:
    say(json, "interrupted: ended at once");
    std::fflush(nullptr);
    std::_Exit(kInterrupted);
  case serve::ServerEnd::CutShort:
    // An engine that hangs is not waited for.
    say(json, "done, but not with every request");
    std::fflush(nullptr);
    std::_Exit(kCutShort);
  }
  say(json, "done");
  return Status::ok();
}

} // namespace ingot::cli
