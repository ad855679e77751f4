#include "runtime/schedule/Scheduler.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace ingot {
namespace {

std::int64_t ceilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// As many blocks of the group as a sequence can hold at once; must agree with
// what runtime/memory takes (its blocksForTokens).
std::int64_t mostBlocks(std::int64_t numTokens, const GroupCapacity &group,
                        std::int32_t stepTokens) {
  std::int64_t all = ceilDiv(numTokens, group.blockTokens);
  if (group.window > 0)
    all = std::min(all, ceilDiv(std::int64_t(group.window) + stepTokens,
                                group.blockTokens) +
                            1);
  return all;
}

// Blocks that a sequence of `computed` tokens holds between steps.
std::int64_t heldBlocks(std::int64_t computed, const GroupCapacity &group) {
  std::int64_t first = 0;
  if (group.window > 0)
    first = std::max<std::int64_t>(0, computed - group.window + 1) /
            group.blockTokens;
  return ceilDiv(computed, group.blockTokens) - first;
}

class StepPlanner {
public:
  StepPlanner(std::span<const SequenceState> states,
              std::span<const double> service, const ScheduleCapacity &capacity,
              const SchedulePolicy &policy, const CacheView &cache)
      : states_(states), service_(service.begin(), service.end()),
        capacity_(capacity), policy_(policy), cache_(cache),
        rows_(states.size(), 0), begin_(states.size(), 0),
        tokensLeft_(capacity.maxStepTokens),
        logitsLeft_(capacity.maxLogitRows) {
    for (const GroupCapacity &group : capacity.groups)
      available_.push_back(group.available);
    for (std::size_t i = 0; i < states.size(); ++i)
      begin_[i] = states[i].numComputed;
    rankRunning();
  }

  ScheduleResult plan() {
    scheduleDecodes();
    scheduleDrafts();
    promptLeft_ = tokensLeft_;
    if (!order_.empty()) {
      if (capacity_.mixedPromptTokens > 0)
        promptLeft_ = std::min(promptLeft_, capacity_.mixedPromptTokens);
      budgetLeft_ = capacity_.mixedPromptBudget;
    }
    if (budgetLeft_)
      scheduleBudgetedPrompts();
    else
      schedulePrompts();
    if (result_.preempted.empty())
      admitWaiting();
    for (std::size_t i : wantMore_)
      takePrompt(i);
    build();
    return std::move(result_);
  }

private:
  std::int32_t pending(std::size_t i) const {
    return states_[i].numKnown() - begin_[i];
  }
  std::int32_t bestPriority() const {
    std::int32_t best = INT32_MAX;
    for (const SequenceState &state : states_)
      best = std::min(best, state.priority);
    return best;
  }
  std::int32_t effectivePriority(const SequenceState &state) const {
    if (policy_.order == QueueOrder::FirstCome)
      return 0;
    bool isOverdue =
        policy_.agingSeconds > 0 && state.ageSeconds >= policy_.agingSeconds;
    return isOverdue ? best_ : state.priority;
  }

  void rankRunning() {
    best_ = bestPriority();
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (states_[i].isRunning)
        running_.push_back(i);
    std::sort(running_.begin(), running_.end(),
              [&](std::size_t a, std::size_t b) {
                return std::pair(effectivePriority(states_[a]), a) <
                       std::pair(effectivePriority(states_[b]), b);
              });
  }

  // Blocks that `rows` more rows than already planned take of a group.
  std::int64_t newBlocks(std::size_t i, std::int32_t rows,
                         const GroupCapacity &group) const {
    std::int64_t from = begin_[i] + rows_[i];
    std::int64_t count = ceilDiv(from + rows, group.blockTokens) -
                         ceilDiv(from, group.blockTokens);
    if (rows_[i] == 0 && rows > 0 && states_[i].sharesLastBlock)
      ++count;
    return count;
  }

  // The most rows, up to `wanted`, that tokens, logits and blocks allow.
  std::int32_t rowsThatFit(std::size_t i, std::int32_t wanted,
                           std::int32_t tokens) const {
    std::int32_t rows = std::min(wanted, tokens);
    std::int32_t from = begin_[i] + rows_[i];
    std::int32_t silent = std::max(0, states_[i].firstLogit - from);
    rows = std::min(rows, silent + logitsLeft_);
    for (std::size_t g = 0; g < capacity_.groups.size(); ++g) {
      const GroupCapacity &group = capacity_.groups[g];
      if (rows > 0 && newBlocks(i, rows, group) > available_[g]) {
        std::int64_t whole = ceilDiv(from, group.blockTokens);
        std::int64_t blocks =
            available_[g] - (rows_[i] == 0 && states_[i].sharesLastBlock);
        std::int64_t room = (whole + blocks) * group.blockTokens - from;
        rows = blocks < 0 ? 0 : std::int32_t(std::max<std::int64_t>(0, room));
      }
    }
    return std::max(rows, 0);
  }

  void take(std::size_t i, std::int32_t rows) {
    for (std::size_t g = 0; g < capacity_.groups.size(); ++g)
      available_[g] -= newBlocks(i, rows, capacity_.groups[g]);
    std::int32_t from = begin_[i] + rows_[i];
    logitsLeft_ -=
        std::max(0, from + rows - std::max(from, states_[i].firstLogit));
    tokensLeft_ -= rows;
    if (rows_[i] == 0)
      order_.push_back(i);
    rows_[i] += rows;
  }

  bool lacksBlocks(std::size_t i) const {
    for (std::size_t g = 0; g < capacity_.groups.size(); ++g)
      if (newBlocks(i, 1, capacity_.groups[g]) > available_[g])
        return true;
    return false;
  }

  // Preempts the running sequence that ranks last; false when only one is left.
  bool preemptLast() {
    if (running_.size() < 2)
      return false;
    std::size_t victim = running_.back();
    running_.pop_back();
    std::vector<std::int32_t> blocks = cache_.releasable(states_[victim].id);
    for (std::size_t g = 0; g < capacity_.groups.size(); ++g)
      available_[g] += blocks[g];
    result_.preempted.push_back(states_[victim].id);
    return true;
  }

  // Best first, so that what is preempted has no rows yet.
  void scheduleDecodes() {
    for (std::size_t r = 0; r < running_.size(); ++r) {
      std::size_t i = running_[r];
      if (pending(i) != 1)
        continue;
      while (r < running_.size() && lacksBlocks(i) && preemptLast())
        ;
      if (r < running_.size() && rowsThatFit(i, 1, tokensLeft_) == 1)
        take(i, 1);
    }
  }

  void scheduleDrafts() {
    for (std::size_t i : std::vector<std::size_t>(order_))
      if (std::int32_t rows = rowsThatFit(i, states_[i].numDrafts, tokensLeft_);
          rows > 0)
        take(i, rows);
  }

  std::int32_t chunk() const {
    return capacity_.chunkTokens > 0 ? capacity_.chunkTokens
                                     : capacity_.maxStepTokens;
  }
  // Rows of a prompt, or more of them; false where there is room for none.
  bool takePrompt(std::size_t i) {
    std::int32_t first = begin_[i] + rows_[i];
    std::int32_t wanted = std::min(pending(i), chunk()) - rows_[i];
    if (budgetLeft_) {
      std::int32_t rows = budgetLeft_->rowsFrom(first);
      if (!hasPromptRows_)
        rows = std::max(rows, kLeastPromptRows);
      wanted = std::min(wanted, rows);
    }
    std::int32_t rows = rowsThatFit(i, wanted, promptLeft_);
    if (rows < 1)
      return false;
    take(i, rows);
    promptLeft_ -= rows;
    hasPromptRows_ = true;
    if (budgetLeft_)
      budgetLeft_->cost -= budgetLeft_->costOf(first, rows);
    return true;
  }

  void schedulePrompts() {
    for (std::size_t r = 0; r < running_.size(); ++r) {
      std::size_t i = running_[r];
      if (pending(i) <= 1)
        continue;
      // A prompt can wait for blocks while others go on; not when it would be
      // all that runs.
      while (order_.empty() && r < running_.size() && lacksBlocks(i) &&
             preemptLast())
        ;
      if (r < running_.size())
        takePrompt(i);
    }
  }

  // Beside decoding. The prompt that ranks first goes first, unless others are
  // much shorter: then half of the budget is its, and they follow, the shortest
  // before; what they leave goes to all by rank.
  void scheduleBudgetedPrompts() {
    std::vector<std::size_t> prompts;
    for (std::size_t i : running_)
      if (pending(i) > 1)
        prompts.push_back(i);
    if (prompts.empty())
      return;
    std::size_t head = prompts.front();
    auto isMuchShorter = [&](std::size_t i) {
      return std::int64_t(2) * pending(i) <= pending(head);
    };
    std::vector<std::size_t> shorter;
    std::copy_if(prompts.begin(), prompts.end(), std::back_inserter(shorter),
                 isMuchShorter);
    std::sort(shorter.begin(), shorter.end(),
              [&](std::size_t a, std::size_t b) {
                return std::pair(pending(a), a) < std::pair(pending(b), b);
              });
    std::vector<std::size_t> waiting = waitingSequences();
    bool admitsShorter =
        !waiting.empty() && isMuchShorter(nextWaiting(waiting));
    if (shorter.empty() && !admitsShorter) {
      for (std::size_t i : prompts)
        takePrompt(i);
      return;
    }
    double others = budgetLeft_->cost / 2;
    budgetLeft_->cost -= others;
    takePrompt(head);
    budgetLeft_->cost += others;
    for (std::size_t i : shorter)
      takePrompt(i);
    wantMore_ = std::move(prompts);
  }

  // Blocks that begun prompts will still need for the tokens they have.
  std::vector<std::int64_t> promised() const {
    std::vector<std::int64_t> blocks(capacity_.groups.size(), 0);
    for (std::size_t i : running_)
      for (std::size_t g = 0; g < blocks.size(); ++g)
        blocks[g] += stillNeeded(i, g);
    return blocks;
  }
  std::int64_t stillNeeded(std::size_t i, std::size_t g) const {
    const GroupCapacity &group = capacity_.groups[g];
    std::int64_t known = states_[i].numKnown(), next = begin_[i] + rows_[i];
    if (next >= known)
      return 0;
    if (group.window == 0)
      return ceilDiv(known, group.blockTokens) -
             ceilDiv(next, group.blockTokens);
    return std::max<std::int64_t>(
        0, mostBlocks(known, group, capacity_.maxStepTokens) -
               heldBlocks(next, group));
  }

  // The sequences that a running one is or will be.
  std::int32_t slots(std::size_t i) const {
    return std::min(std::max(states_[i].copies, 1), capacity_.maxSequences);
  }

  std::vector<std::size_t> waitingSequences() const {
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (!states_[i].isRunning && states_[i].numKnown() > 0)
        waiting.push_back(i);
    return waiting;
  }
  std::size_t nextWaiting(const std::vector<std::size_t> &waiting) const {
    return *std::min_element(waiting.begin(), waiting.end(),
                             [&](std::size_t a, std::size_t b) {
                               return waitingKey(a) < waitingKey(b);
                             });
  }

  void admitWaiting() {
    std::vector<std::size_t> waiting = waitingSequences();
    std::int64_t used = 0;
    for (std::size_t i : running_)
      used += slots(i);
    std::vector<std::int64_t> promisedBlocks = promised();
    while (!waiting.empty() && promptLeft_ > 0) {
      std::size_t i = nextWaiting(waiting);
      if (used + slots(i) > capacity_.maxSequences)
        return;
      PrefixOffer offer = cache_.offer(states_[i].id);
      if (!fits(i, offer, promisedBlocks))
        return;
      begin_[i] = offer.tokens;
      for (std::size_t g = 0; g < capacity_.groups.size(); ++g)
        available_[g] -= offer.reusable[g];
      if (!takePrompt(i)) {
        for (std::size_t g = 0; g < capacity_.groups.size(); ++g)
          available_[g] += offer.reusable[g];
        return;
      }
      for (std::size_t g = 0; g < promisedBlocks.size(); ++g)
        promisedBlocks[g] += stillNeeded(i, g);
      used += slots(i);
      running_.push_back(i);
      result_.admitted.push_back({states_[i].id, offer.tokens});
      // Within the step too, one client's turn follows another's.
      if (std::size_t(states_[i].client) < service_.size())
        service_[std::size_t(states_[i].client)] += rows_[i];
      std::erase(waiting, i);
    }
  }

  std::tuple<std::int32_t, double, std::size_t>
  waitingKey(std::size_t i) const {
    const SequenceState &state = states_[i];
    double served = 0;
    if (policy_.fairClients && std::size_t(state.client) < service_.size())
      served = service_[std::size_t(state.client)];
    return {effectivePriority(state), served, i};
  }

  bool fits(std::size_t i, const PrefixOffer &offer,
            const std::vector<std::int64_t> &promisedBlocks) const {
    for (std::size_t g = 0; g < capacity_.groups.size(); ++g) {
      const GroupCapacity &group = capacity_.groups[g];
      std::int64_t known = states_[i].numKnown();
      std::int64_t needed =
          mostBlocks(known, group, capacity_.maxStepTokens) -
          std::min(heldBlocks(offer.tokens, group),
                   mostBlocks(known, group, capacity_.maxStepTokens)) +
          offer.reusable[g];
      // Alone, a sequence has no one to spare blocks for.
      if (!running_.empty())
        needed += promisedBlocks[g] +
                  std::max<std::int64_t>(
                      1, std::int64_t(policy_.watermark * group.numBlocks));
      if (needed > available_[g])
        return false;
    }
    return true;
  }

  void build() {
    StepPlan &plan = result_.plan;
    for (std::size_t i : order_) {
      const SequenceState &state = states_[i];
      std::int32_t firstRow = plan.numRows(), first = begin_[i];
      plan.sequences.push_back(
          {state.id, firstRow, rows_[i], first, state.rotaryLength});
      plan.tokens.insert(plan.tokens.end(), state.tokens.begin() + first,
                         state.tokens.begin() + first + rows_[i]);
      for (std::int32_t p = std::max(first, state.firstLogit);
           p < first + rows_[i]; ++p)
        plan.logitRows.push_back(firstRow + p - first);
    }
  }

  std::span<const SequenceState> states_;
  std::vector<double> service_;
  const ScheduleCapacity &capacity_;
  const SchedulePolicy &policy_;
  const CacheView &cache_;
  ScheduleResult result_;
  std::vector<std::size_t> running_; // best first
  std::vector<std::size_t> order_;   // those with rows, in order of the plan
  std::vector<std::int32_t> rows_;   // planned, one a state
  std::vector<std::int32_t> begin_;  // position of the first row
  std::vector<std::int64_t> available_;
  std::int32_t tokensLeft_;
  std::int32_t logitsLeft_;
  std::int32_t promptLeft_ = 0;
  std::optional<PromptBudget> budgetLeft_;
  bool hasPromptRows_ = false;
  std::vector<std::size_t> wantMore_; // prompts, for what others leave
  std::int32_t best_ = 0;
};

} // namespace

std::int64_t longestSequence(const ScheduleCapacity &capacity) {
  std::int64_t longest = INT32_MAX;
  for (const GroupCapacity &group : capacity.groups)
    if (group.window == 0 ||
        mostBlocks(INT32_MAX, group, capacity.maxStepTokens) > group.numBlocks)
      longest =
          std::min(longest, std::int64_t(group.numBlocks) * group.blockTokens);
  return longest;
}

ScheduleResult scheduleStep(std::span<const SequenceState> states,
                            std::span<const double> service,
                            const ScheduleCapacity &capacity,
                            const SchedulePolicy &policy,
                            const CacheView &cache) {
  return StepPlanner(states, service, capacity, policy, cache).plan();
}

} // namespace ingot
