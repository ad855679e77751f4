// Arrival traces replayed in virtual time: policy over the cache's real books,
// an executor that only takes time. Every step is checked against every
// capacity; the traces show what holds over time: everyone ends, decoding is
// never stalled, clients are served alike, no room is left unused.
#include "runtime/memory/KvCache.h"
#include "runtime/schedule/ClientService.h"
#include "runtime/schedule/Scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <random>

using namespace ingot;

namespace {

struct Arrival {
  double time = 0;
  std::int32_t prompt = 1;
  std::int32_t output = 1;
  std::string client;
  std::int32_t priority = 0;
};

struct Ending {
  double admitted = -1;
  double firstToken = -1;
  double finished = -1;
  std::int32_t preemptions = 0;
};

struct World {
  std::int32_t stepTokens = 64;
  std::int32_t sequences = 8;
  std::int32_t chunk = 0;
  std::int32_t mixed = 0;
  std::int32_t blocks = 200;
  std::int32_t window = 0; // of a second group, where not 0
  SchedulePolicy policy;
  // A step takes this long, and this much more for each row.
  double stepSeconds = 0.01, rowSeconds = 0.0005;
};

constexpr std::int32_t kBlockTokens = 16;

class Simulation final : public CacheView {
public:
  Simulation(World world, std::vector<Arrival> trace)
      : world_(std::move(world)), trace_(std::move(trace)),
        cache_(makeCache(world_)), endings(trace_.size()) {
    capacity_.maxStepTokens = world_.stepTokens;
    capacity_.maxSequences = world_.sequences;
    capacity_.maxLogitRows = world_.sequences;
    capacity_.chunkTokens = world_.chunk;
    capacity_.mixedPromptTokens = world_.mixed;
    for (std::size_t g = 0; g < cache_.numGroups(); ++g)
      capacity_.groups.push_back({cache_.allocator(g).numBlocks(), kBlockTokens,
                                  cache_.geometry(g).window, 0});
  }

  // Until all have ended, or `until`.
  void run(double until = 1e9) {
    std::int64_t steps = 0;
    while ((next_ < trace_.size() || !lives_.empty()) && now < until) {
      if (lives_.empty() && trace_[next_].time > now)
        now = trace_[next_].time;
      for (; next_ < trace_.size() && trace_[next_].time <= now; ++next_)
        arrive(next_);
      step();
      ASSERT_FALSE(::testing::Test::HasFatalFailure());
      ASSERT_LT(++steps, 2000000) << "no end";
    }
    if (lives_.empty())
      for (std::size_t g = 0; g < cache_.numGroups(); ++g)
        EXPECT_EQ(cache_.allocator(g).numHeld(), 0);
  }

  PrefixOffer offer(std::uint64_t id) const override {
    PrefixMatch match = cache_.matchPrefix({}, life(id).tokens);
    return {match.tokens, match.reusable};
  }
  std::vector<std::int32_t> releasable(std::uint64_t id) const override {
    std::vector<std::int32_t> blocks;
    for (std::size_t g = 0; g < cache_.numGroups(); ++g)
      blocks.push_back(cache_.blocksHeldAlone(id, g));
    return blocks;
  }

private:
  struct Life {
    std::size_t index = 0;
    std::vector<std::int32_t> tokens;
    std::int32_t computed = 0;
    std::int32_t charged = 0;
    bool isRunning = false;
  };

  static KvCache makeCache(const World &world) {
    GroupGeometry full;
    full.name = "full";
    full.layers = 1;
    full.layerBytes = 8;
    full.blockTokens = kBlockTokens;
    std::vector<GroupGeometry> groups = {full};
    std::vector<std::int32_t> blocks = {world.blocks};
    if (world.window > 0) {
      groups.push_back(full);
      groups.back().name = "windowed";
      groups.back().window = world.window;
      blocks.push_back(world.blocks);
    }
    return std::move(KvCache::create(std::move(groups), blocks).value());
  }

  const Life &life(std::uint64_t id) const {
    return *std::find_if(lives_.begin(), lives_.end(),
                         [&](const Life &l) { return l.index == id; });
  }
  Life &life(std::uint64_t id) {
    return const_cast<Life &>(std::as_const(*this).life(id));
  }

  void arrive(std::size_t index) {
    Life life;
    life.index = index;
    std::mt19937 random{unsigned(index)};
    for (std::int32_t i = 0; i < trace_[index].prompt; ++i)
      life.tokens.push_back(std::int32_t(random() % 1000));
    lives_.push_back(std::move(life));
    service.arrive(trace_[index].client);
  }

  std::vector<SequenceState> statesNow(std::vector<double> &served) {
    std::vector<SequenceState> states;
    std::map<std::string, std::int32_t> clients;
    for (const Life &life : lives_) {
      const Arrival &arrival = trace_[life.index];
      auto [client, isNew] =
          clients.emplace(arrival.client, std::int32_t(served.size()));
      if (isNew)
        served.push_back(service.served(arrival.client));
      SequenceState state;
      state.id = life.index;
      state.tokens = life.tokens;
      state.numComputed = life.computed;
      state.firstLogit = std::int32_t(life.tokens.size()) - 1;
      state.isRunning = life.isRunning;
      state.priority = arrival.priority;
      state.ageSeconds = now - arrival.time;
      state.client = client->second;
      states.push_back(state);
    }
    return states;
  }

  void step() {
    std::vector<double> served;
    std::vector<SequenceState> states = statesNow(served);
    for (std::size_t g = 0; g < cache_.numGroups(); ++g)
      capacity_.groups[g].available = cache_.allocator(g).numAvailable();
    ScheduleResult result =
        scheduleStep(states, served, capacity_, world_.policy, *this);
    check(states, result);
    for (std::uint64_t id : result.preempted) {
      cache_.removeSequence(id);
      life(id).isRunning = false;
      life(id).computed = 0;
      ++endings[id].preemptions;
    }
    for (const Admission &admission : result.admitted) {
      Life &admitted = life(admission.id);
      auto cached = cache_.addSequence(admission.id, {}, admitted.tokens);
      ASSERT_TRUE(cached.isOk());
      ASSERT_EQ(*cached, admission.cachedTokens);
      admitted.isRunning = true;
      admitted.computed = *cached;
      if (endings[admission.id].admitted < 0) {
        endings[admission.id].admitted = now;
        admissions.push_back(admission.id);
      }
    }
    for (const StepSequence &rows : result.plan.sequences) {
      Status status = cache_.reserve(rows.id, rows.numRows);
      ASSERT_TRUE(status.isOk()) << status.message();
    }
    now += world_.stepSeconds + world_.rowSeconds * result.plan.numRows();
    for (const StepSequence &rows : result.plan.sequences)
      commit(life(rows.id), rows);
    Status status = cache_.checkInvariants();
    ASSERT_TRUE(status.isOk()) << status.message();
    mostPreemptions = std::max(mostPreemptions, result.preempted.size());
  }

  void commit(Life &life, const StepSequence &rows) {
    ASSERT_EQ(rows.firstPosition, life.computed);
    cache_.commit(rows.id, rows.numRows, life.tokens);
    life.computed += rows.numRows;
    const Arrival &arrival = trace_[life.index];
    for (; life.charged < life.computed; ++life.charged) {
      bool isPrompt = life.charged < arrival.prompt;
      service.charge(arrival.client, isPrompt, !isPrompt);
      given[arrival.client] +=
          isPrompt ? ClientService::kPromptRow : ClientService::kOutputRow;
    }
    if (life.computed < std::int32_t(life.tokens.size()))
      return;
    Ending &ending = endings[life.index];
    if (ending.firstToken < 0)
      ending.firstToken = now;
    life.tokens.push_back(std::int32_t(life.tokens.size() % 977));
    if (std::int32_t(life.tokens.size()) < arrival.prompt + arrival.output)
      return;
    ending.finished = now;
    cache_.removeSequence(life.index);
    service.leave(arrival.client);
    lives_.remove_if([&](const Life &l) { return &l == &life; });
  }

  void check(const std::vector<SequenceState> &states,
             const ScheduleResult &result) {
    const StepPlan &plan = result.plan;
    ASSERT_TRUE(!plan.isEmpty() || !result.preempted.empty());
    StepLimits limits{capacity_.maxStepTokens, capacity_.maxLogitRows,
                      capacity_.maxSequences, 1000, 1};
    Status status = checkStepPlan(plan, limits);
    ASSERT_TRUE(status.isOk()) << status.message();
    std::int32_t promptRows = 0, decodes = 0, running = 0;
    std::map<std::uint64_t, std::int32_t> rows;
    for (const StepSequence &sequence : plan.sequences)
      rows[sequence.id] = sequence.numRows;
    const SequenceState *first = nullptr;
    for (const SequenceState &state : states) {
      bool isPreempted = std::count(result.preempted.begin(),
                                    result.preempted.end(), state.id) > 0;
      running += state.isRunning;
      bool isDecoding =
          state.isRunning && state.numKnown() - state.numComputed == 1;
      if (isDecoding && !isPreempted && !plan.isEmpty()) {
        ++decodes; // never stalled
        ASSERT_EQ(rows[state.id], 1);
      }
      if (!isDecoding)
        promptRows += rows[state.id];
      if (state.isRunning && state.priority == 0 && !first)
        first = &state;
    }
    if (first)
      ASSERT_EQ(std::count(result.preempted.begin(), result.preempted.end(),
                           first->id),
                0)
          << "the first in rank was preempted";
    if (world_.mixed > 0 && decodes > 0)
      ASSERT_LE(promptRows, world_.mixed);
    // Room for anyone is not left unused while someone waits.
    bool isRoomy =
        result.preempted.empty() &&
        promptRows < (world_.mixed > 0 && decodes > 0
                          ? world_.mixed
                          : capacity_.maxStepTokens - decodes) &&
        running + std::int32_t(result.admitted.size()) < capacity_.maxSequences;
    std::int32_t most = 1;
    for (const SequenceState &state : states)
      most = std::max(most, state.numKnown() / kBlockTokens + 2);
    for (const GroupCapacity &group : capacity_.groups)
      isRoomy &= group.available > most * (capacity_.maxSequences + 1);
    if (isRoomy)
      ASSERT_EQ(std::size_t(running) + result.admitted.size(), states.size());
  }

  World world_;
  std::vector<Arrival> trace_;
  KvCache cache_;
  ScheduleCapacity capacity_;
  std::list<Life> lives_;
  std::size_t next_ = 0; // to arrive

public:
  ClientService service;
  std::map<std::string, double> given;
  std::vector<Ending> endings;
  std::vector<std::uint64_t> admissions; // first ones, in order
  std::size_t mostPreemptions = 0;
  double now = 0;
};

std::vector<Arrival> poisson(int count, double perSecond, unsigned seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<double> gap(perSecond);
  std::vector<Arrival> trace;
  double time = 0;
  for (int i = 0; i < count; ++i) {
    time += gap(random);
    trace.push_back({time, 1 + std::int32_t(random() % 120),
                     1 + std::int32_t(random() % 60), "", 0});
  }
  return trace;
}

std::vector<Arrival> bursts(int count, unsigned seed) {
  std::vector<Arrival> trace = poisson(count, 1, seed);
  for (std::size_t i = 0; i < trace.size(); ++i) {
    trace[i].time = double(i / 40) * 3;
    trace[i].output *= 3;
  }
  return trace;
}

// Most are short, a few very long: a Pareto tail of index 1.2.
std::vector<Arrival> longTails(int count, double perSecond, unsigned seed) {
  std::vector<Arrival> trace = poisson(count, perSecond, seed);
  std::mt19937 random(seed + 1);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (Arrival &arrival : trace) {
    arrival.prompt = std::int32_t(
        std::min(1500.0, 10 / std::pow(1 - uniform(random), 1 / 1.2)));
    arrival.output = std::int32_t(
        std::min(800.0, 4 / std::pow(1 - uniform(random), 1 / 1.2)));
  }
  return trace;
}

void expectAllEnd(const Simulation &simulation) {
  for (std::size_t i = 0; i < simulation.endings.size(); ++i)
    ASSERT_GE(simulation.endings[i].finished, 0) << "request " << i;
}

} // namespace

// Every trace in every world runs to its end, with all checks of each step.
TEST(SimulationTest, everyoneEnds) {
  int preempted = 0;
  for (unsigned seed = 0; seed < 3; ++seed)
    for (auto &trace :
         {poisson(150, 8, seed), bursts(160, seed), longTails(150, 8, seed)})
      for (int kind = 0; kind < 4; ++kind) {
        World world;
        world.blocks = kind == 1 ? 160 : 400;
        world.chunk = kind == 2 ? 7 : 0;
        world.mixed = kind == 3 ? 16 : 0;
        world.window = kind >= 2 ? 40 : 0;
        world.sequences = kind == 1 ? 32 : 8;
        Simulation simulation(world, trace);
        simulation.run();
        if (HasFatalFailure())
          return;
        expectAllEnd(simulation);
        for (const Ending &ending : simulation.endings)
          preempted += ending.preemptions;
      }
  EXPECT_GT(preempted, 20) << "no world was tight";
}

// On a pool that holds little more than one sequence, all still end, and work
// that is done twice stays bounded.
TEST(SimulationTest, tightPool) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    World world;
    world.blocks = 16; // 256 tokens
    world.sequences = 8;
    std::vector<Arrival> trace = poisson(120, 20, seed);
    for (Arrival &arrival : trace)
      arrival.prompt = 1 + arrival.prompt % 40, arrival.output += 60;
    Simulation simulation(world, trace);
    simulation.run();
    if (HasFatalFailure())
      return;
    expectAllEnd(simulation);
    double total = 0;
    for (const Ending &ending : simulation.endings)
      total += ending.preemptions;
    EXPECT_GT(total, 0);
    EXPECT_LT(total / double(trace.size()), 6);
  }
}

// Without priorities and clients, first come is first admitted.
TEST(SimulationTest, arrivalOrderHolds) {
  for (auto &trace : {poisson(200, 20, 5), longTails(200, 10, 5)}) {
    World world;
    Simulation simulation(world, trace);
    simulation.run();
    if (HasFatalFailure())
      return;
    EXPECT_TRUE(std::is_sorted(simulation.admissions.begin(),
                               simulation.admissions.end()));
  }
}

// Between two clients that always have requests waiting, the service given
// differs by no more than the bound of the virtual token counter, however
// unlike their requests; without fairness it drifts apart.
TEST(SimulationTest, clientsAreServedAlike) {
  auto gap = [](bool fair) {
    World world;
    world.policy.fairClients = fair;
    world.policy.agingSeconds = 1; // everyone is overdue: fairness still holds
    std::vector<Arrival> trace;
    std::mt19937 random(3);
    for (int i = 0; i < 900; ++i) {
      // "many" sends four times as often, and longer.
      bool many = i % 5 != 0;
      trace.push_back({0, many ? 100 : 10 + std::int32_t(random() % 30),
                       many ? 40 : 1 + std::int32_t(random() % 100),
                       many ? "many" : "few", std::int32_t(random() % 2)});
    }
    Simulation simulation(world, trace);
    double widest = 0;
    for (double until = 1; until < 32; until += 1) {
      simulation.run(until);
      widest = std::max(
          widest, std::abs(simulation.given["many"] - simulation.given["few"]));
    }
    return widest;
  };
  // 2 max(wp * longest prompt, wq * tokens of a full batch), as in the paper.
  double bound = 2 * std::max(ClientService::kPromptRow * 100,
                              ClientService::kOutputRow * 8 * 100);
  EXPECT_LE(gap(true), bound);
  EXPECT_GT(gap(false), 3 * bound);
}

// A flood of better priority delays the rest, but not for ever: with aging it
// ends soon after it is overdue, without aging after the flood.
TEST(SimulationTest, priorityDoesNotStarve) {
  auto wait = [](double aging, const char *client) {
    World world;
    world.policy.agingSeconds = aging;
    world.blocks = 60; // and it may be preempted
    std::vector<Arrival> trace;
    for (int i = 0; i < 400; ++i)
      trace.push_back({i * 0.1, 60, 60, "", 0});
    trace.insert(trace.begin() + 20, {2.0, 60, 60, client, 5});
    Simulation simulation(world, trace);
    simulation.run();
    if (::testing::Test::HasFatalFailure())
      return -1.0;
    expectAllEnd(simulation);
    return simulation.endings[20].finished - 2.0;
  };
  for (const char *client : {"", "other"}) {
    double aged = wait(10, client), never = wait(0, client);
    EXPECT_GT(aged, 10);
    EXPECT_LT(aged, 30);
    EXPECT_GT(never, 40); // the flood's last arrival
  }
}

// A long prompt that comes while others decode: with a limit on prompt rows
// their steps stay short, and the prompt still ends.
TEST(SimulationTest, aLongPromptDoesNotStallDecoding) {
  auto slowestStep = [](std::int32_t mixed) {
    World world;
    world.stepTokens = 512;
    world.mixed = mixed;
    world.blocks = 1000;
    std::vector<Arrival> trace(6, {0, 20, 600, "", 0});
    trace.push_back({2, 4000, 10, "", 0});
    Simulation simulation(world, trace);
    double slowest = 0;
    simulation.run(2);
    while (simulation.endings[6].finished < 0 && simulation.now < 200) {
      double before = simulation.now;
      simulation.run(before + 1e-9);
      slowest = std::max(slowest, simulation.now - before);
    }
    EXPECT_GE(simulation.endings[6].finished, 0);
    return slowest;
  };
  double limited = slowestStep(16), unlimited = slowestStep(0);
  EXPECT_LT(limited, 2 * 0.014); // twice a step of six rows
  EXPECT_GT(unlimited, 0.2);
}
