#include "runtime/serve/Server.h"

#include "runtime/serve/Preparation.h"
#include "runtime/serve/WorkQueue.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <random>
#include <unordered_set>

namespace ingot::serve {
namespace {

using Clock = std::chrono::steady_clock;

struct Route {
  const char *method;
  const char *path;
  bool isOpen; // without a key
};

constexpr Route kRoutes[] = {
    {"POST", "/v1/completions", false}, {"POST", "/v1/chat/completions", false},
    {"POST", "/v1/embeddings", false},  {"POST", "/tokenize", false},
    {"POST", "/detokenize", false},     {"GET", "/v1/models", false},
    {"GET", "/health", true},           {"GET", "/version", true},
    {"GET", "/metrics", true},
};
constexpr std::string_view kModelPrefix = "/v1/models/";

// A client's id is taken as it is where it is harmless in logs and headers.
bool isGoodRequestId(std::string_view id) {
  return !id.empty() && id.size() <= 128 &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '-' ||
                  c == '_' || c == '.';
         });
}

std::string freshId() {
  static thread_local std::mt19937_64 generator{
      (std::uint64_t(std::random_device()()) << 32) ^ std::random_device()()};
  char text[40];
  std::snprintf(text, sizeof text, "%016llx%08llx",
                static_cast<unsigned long long>(generator()),
                static_cast<unsigned long long>(generator() >> 32));
  return text;
}

bool isJsonBody(std::string_view contentType) {
  std::string_view type = contentType.substr(0, contentType.find(';'));
  while (!type.empty() && type.back() == ' ')
    type.remove_suffix(1);
  std::string lower(type);
  for (char &c : lower)
    c = char(std::tolower(static_cast<unsigned char>(c)));
  return lower.empty() || lower == "application/json";
}

// One request from its head to the last byte of its answer.
struct Call {
  std::shared_ptr<HttpExchange> exchange;
  Clock::time_point arrived = Clock::now();
  RequestRecord record;
  std::string client; // the key's name; empty without keys
  EngineLoop *loop = nullptr;
  EngineLoop::JobId job = 0;
  std::int64_t sequences = 0; // held of the model's places; 0 when given back
  std::shared_ptr<GenerationAnswer> answer;
  EmbeddingLoop *encoder = nullptr;
  EmbeddingLoop::JobId embedding = 0; // of the encoder; 0 when it is done
  // Answered, by the drain's deadline too, or left by its client: what still
  // comes for it is dropped, and what has not begun need not begin.
  std::atomic<bool> isSettled{false};
};

// Preparing takes turns with the engines' own threads: a few do.
unsigned preparingThreads() {
  return std::clamp(std::thread::hardware_concurrency() / 4, 2u, 4u);
}

} // namespace

struct Server::Impl : HttpHandler {
  explicit Impl(const ServerOptions &wanted)
      : options(wanted), keys(wanted.keys), rate(wanted.requestsPerMinute) {}

  std::unique_ptr<HttpResponse> onHead(const HttpRequest &request) override;
  void onRequest(std::shared_ptr<HttpExchange> exchange) override;
  HttpResponse onRefusal(int status, const std::string &message) override;

  std::optional<ApiError> checkHead(const HttpRequest &request);
  std::optional<ApiError> checkRate(const HttpRequest &request);
  std::string clientOf(const HttpRequest &request) const;
  NamedModel findModel(const std::string *name) const;

  void answerNow(Call &call, HttpResponse response);
  void answerGet(Call &call);
  void startGeneration(const std::shared_ptr<Call> &call, Preparation made);
  void startEmbedding(const std::shared_ptr<Call> &call, Preparation made);
  void onEmbedded(Call &call, const EmbeddingPlan &plan,
                  Result<std::vector<Embedding>> result);
  void onPrepared(const std::shared_ptr<Call> &call, Preparation made);
  void endCall(Call &call, ExchangeEnd end);
  void giveBack(Call &call);
  void stopWork(Call &call);
  struct Hosted;
  std::optional<ApiError> checkFile(Hosted &hosted);
  void endAtDeadline(std::size_t numOpen);
  void record(const RequestRecord &record);

  std::string modelsBody() const;
  HttpResponse health();
  std::string metricsBody();

  ServerOptions options;
  ClientKeys keys;
  RateLimit rate;
  MetricRegistry registry;
  // What uses the transport goes before it.
  std::unique_ptr<HttpServer> http;
  struct Hosted {
    std::unique_ptr<ModelMetrics> metrics;
    // One of the two.
    std::unique_ptr<EngineLoop> loop;
    std::unique_ptr<EmbeddingLoop> encoder;
    std::int64_t sequences = 0; // that requests hold now; requests of encoders

    NamedModel named() const { return {loop.get(), encoder.get()}; }
    const ModelCard &card() const { return named().card(); }
    EngineLoop::Progress progress() const {
      return loop ? loop->progress() : encoder->progress();
    }
    EngineMetrics engineMetrics() const {
      return loop ? loop->engineMetrics() : encoder->engineMetrics();
    }
    bool isChanged = false; // its file was found written to
    Json json() const;
  };
  std::vector<Hosted> models;
  std::unordered_set<std::shared_ptr<Call>> calls; // that have not ended
  std::unique_ptr<WorkQueue> work;
};

Json Server::Impl::Hosted::json() const {
  Json object = {{"id", card().id},
                 {"object", "model"},
                 {"created", card().created},
                 {"owned_by", "ingot"},
                 {"max_model_len", card().context},
                 {"task", loop ? "generate" : "embed"}};
  if (encoder)
    object["dimensions"] = encoder->model().dimensions();
  return object;
}

std::string Server::Impl::clientOf(const HttpRequest &request) const {
  if (const std::string *name = keys.clientOf(request.header("Authorization")))
    return *name;
  return keys.isEmpty() ? request.remoteAddress : std::string("-");
}

std::optional<ApiError> Server::Impl::checkHead(const HttpRequest &request) {
  bool isPath = false, isOpen = false;
  std::string allowed;
  for (const Route &route : kRoutes)
    if (request.path == route.path) {
      isPath = true;
      isOpen = route.isOpen;
      allowed = route.method;
    }
  if (request.path.starts_with(kModelPrefix)) {
    isPath = true;
    allowed = "GET";
  }
  // An unknown path is told only to those who may ask.
  if (!isOpen && !keys.isEmpty() &&
      !keys.clientOf(request.header("Authorization")))
    return ApiError{401,
                    "expected a valid API key as \"Authorization: Bearer "
                    "KEY\"",
                    {},
                    "invalid_api_key",
                    0};
  if (!isPath)
    return ApiError::notFound("there is no " + request.path.substr(0, 200), {},
                              "unknown_url");
  bool isHead = request.method == "HEAD" && allowed == "GET";
  if (request.method != allowed && !isHead)
    return ApiError{405,
                    request.path.substr(0, 200) + " is for " + allowed,
                    {},
                    "method_not_allowed",
                    0};
  if (allowed == "GET")
    return std::nullopt;
  if (http->isDraining())
    return ApiError::overloaded("the server is shutting down", 5);
  if (!isJsonBody(request.header("Content-Type")))
    return ApiError{415,
                    "expected Content-Type: application/json",
                    {},
                    "unsupported_media_type",
                    0};
  if (auto encoding = request.header("Content-Encoding");
      !encoding.empty() && encoding != "identity")
    return ApiError{415,
                    "Content-Encoding: only identity is understood",
                    {},
                    "unsupported_media_type",
                    0};
  return checkRate(request);
}

std::optional<ApiError> Server::Impl::checkRate(const HttpRequest &request) {
  if (!request.path.ends_with("/completions") &&
      request.path != "/v1/embeddings")
    return std::nullopt;
  int wait = rate.take(clientOf(request), Clock::now());
  if (wait == 0)
    return std::nullopt;
  return ApiError{429,
                  "more than " + std::to_string(options.requestsPerMinute) +
                      " requests a minute",
                  {},
                  "rate_limit_exceeded",
                  wait};
}

std::unique_ptr<HttpResponse> Server::Impl::onHead(const HttpRequest &request) {
  auto error = checkHead(request);
  if (!error)
    return nullptr;
  auto response = std::make_unique<HttpResponse>(error->response());
  std::string given(request.header("X-Request-Id"));
  RequestRecord said;
  said.requestId = isGoodRequestId(given) ? given : freshId();
  said.client = clientOf(request);
  said.method = request.method;
  said.path = request.path.substr(0, 200);
  said.status = error->status;
  said.error = error->message;
  response->headers.emplace_back("X-Request-Id", said.requestId);
  if (error->status == 405)
    response->headers.emplace_back(
        "Allow", error->message.ends_with("POST") ? "POST" : "GET, HEAD");
  record(said);
  return response;
}

HttpResponse Server::Impl::onRefusal(int status, const std::string &message) {
  ApiError error;
  error.status = status;
  error.message = message;
  if (status == 503) {
    error.code = "overloaded";
    error.retryAfterSeconds = 1;
  }
  HttpResponse response = error.response();
  RequestRecord said;
  said.requestId = freshId();
  said.client = said.method = said.path = "-";
  said.status = status;
  said.error = message;
  response.headers.emplace_back("X-Request-Id", said.requestId);
  record(said);
  return response;
}

void Server::Impl::record(const RequestRecord &said) {
  registry
      .counter("ingot_http_requests_total",
               "Requests that have ended, by path and status.",
               {{"path", said.status == 404 || said.status == 405 ||
                                 said.path.starts_with(kModelPrefix)
                             ? "other"
                             : said.path},
                {"code", std::to_string(said.status)}})
      .add();
  if (options.onRecord)
    options.onRecord(said);
}

NamedModel Server::Impl::findModel(const std::string *name) const {
  if (!name) {
    if (models.size() == 1)
      return models.front().named();
    failField("model", "is missing, and there is more than one");
  }
  for (const Hosted &each : models)
    if (each.card().id == *name)
      return each.named();
  throw ApiFailure{ApiError::notFound("the model \"" + name->substr(0, 200) +
                                          "\" does not exist here",
                                      "model", "model_not_found")};
}

void Server::Impl::onRequest(std::shared_ptr<HttpExchange> exchange) {
  auto call = std::make_shared<Call>();
  call->exchange = exchange;
  const HttpRequest &request = exchange->request();
  std::string given(request.header("X-Request-Id"));
  call->record.requestId = isGoodRequestId(given) ? given : freshId();
  call->record.client = clientOf(request);
  call->record.method = request.method;
  call->record.path = request.path;
  call->client = call->record.client;
  calls.insert(call);
  exchange->onEnd = [this, call](ExchangeEnd end) {
    calls.erase(call);
    endCall(*call, end);
  };
  if (request.method != "POST")
    return answerGet(*call);
  Endpoint endpoint = request.path == "/v1/completions" ? Endpoint::Completions
                      : request.path == "/v1/chat/completions" ? Endpoint::Chat
                      : request.path == "/v1/embeddings" ? Endpoint::Embeddings
                      : request.path == "/tokenize"      ? Endpoint::Tokenize
                                                         : Endpoint::Detokenize;
  auto prepareCall = [this, call, exchange, endpoint] {
    if (call->isSettled)
      return;
    auto made = std::make_shared<Preparation>(
        prepare(endpoint, exchange->request().body,
                [this](const std::string *name) { return findModel(name); }));
    http->post([this, call, made] { onPrepared(call, std::move(*made)); });
  };
  if (!work->add(call->client, request.body.size(), std::move(prepareCall))) {
    ApiError refusal = ApiError::overloaded(
        "too many requests wait to be read: the queue is full", 1);
    call->record.error = refusal.message;
    answerNow(*call, refusal.response());
  }
}

void Server::Impl::answerNow(Call &call, HttpResponse response) {
  call.isSettled = true;
  call.record.status = response.status;
  response.headers.emplace_back("X-Request-Id", call.record.requestId);
  call.exchange->respond(std::move(response));
}

void Server::Impl::onPrepared(const std::shared_ptr<Call> &call,
                              Preparation made) {
  if (call->isSettled)
    return;
  if (made.model.loop || made.model.encoder)
    call->record.model = made.model.card().id;
  call->record.user = made.user;
  call->record.note = made.note;
  if (made.error) {
    call->record.error = made.error->message;
    return answerNow(*call, made.error->response());
  }
  if (made.body) {
    HttpResponse response;
    response.body = std::move(*made.body);
    return answerNow(*call, std::move(response));
  }
  if (made.embedding.texts.empty())
    startGeneration(call, std::move(made));
  else
    startEmbedding(call, std::move(made));
}

// Once it was written to, nobody knows what a file holds.
std::optional<ApiError> Server::Impl::checkFile(Hosted &hosted) {
  if (!hosted.isChanged) {
    Status status = hosted.loop ? hosted.loop->model().checkFile()
                                : hosted.encoder->model().checkFile();
    if (status)
      return std::nullopt;
    hosted.isChanged = true;
    if (options.onMessage)
      options.onMessage("\"" + hosted.card().id +
                        "\" answers no more: " + status.message());
  }
  return ApiError{503,
                  "the file of \"" + hosted.card().id +
                      "\" was changed under the server, which must be "
                      "started anew",
                  {},
                  "model_changed",
                  0};
}

void Server::Impl::startEmbedding(const std::shared_ptr<Call> &call,
                                  Preparation made) {
  auto hosted =
      std::find_if(models.begin(), models.end(), [&](const Hosted &each) {
        return each.encoder.get() == made.model.encoder;
      });
  if (auto refusal = checkFile(*hosted)) {
    call->record.error = refusal->message;
    return answerNow(*call, refusal->response());
  }
  // Texts of many requests share a step; what waits is counted by request.
  std::int64_t places =
      std::int64_t(hosted->card().sequences) + options.maxQueue;
  if (hosted->sequences >= places) {
    ApiError refusal = ApiError::overloaded(
        "the queue of \"" + call->record.model + "\" is full", 1);
    call->record.error = refusal.message;
    return answerNow(*call, refusal.response());
  }
  ++hosted->sequences;
  call->sequences = 1;
  call->encoder = made.model.encoder;
  made.embedding.arrived = call->arrived;
  // Delivered on this thread, and nothing is when the encoder is gone.
  made.embedding.onDone = [this, weak = std::weak_ptr(call),
                           plan = std::move(made.embeddingPlan)](
                              Result<std::vector<Embedding>> result) {
    if (auto done = weak.lock())
      onEmbedded(*done, plan, std::move(result));
  };
  call->embedding = call->encoder->submit(std::move(made.embedding));
}

void Server::Impl::onEmbedded(Call &call, const EmbeddingPlan &plan,
                              Result<std::vector<Embedding>> result) {
  if (call.isSettled)
    return;
  call.embedding = 0;
  giveBack(call);
  if (!result) {
    ApiError error = ApiError::fromStatus(result.status());
    call.record.error = error.message;
    return answerNow(call, error.response());
  }
  call.record.promptTokens = plan.promptTokens;
  HttpResponse response;
  response.body = embeddingsBody(plan, *result);
  answerNow(call, std::move(response));
}

void Server::Impl::startGeneration(const std::shared_ptr<Call> &call,
                                   Preparation made) {
  auto hosted =
      std::find_if(models.begin(), models.end(), [&](const Hosted &each) {
        return each.loop.get() == made.model.loop;
      });
  std::int64_t wanted =
      std::int64_t(made.job.prompts.size()) * made.job.request.copies;
  std::int64_t places =
      std::int64_t(hosted->card().sequences) + options.maxQueue;
  std::optional<ApiError> refusal = checkFile(*hosted);
  if (!refusal && wanted > places)
    refusal = ApiError::invalid("n: the request has " + std::to_string(wanted) +
                                    " choices, the batch and the queue hold " +
                                    std::to_string(places),
                                "n");
  else if (!refusal && hosted->sequences + wanted > places)
    refusal = ApiError::overloaded(
        "the queue of \"" + call->record.model + "\" is full", 1);
  if (refusal) {
    call->record.error = refusal->message;
    return answerNow(*call, refusal->response());
  }
  hosted->sequences += wanted;
  call->sequences = wanted;
  call->loop = made.model.loop;

  AnswerPlan &plan = made.plan;
  plan.head.id = (plan.isChat ? "chatcmpl-" : "cmpl-") + call->record.requestId;
  plan.headers.emplace_back("X-Request-Id", call->record.requestId);
  call->answer = std::make_shared<GenerationAnswer>(
      std::move(plan), made.job.prompts.size(), call->loop->model().tokenizer(),
      call->exchange, [this, weak = std::weak_ptr(call)] {
        if (auto done = weak.lock())
          giveBack(*done);
      });
  made.job.arrived = call->arrived;
  made.job.request.client = call->client;
  made.job.sink = call->answer;
  call->job = call->loop->submit(std::move(made.job));
}

void Server::Impl::giveBack(Call &call) {
  for (Hosted &each : models)
    if (each.loop.get() == call.loop && each.encoder.get() == call.encoder)
      each.sequences -= call.sequences;
  call.sequences = 0;
}

void Server::Impl::stopWork(Call &call) {
  if (call.sequences == 0)
    return;
  if (call.embedding != 0)
    call.encoder->cancel(call.embedding);
  else
    call.loop->cancel(call.job);
  giveBack(call);
}

// What is under way is answered here, not by its engine, which may be what
// does not come to an end.
void Server::Impl::endAtDeadline(std::size_t numOpen) {
  if (options.onMessage && numOpen > 0)
    options.onMessage(
        "the drain's deadline has passed: " + std::to_string(numOpen) +
        " requests are ended with an error");
  Status status = Status::busy("the server is shutting down");
  auto open = calls;
  for (const std::shared_ptr<Call> &call : open) {
    if (call->isSettled)
      continue;
    stopWork(*call);
    if (call->answer) {
      call->isSettled = true;
      call->answer->onFailure(status);
      continue;
    }
    ApiError refusal = ApiError::fromStatus(status);
    call->record.error = refusal.message;
    answerNow(*call, refusal.response());
  }
}

void Server::Impl::endCall(Call &call, ExchangeEnd end) {
  RequestRecord &said = call.record;
  call.isSettled = true;
  stopWork(call);
  if (call.answer) {
    const AnswerSummary &summary = call.answer->summary();
    said.status = summary.status;
    said.promptTokens = summary.usage.promptTokens;
    said.cachedTokens = summary.usage.cachedTokens;
    said.outputTokens = summary.usage.outputTokens;
    said.firstTokenSeconds = summary.firstTokenSeconds;
    said.finish = summary.finish;
    if (!summary.error.empty())
      said.error = summary.error;
  }
  if (end != ExchangeEnd::Complete) {
    said.status = 499; // as others log a client that left
    said.error = exchangeEndName(end);
  }
  said.seconds =
      std::chrono::duration<double>(Clock::now() - call.arrived).count();
  record(said);
  call.answer.reset();
  call.exchange.reset();
}

void Server::Impl::answerGet(Call &call) {
  const std::string &path = call.exchange->request().path;
  HttpResponse response;
  if (path == "/health") {
    response = health();
  } else if (path == "/version") {
    response.body = dumpJson({{"version", INGOT_VERSION}});
  } else if (path == "/metrics") {
    response.contentType = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metricsBody();
  } else if (path == "/v1/models") {
    response.body = modelsBody();
  } else {
    std::string name = path.substr(kModelPrefix.size());
    try {
      const std::string &id = findModel(&name).card().id;
      for (const Hosted &each : models)
        if (each.card().id == id)
          response.body = dumpJson(each.json());
    } catch (const ApiFailure &failure) {
      call.record.error = failure.error.message;
      response = failure.error.response();
    }
  }
  answerNow(call, std::move(response));
}

std::string Server::Impl::modelsBody() const {
  Json list = Json::array();
  for (const Hosted &each : models) {
    list.push_back(each.json());
  }
  return dumpJson({{"object", "list"}, {"data", std::move(list)}});
}

// Alive is not enough: an engine with work must have moved lately.
HttpResponse Server::Impl::health() {
  Json list = Json::array();
  double limit = std::chrono::duration<double>(options.stallTimeout).count();
  bool isStalled = false, isChanged = false;
  for (Hosted &each : models) {
    EngineLoop::Progress progress = each.progress();
    bool stalled = progress.isBusy && progress.secondsSinceProgress > limit;
    isStalled |= stalled;
    bool changed = checkFile(each).has_value();
    isChanged |= changed;
    list.push_back({{"id", each.card().id},
                    {"busy", progress.isBusy},
                    {"steps", progress.steps},
                    {"seconds_since_progress",
                     progress.isBusy ? progress.secondsSinceProgress : 0.0},
                    {"stalled", stalled},
                    {"changed", changed}});
  }
  const char *status = isChanged            ? "changed"
                       : isStalled          ? "stalled"
                       : http->isDraining() ? "draining"
                                            : "ok";
  HttpResponse response;
  response.status = isChanged || isStalled || http->isDraining() ? 503 : 200;
  response.body = dumpJson({{"status", status}, {"models", std::move(list)}});
  return response;
}

std::string Server::Impl::metricsBody() {
  for (Hosted &each : models) {
    each.metrics->copy(each.engineMetrics());
    EngineLoop::Progress progress = each.progress();
    registry
        .gauge("ingot_engine_seconds_since_progress",
               "Since an engine with work last finished a step.",
               {{"model", each.card().id}})
        .set(progress.isBusy ? progress.secondsSinceProgress : 0);
  }
  registry.gauge("ingot_http_connections", "Open connections.")
      .set(double(http->numConnections()));
  return registry.text();
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  // No thread may post to the transport when it goes; and what the transport
  // still holds speaks to the models when it ends.
  impl_->work.reset();
  impl_->http->close();
  impl_->models.clear();
  impl_->http.reset();
}

Result<std::unique_ptr<Server>>
Server::create(std::vector<std::unique_ptr<ServedModel>> models,
               const ServerOptions &options,
               std::vector<std::unique_ptr<ServedEncoder>> encoders) {
  std::vector<const ModelCard *> cards;
  for (const auto &model : models)
    cards.push_back(&model->card());
  for (const auto &encoder : encoders)
    cards.push_back(&encoder->card());
  if (cards.empty())
    return Status::invalid("there is no model to serve");
  for (std::size_t i = 0; i < cards.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (cards[i]->id == cards[j]->id)
        return Status::invalid(cards[i]->origin + " and " + cards[j]->origin +
                               " are both called \"" + cards[i]->id +
                               "\"; give one another name as NAME=PATH");
  auto impl = std::make_unique<Impl>(options);
  INGOT_ASSIGN_OR_RETURN(impl->http, HttpServer::listen(options.http, *impl));
  HttpServer *http = impl->http.get();
  http->onDrain = [options](const std::string &signal) {
    if (options.onMessage)
      options.onMessage((signal.empty() ? "" : signal + ": ") +
                        "no new requests; those under way have " +
                        std::to_string(options.drainTimeout.count() / 1000) +
                        " s");
    return options.drainTimeout;
  };
  http->onDrainDeadline = [impl = impl.get()](std::size_t numOpen) {
    impl->endAtDeadline(numOpen);
  };
  // As many as may wait for the engines.
  std::size_t places = 0;
  for (const ModelCard *card : cards)
    places += std::size_t(card->sequences + options.maxQueue);
  impl->work = std::make_unique<WorkQueue>(preparingThreads(), places);
  for (auto &model : models) {
    Impl::Hosted hosted;
    hosted.metrics =
        std::make_unique<ModelMetrics>(impl->registry, model->card().id);
    hosted.loop = std::make_unique<EngineLoop>(
        std::move(model), *hosted.metrics,
        [http](std::function<void()> work) { http->post(std::move(work)); });
    impl->models.push_back(std::move(hosted));
  }
  for (auto &encoder : encoders) {
    Impl::Hosted hosted;
    hosted.metrics =
        std::make_unique<ModelMetrics>(impl->registry, encoder->card().id);
    hosted.encoder = std::make_unique<EmbeddingLoop>(
        std::move(encoder), *hosted.metrics,
        [http](std::function<void()> work) { http->post(std::move(work)); });
    impl->models.push_back(std::move(hosted));
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const { return impl_->http->port(); }
ServerEnd Server::run() { return impl_->http->run(); }
void Server::drain() { impl_->http->drain(impl_->options.drainTimeout); }

} // namespace ingot::serve
