// Filters that take a sequence apart, choose from it or put it in order.
#include "runtime/text/jinja/Runtime.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace ingot::jinja {
namespace {

using Filter = Value (*)(Runtime &, const Value &, const Arguments &);
using V = const Value &;
using A = const Arguments &;
using Getter = std::function<Value(const Value &)>;

Value generator(Runtime &rt, std::vector<Value> items) {
  return rt.sequence(SequenceKind::Generator, std::move(items));
}

Value ignoreCase(Runtime &rt, V value) {
  auto *s = value.string();
  return s ? rt.string(mapCase(s->text, CaseMap::Lower)) : value;
}

// One attribute path such as "address.city" or 0.
Getter pathGetter(Runtime &rt, V attribute, Value fallback) {
  std::vector<Value> parts;
  if (auto *s = attribute.string()) {
    const std::string &path = s->text.str();
    for (size_t begin = 0;;) {
      size_t end = std::min(path.find('.', begin), path.size());
      std::string part = path.substr(begin, end - begin);
      bool digits = !part.empty() && part.size() < 10 &&
                    part.find_first_not_of("0123456789") == std::string::npos;
      parts.push_back(digits ? Value::integer(std::stol(part))
                             : rt.string(part));
      if (end == path.size())
        break;
      begin = end + 1;
    }
  } else if (attribute.isIntegral()) {
    parts.push_back(attribute);
  } else if (!attribute.isNone()) {
    fail("an attribute is named by a string or number, not " +
         typeName(attribute));
  }
  return [&rt, parts, fallback](V item) {
    Value value = item;
    for (auto &part : parts) {
      value = getItem(rt, value, part);
      if (value.isUndefined() && !fallback.isNone())
        value = fallback;
    }
    return value;
  };
}

Value fallbackOf(const Bound &bound, size_t i) {
  return bound.get(i, Value::none());
}

Value sortFilter(Runtime &rt, V value, A a) {
  Bound bound("sort", a, {"reverse", "case_sensitive", "attribute"});
  bool sensitive = bound.flag(1, false);
  std::vector<Getter> getters;
  auto *paths = bound.has(2) ? bound[2].string() : nullptr;
  if (paths) {
    const std::string &all = paths->text.str();
    for (size_t begin = 0;;) {
      size_t end = std::min(all.find(',', begin), all.size());
      getters.push_back(pathGetter(
          rt, rt.string(all.substr(begin, end - begin)), Value::none()));
      if (end == all.size())
        break;
      begin = end + 1;
    }
  } else {
    getters.push_back(
        pathGetter(rt, bound.get(2, Value::none()), Value::none()));
  }
  std::vector<Value> items = iterate(rt, value), keys;
  for (auto &item : items) {
    std::vector<Value> parts;
    for (auto &getter : getters)
      parts.push_back(sensitive ? getter(item) : ignoreCase(rt, getter(item)));
    keys.push_back(parts.size() == 1 ? parts[0] : rt.list(std::move(parts)));
  }
  std::vector<Value> out;
  for (size_t i : sortedOrder(rt, keys, bound.flag(0, false)))
    out.push_back(items[i]);
  return rt.list(std::move(out));
}

Value dictSort(Runtime &rt, V value, A a) {
  Bound bound("dictsort", a, {"case_sensitive", "by", "reverse"});
  std::string by = bound.has(1) ? bound.text(1).str() : "key";
  if (by != "key" && by != "value")
    fail("You can only sort by either \"key\" or \"value\"");
  if (value.isUndefined())
    failUndefined(value);
  auto *dict = value.dict();
  if (!dict)
    fail("dictsort expects a mapping, not " + typeName(value));
  std::vector<Value> keys;
  for (auto &[key, item] : dict->entries) {
    const Value &chosen = by == "key" ? key : item;
    keys.push_back(bound.flag(0, false) ? chosen : ignoreCase(rt, chosen));
  }
  std::vector<Value> out;
  for (size_t i : sortedOrder(rt, keys, bound.flag(2, false)))
    out.push_back(rt.tuple({dict->entries[i].first, dict->entries[i].second}));
  return rt.list(std::move(out));
}

Value uniqueFilter(Runtime &rt, V value, A a) {
  Bound bound("unique", a, {"case_sensitive", "attribute"});
  Getter getter = pathGetter(rt, bound.get(1, Value::none()), Value::none());
  Runtime::DictBuilder seen(rt);
  std::vector<Value> out;
  std::unordered_map<std::string, bool> known;
  for (auto &item : iterate(rt, value)) {
    Value key = getter(item);
    if (!bound.flag(0, false))
      key = ignoreCase(rt, key);
    if (known.emplace(hashKey(rt, key), true).second)
      out.push_back(item);
  }
  return generator(rt, std::move(out));
}

Value extreme(Runtime &rt, V value, A a, bool largest) {
  Bound bound(largest ? "max" : "min", a, {"case_sensitive", "attribute"});
  Getter getter = pathGetter(rt, bound.get(1, Value::none()), Value::none());
  std::vector<Value> items = iterate(rt, value);
  if (items.empty())
    return Value::undefined("No aggregated item, sequence was empty.");
  auto keyOf = [&](V item) {
    Value key = getter(item);
    return bound.flag(0, false) ? key : ignoreCase(rt, key);
  };
  size_t best = 0;
  Value bestKey = keyOf(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    Value key = keyOf(items[i]);
    if (largest ? less(rt, key, bestKey, ">") : less(rt, key, bestKey, "<")) {
      best = i;
      bestKey = key;
    }
  }
  return items[best];
}

Value groupBy(Runtime &rt, V value, A a) {
  Bound bound("groupby", a, {"attribute", "default", "case_sensitive"}, 1);
  Getter getter = pathGetter(rt, bound[0], fallbackOf(bound, 1));
  bool sensitive = bound.flag(2, false);
  std::vector<Value> items = iterate(rt, value), keys;
  for (auto &item : items)
    keys.push_back(sensitive ? getter(item) : ignoreCase(rt, getter(item)));
  std::vector<Value> out, members;
  std::vector<size_t> order = sortedOrder(rt, keys, false);
  for (size_t k = 0; k < order.size(); ++k) {
    members.push_back(items[order[k]]);
    if (k + 1 < order.size() && equal(rt, keys[order[k]], keys[order[k + 1]]))
      continue;
    Value grouper = getter(members[0]);
    out.push_back(rt.sequence(SequenceKind::Group,
                              {grouper, rt.list(std::move(members))}));
    members.clear();
  }
  return rt.list(std::move(out));
}

Value sumFilter(Runtime &rt, V value, A a) {
  Bound bound("sum", a, {"attribute", "start"});
  Getter getter = pathGetter(rt, bound.get(0, Value::none()), Value::none());
  Value total = bound.get(1, Value::integer(0));
  if (total.string())
    fail("sum() can't sum strings [use ''.join(seq) instead]");
  for (auto &item : iterate(rt, value))
    total = binary(rt, BinaryOp::Add, total, getter(item));
  return total;
}

Value joinFilter(Runtime &rt, V value, A a) {
  Bound bound("join", a, {"d", "attribute"});
  Text separator = bound.has(0) ? str(rt, bound[0]) : Text();
  Getter getter = pathGetter(rt, bound.get(1, Value::none()), Value::none());
  Text out;
  bool first = true;
  for (auto &item : iterate(rt, value)) {
    if (!first)
      out.append(separator);
    first = false;
    out.append(str(rt, getter(item)));
    rt.touch(separator.size());
    if (out.size() > rt.limits().outputBytes)
      fail("a joined string exceeds the output limit");
  }
  return rt.string(std::move(out));
}

Value mapFilter(Runtime &rt, V value, A a) {
  std::vector<Value> out;
  if (!truthy(value))
    return generator(rt, {});
  bool byAttribute =
      a.positional.empty() &&
      std::any_of(a.named.begin(), a.named.end(),
                  [](auto &named) { return named.first == "attribute"; });
  if (byAttribute) {
    Bound bound("map", a, {"attribute", "default"});
    Getter getter = pathGetter(rt, bound[0], fallbackOf(bound, 1));
    for (auto &item : iterate(rt, value))
      out.push_back(getter(item));
    return generator(rt, std::move(out));
  }
  if (a.positional.empty())
    fail("map requires a filter argument");
  auto *name = a.positional[0].string();
  if (!name)
    fail("map names its filter by a string, not " + typeName(a.positional[0]));
  Arguments rest{{a.positional.begin() + 1, a.positional.end()}, a.named};
  for (auto &item : iterate(rt, value))
    out.push_back(rt.callFilter(name->text.str(), item, rest));
  return generator(rt, std::move(out));
}

Value choose(Runtime &rt, V value, A a, bool keep, bool byAttribute) {
  std::vector<Value> out;
  if (!truthy(value))
    return generator(rt, {});
  size_t next = 0;
  Getter getter = [](V item) { return item; };
  if (byAttribute) {
    if (a.positional.empty())
      fail("Missing parameter for attribute name");
    getter = pathGetter(rt, a.positional[next++], Value::none());
  }
  std::optional<std::string> test;
  if (next < a.positional.size()) {
    auto *name = a.positional[next++].string();
    if (!name)
      fail("a test is named by a string, not " +
           typeName(a.positional[next - 1]));
    test = name->text.str();
  }
  Arguments rest{{a.positional.begin() + next, a.positional.end()}, a.named};
  for (auto &item : iterate(rt, value)) {
    Value subject = getter(item);
    bool holds = test ? rt.callTest(*test, subject, rest) : truthy(subject);
    if (holds == keep)
      out.push_back(item);
  }
  return generator(rt, std::move(out));
}

Value firstFilter(Runtime &rt, V value, A a) {
  Bound bound("first", a, {});
  if (auto *s = value.sequence()) {
    if (s->remaining() > 0)
      return s->kind == SequenceKind::Generator ? s->items[s->consumed++]
                                                : s->items[0];
  } else if (value.string() && !value.string()->text.empty()) {
    return getItem(rt, value, Value::integer(0));
  } else if (auto *d = value.dict(); d && !d->entries.empty()) {
    return d->entries[0].first;
  } else {
    iterate(rt, value); // fails for what cannot be iterated
  }
  return Value::undefined("No first item, sequence was empty.");
}

Value lastFilter(Runtime &rt, V value, A a) {
  Bound bound("last", a, {});
  auto *s = value.sequence();
  if (value.string() || (s && s->kind != SequenceKind::Generator) ||
      value.dict()) {
    if (length(rt, value) == 0)
      return Value::undefined("No last item, sequence was empty.");
    if (s)
      return s->items.back();
    if (auto *d = value.dict())
      return d->entries.back().first;
    return getItem(rt, value, Value::integer(-1));
  }
  fail(quoted(typeName(value)) + " object is not reversible");
}

Value reverseFilter(Runtime &rt, V value, A a) {
  Bound bound("reverse", a, {});
  if (value.string())
    return slice(rt, value, Value::none(), Value::none(), Value::integer(-1));
  std::vector<Value> items = iterate(rt, value);
  std::reverse(items.begin(), items.end());
  auto *s = value.sequence();
  // What Python cannot reverse in place it makes a list of.
  if (s && s->kind == SequenceKind::Generator)
    return rt.list(std::move(items));
  return generator(rt, std::move(items));
}

Value batch(Runtime &rt, V value, A a) {
  Bound bound("batch", a, {"linecount", "fill_with"}, 1);
  Int size = bound.integer(0, 1);
  Value fill = fallbackOf(bound, 1);
  std::vector<Value> out, line;
  for (auto &item : iterate(rt, value)) {
    if (Int(line.size()) == size) {
      out.push_back(rt.list(std::move(line)));
      line.clear();
    }
    line.push_back(item);
  }
  if (!line.empty()) {
    if (!fill.isNone() && size - Int(line.size()) > 1'000'000)
      fail("batch() argument 'linecount' is out of range");
    while (!fill.isNone() && Int(line.size()) < size) {
      rt.step();
      line.push_back(fill);
    }
    out.push_back(rt.list(std::move(line)));
  }
  return generator(rt, std::move(out));
}

Value sliceFilter(Runtime &rt, V value, A a) {
  Bound bound("slice", a, {"slices", "fill_with"}, 1);
  Int slices = bound.integer(0, 1);
  Value fill = fallbackOf(bound, 1);
  if (slices == 0)
    fail("integer division or modulo by zero");
  std::vector<Value> items = iterate(rt, value), out;
  Int size = Int(items.size());
  size_t next = 0;
  for (Int i = 0; i < slices; ++i) {
    rt.step();
    Int count = size / slices + (i < size % slices ? 1 : 0);
    std::vector<Value> part(items.begin() + next,
                            items.begin() + next + size_t(count));
    next += size_t(count);
    if (!fill.isNone() && i >= size % slices)
      part.push_back(fill);
    out.push_back(rt.list(std::move(part)));
  }
  return generator(rt, std::move(out));
}

Value itemsFilter(Runtime &rt, V value, A a) {
  Bound bound("items", a, {});
  if (value.isUndefined())
    return generator(rt, {});
  auto *dict = value.dict();
  if (!dict)
    fail("Can only get item pairs from a mapping.");
  std::vector<Value> out;
  for (auto &[key, item] : dict->entries)
    out.push_back(rt.tuple({key, item}));
  return generator(rt, std::move(out));
}

Value lengthFilter(Runtime &rt, V value, A a) {
  Bound bound("length", a, {});
  return Value::integer(Int(length(rt, value)));
}

const std::map<std::string_view, Filter> &filters() {
  static const std::map<std::string_view, Filter> table = {
      {"batch", batch},
      {"count", lengthFilter},
      {"dictsort", dictSort},
      {"first", firstFilter},
      {"groupby", groupBy},
      {"items", itemsFilter},
      {"join", joinFilter},
      {"last", lastFilter},
      {"length", lengthFilter},
      {"list",
       [](Runtime &rt, V v, A a) {
         Bound bound("list", a, {});
         return rt.list(iterate(rt, v));
       }},
      {"map", mapFilter},
      {"max", [](Runtime &rt, V v, A a) { return extreme(rt, v, a, true); }},
      {"min", [](Runtime &rt, V v, A a) { return extreme(rt, v, a, false); }},
      {"reject",
       [](Runtime &rt, V v, A a) { return choose(rt, v, a, false, false); }},
      {"rejectattr",
       [](Runtime &rt, V v, A a) { return choose(rt, v, a, false, true); }},
      {"reverse", reverseFilter},
      {"select",
       [](Runtime &rt, V v, A a) { return choose(rt, v, a, true, false); }},
      {"selectattr",
       [](Runtime &rt, V v, A a) { return choose(rt, v, a, true, true); }},
      {"slice", sliceFilter},
      {"sort", sortFilter},
      {"sum", sumFilter},
      {"unique", uniqueFilter},
  };
  return table;
}

} // namespace

// A merge sort of our own: it stays within bounds whatever the comparison says
// (NaN is neither less nor more than anything).
std::vector<size_t> sortedOrder(Runtime &rt, const std::vector<Value> &keys,
                                bool reverse) {
  auto before = [&](size_t a, size_t b) {
    return reverse ? less(rt, keys[b], keys[a]) : less(rt, keys[a], keys[b]);
  };
  std::vector<size_t> order(keys.size()), other(keys.size());
  std::iota(order.begin(), order.end(), size_t(0));
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t begin = 0; begin < order.size(); begin += 2 * width) {
      size_t middle = std::min(begin + width, order.size());
      size_t end = std::min(begin + 2 * width, order.size());
      size_t left = begin, right = middle;
      for (size_t to = begin; to < end; ++to) {
        bool takeRight = left == middle ||
                         (right < end && before(order[right], order[left]));
        other[to] = order[takeRight ? right++ : left++];
      }
    }
    order.swap(other);
  }
  return order;
}

std::optional<Value> applySequenceFilter(Runtime &rt, const std::string &name,
                                         const Value &input,
                                         const Arguments &arguments) {
  auto it = filters().find(name);
  if (it == filters().end())
    return std::nullopt;
  return it->second(rt, input, arguments);
}

} // namespace ingot::jinja
